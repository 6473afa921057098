"""Reading what the tour has shown so far, for its checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.operations import Operation
from dashboard.tour_facts import FIRST, SECOND, Facts, facts, is_ours
from engine.engine import Engine
from engine.model.capture_instance import CaptureInstance
from engine.model.job import AnyJob
from engine.model.lsn import Lsn

ROWS = 1000
"""Change rows of each instance that checks look at, about: more than the tour makes."""


def read_facts(
    engine: Engine,
    database: str,
    instances: Sequence[CaptureInstance],
    high: Lsn | None,
    jobs: Sequence[AnyJob],
    operation: Operation | None = None,
) -> Facts:
    """What is known of the tour's table in a database; ``operation`` watches Spark, where it is asked."""
    mine = [
        each for each in instances if is_ours(each) and each.start_lsn and high and each.start_lsn <= high
    ]
    rows = {
        each.capture_instance: _rows(engine, database, each, high, operation)
        for each in mine
        if each.capture_instance in (FIRST, SECOND) and high is not None
    }
    return facts(instances, high, jobs, rows)


def _rows(
    engine: Engine, database: str, instance: CaptureInstance, high: Lsn, operation: Operation | None
) -> Sequence[Mapping[str, Any]]:
    name = instance.capture_instance
    tables = engine.newest_changes(database, ROWS, name, upto=high)
    if tables is not None:
        return list(tables[name].to_pylist()) if name in tables else []
    frame = engine.get_all_changes(database, name, engine.get_min_lsn(database, name), high, "all update old")
    return operation.rows(frame) if operation is not None else list(frame.toArrow().to_pylist())
