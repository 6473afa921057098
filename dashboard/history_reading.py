"""Reading the history of a range through the engine, inside a background `Operation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from dashboard.history import (
    MEASURES,
    Asked,
    changes_by_table,
    greatest,
    not_yet,
    series,
)
from dashboard.history_marks import Mark, cleanups, configurations, statements, within
from dashboard.log_held import collected_samples, is_unlimited, least_limits
from dashboard.operations import Operation as Work
from engine.engine import Engine
from engine.errors import CdcError
from engine.model.collection import HistoryBreak
from engine.model.job import RunOutcome

LOG, SIZES = "cdc_slot_data", "cdc_table_size_data"
ACTIONS = 5000
"""The newest actions that changes of jobs are looked for in."""
TABLES = 20
"""Lanes of the heat map, at most."""
HELD = "held"
_COLUMNS = (
    "snapshot_time",
    "retained_bytes",
    "safe_wal_size",
    "wal_status",
    "capture_instance",
    "row_count",
)


@dataclass(frozen=True, slots=True)
class Period:
    """One range, read: a value for each stretch by the measure's name, and where it is broken.

    limits: bytes of log that the source could keep at most, for each stretch with a snapshot that told;
    unlimited: whether all told that there is no limit.
    """

    asked: Asked
    values: Mapping[str, Sequence[float | None]]
    breaks: Sequence[HistoryBreak]
    limits: Sequence[float | None]
    unlimited: bool = False


@dataclass(frozen=True, slots=True)
class HistoryRead:
    """What the page shows of a range; ``earlier`` where it is compared.

    captured: how many change tables snapshots know, of which ``tables`` are the busiest.
    marks: what else happened in it; unread: why some are missing, where they could not be read.
    """

    period: Period
    earlier: Period | None
    tables: Mapping[str, Sequence[float | None]]
    captured: int = 0
    marks: Sequence[Mark] = ()
    unread: str = ""


def read_history(engine: Engine, asked: Asked, work: Work) -> HistoryRead:
    """Everything of a range. No Spark job where the lake's files can be read from here."""
    taken = (run for run in engine.collection_runs(None, 20) if run.outcome is RunOutcome.SUCCEEDED)
    newest = max((run.snapshot_time for run in taken), default=None)
    marks, unread = _marks(engine, asked, work)
    if newest is None:
        nothing: list[float | None] = [None] * len(asked.starts)
        values = dict.fromkeys([*(measure.name for measure in MEASURES), HELD], nothing)
        return HistoryRead(Period(asked, values, (), nothing), None, {}, 0, marks, unread)
    period = _period(engine, asked, newest, "", work)
    earlier = None
    if asked.back is not None:
        before = replace(asked, start=asked.start - asked.back, end=asked.end - asked.back, back=None)
        earlier = _period(engine, before, newest, " of the earlier period", work)
    work.step("reading table sizes")
    rows = taken_rows(engine.collected_rows(SIZES, asked.start, asked.end, asked.database))
    tables = changes_by_table(rows, asked, TABLES, period.breaks)
    captured = len({row["capture_instance"] for row in rows} - {None})
    return HistoryRead(period, earlier, tables, captured, marks, unread)


def _marks(engine: Engine, asked: Asked, work: Work) -> tuple[Sequence[Mark], str]:
    """DDL is that of the instances which this reader may read, as `Engine.schema_changes` tells them."""
    work.step("reading what was changed")
    actions = engine.activity(ACTIONS, asked.database)
    marks, unread = configurations(actions), ""
    try:
        marks += cleanups(engine.job_history(asked.database, "cleanup"), actions)
        marks += statements(engine.schema_changes(asked.database))
    except CdcError as error:  # whether a reader may see it is asked of the source, which may be away
        unread = str(error)
    return within(marks, asked.start, asked.end), unread


def _period(engine: Engine, asked: Asked, newest: datetime, which: str, work: Work) -> Period:
    """newest: when the last snapshot that counts was taken."""
    work.step(f"reading sessions{which}")
    points = engine.collected_series(asked.start, asked.end, asked.database, asked.step)
    work.step(f"looking for gaps{which}")
    breaks = engine.collection_breaks(asked.start, asked.end, asked.database)
    ahead = not_yet(asked, newest)
    unknown = breaks if ahead is None else [*breaks, ahead]
    values = {measure.name: series(measure, points, asked, unknown) for measure in MEASURES}
    work.step(f"reading the log held{which}")
    log = taken_rows(engine.collected_rows(LOG, asked.start, asked.end, asked.database))
    held, samples = greatest(log, "retained_bytes", asked), collected_samples(log)
    limits = least_limits(samples, asked)
    return Period(asked, values | {HELD: held}, breaks, limits, is_unlimited(samples))


def taken_rows(table: pa.Table | None) -> list[dict[str, Any]]:
    """What the page needs of the rows of snapshots, their times in UTC."""
    if table is None:
        return []
    wanted = [name for name in _COLUMNS if name in table.column_names]
    rows: list[dict[str, Any]] = table.select(wanted).to_pylist()
    for row in rows:
        row["snapshot_time"] = row["snapshot_time"].astimezone(UTC)
    return rows
