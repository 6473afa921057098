"""A collector around the workbench of the capture tests: each collection is what the agent's thread does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.agent.collection_job import CollectionRunner
from engine.capture.crash_points import CrashPoints
from engine.collector.collection import Collection
from engine.collector.parameters import parameters_of
from engine.collector.views import SESSIONS, SLOTS
from engine.lake.sql_text import delta_table
from engine.model.collection import CollectionRun
from tests.capture.conftest import Workbench, new_workbench, workbench

__all__ = ["new_workbench", "workbench"]


TABLE, SLOT_TABLE = "cdc_log_scan_data", "cdc_slot_data"
"""Output tables of the bench's set."""


class CutAt(CrashPoints):
    """Ends the thread where a test would kill the process: nothing after that place happens."""

    def __init__(self, at: Any, passage: int = 1) -> None:
        super().__init__()
        self.at, self.passage, self.passed = at, passage, 0

    def reach(self, point: Any) -> None:
        self.passed += point == self.at
        if point == self.at and self.passed == self.passage:
            raise SystemExit


@dataclass
class Bench:
    """Collections of a workbench, by an agent that can be replaced."""

    workbench: Workbench
    agent_start: datetime = field(default_factory=lambda: datetime.now(UTC))
    crash: CrashPoints = field(default_factory=CrashPoints)

    def __post_init__(self) -> None:
        """A set of its own beside the default one: fewer tables, so a snapshot is cheaper."""
        engine = self.workbench.engine
        engine.stop_collection_set(1)
        self.number = engine.create_collection_set("bench", interval_minutes=5)
        engine.create_collection_item(self.number, "item", parameters_of([(SESSIONS.name, TABLE)]))
        self.restart()

    def add_slots(self) -> None:
        """A second output table."""
        self.workbench.engine.create_collection_item(
            self.number, "slots", parameters_of([(SLOTS.name, SLOT_TABLE)])
        )

    def restart(self) -> None:
        """Another agent: nothing is remembered."""
        self.agent_start += timedelta(seconds=1)
        w = self.workbench
        self.collection = Collection(w.control, w.sources, w.spark, w.lake, self.agent_start, self.crash)

    def run(self) -> None:
        """What the agent's thread does once for every set that is asked for."""
        w = self.workbench
        due = [each for each in w.control.collection_sets.list() if each.wanted]
        runner = CollectionRunner(due, w.control, self.collection, w.clock, UTC, self.agent_start)
        runner._run()

    def collect(self, collection_set: int | None = None) -> CollectionRun:
        """A snapshot of a set, by default the bench's, now; its run. It runs afterwards, every 5 minutes."""
        number = collection_set or self.number
        self.workbench.control.collection_sets.change(number, wanted=True, is_running=True)
        self.run()
        return self.workbench.control.collection_runs.list(number, 1)[0]

    def rows(self, table: str, columns: str = "*", where: str = "true") -> Sequence[Any]:
        """Rows of an output table as they are in the lake, whether or not they count."""
        path = delta_table(self.workbench.lake.custom_snapshots(table))
        frame = self.workbench.spark.sql(f"SELECT {columns} FROM {path} WHERE {where}")
        return [tuple(row) if len(row) > 1 else row[0] for row in frame.collect()]


@pytest.fixture
def bench(workbench: Workbench) -> Bench:
    return Bench(workbench)
