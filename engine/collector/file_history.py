"""The history of scan sessions straight from the lake's files: no Spark job, no agent.

30 days of 20 databases are some fifty small files: Arrow has read them before Spark begins to. Each answer
is None where only Spark can give it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.collector.breaks import Run, restarts
from engine.collector.day_files import days_of, rows_of_days
from engine.collector.ranges import HistoryRange
from engine.collector.versions import BEGUN, KEY, VERSION, Part, told_once
from engine.collector.views import SESSIONS, SESSIONS_TABLE
from engine.lake.tables import Lake
from engine.model.collection import HistoryBreak, HistoryPoint

MOST_SESSIONS = 100_000
"""Sessions of an answer that are told at once; more stay in Spark, which need not hold them all."""
SESSION_COLUMNS = ("database_name", "engine_start", *SESSIONS.columns.names)
"""Columns of an answer with sessions."""
_SUMMED = ("tran_count", "command_count", "log_record_count", "duration", "error_count")
_GREATEST = ("empty_scan_count",)
_STRETCH = ("database_name", "stretch")


class FileHistory:
    """Of a lake in a local folder."""

    def __init__(self, lake: Lake) -> None:
        self._path = lake.custom_snapshots(SESSIONS_TABLE)

    def sessions(self, asked: HistoryRange) -> pa.Table | None:
        """Each session of the range once, as it was known last; `SESSION_COLUMNS`, in no order."""
        schema = pa.schema([SESSIONS.schema.field(name) for name in SESSION_COLUMNS])
        found = self._sessions(asked, list(SESSION_COLUMNS))
        if found is None:
            return None
        parts, count = [schema.empty_table()], 0
        for part in found:
            count += part.num_rows
            if count > MOST_SESSIONS:
                return None
            parts.append(part.select(list(SESSION_COLUMNS)).cast(schema))
        return pa.concat_tables(parts)

    def series(self, asked: HistoryRange, bucket_seconds: int) -> Sequence[HistoryPoint] | None:
        """What sessions did in each stretch of so many seconds since 1970, by database and time."""
        found = self._sessions(asked, ["latency", *_SUMMED, *_GREATEST])
        return None if found is None else points(found, bucket_seconds)

    def engine_restarts(self, asked: HistoryRange) -> Sequence[HistoryBreak] | None:
        """Where another run of capture begins to give a database its sessions, in order of time."""
        days = days_of(self._path, asked)
        if days is None:
            return None
        run = ["database_name", "engine_start"]
        parts = []
        columns = [*run, "session_id", "snapshot_time", VERSION]
        for part in rows_of_days(days, SESSIONS, columns, asked):
            of_runs = part.rows.filter(pc.equal(part.rows["session_id"], 0))
            within = of_runs.filter(_within(of_runs["snapshot_time"], asked))
            said = [("snapshot_time", "min"), ("snapshot_time", "max"), (VERSION, "min")]
            parts.append(_decoded(within).group_by(run).aggregate(said))
        if not parts:
            return []
        said = [("snapshot_time_min", "min"), ("snapshot_time_max", "max"), (f"{VERSION}_min", "min")]
        found = pa.concat_tables(parts).group_by(run).aggregate(said).to_pylist()
        return restarts(
            Run(
                each["database_name"],
                each[f"{VERSION}_min_min"],
                each["snapshot_time_min_min"],
                each["snapshot_time_max_max"],
                each["engine_start"],
            )
            for each in found
        )

    def _sessions(self, asked: HistoryRange, columns: Sequence[str]) -> Iterator[pa.Table] | None:
        """Sessions of the range, each once, with at least these columns."""
        days = days_of(self._path, asked)
        if days is None:
            return None
        needed = list(dict.fromkeys([*KEY, VERSION, BEGUN, *columns]))
        rows = rows_of_days(days, SESSIONS, needed, asked)
        return told_once(_begun_within(rows, asked))


def points(sessions: Iterable[pa.Table], bucket_seconds: int) -> Sequence[HistoryPoint]:
    """Sums of sessions, each of which is there once, by database and stretch of time. Pure."""
    parts = [_sums(part, bucket_seconds) for part in sessions]
    if not parts:
        return []
    kinds = {"latency_max": "max", **{f"{name}_max": "max" for name in _GREATEST}}
    together = pa.concat_tables(parts)
    said = [(name, kinds.get(name, "sum")) for name in together.column_names if name not in _STRETCH]
    sums = together.group_by(list(_STRETCH)).aggregate(said)
    sums = sums.rename_columns(
        [name if name in _STRETCH else name.rsplit("_", 1)[0] for name in sums.column_names]
    )
    ordered = sums.sort_by([(name, "ascending") for name in _STRETCH])
    return [_point(row, bucket_seconds) for row in ordered.to_pylist()]


def _sums(rows: pa.Table, bucket_seconds: int) -> pa.Table:
    micros = rows[BEGUN].cast(pa.int64())
    # Whole numbers are divided towards zero: a time before 1970 belongs to the stretch below.
    length = bucket_seconds * 1_000_000
    quotient = pc.divide(micros, length)
    is_below = pc.less(micros, pc.multiply(quotient, length))
    had_work = pc.greater(rows["tran_count"], 0)
    columns = {
        "database_name": rows["database_name"].cast(pa.string()),
        "stretch": pc.subtract(quotient, is_below.cast(pa.int64())),
        "latency": pc.if_else(had_work, rows["latency"], None),
        **{name: rows[name] for name in (*_SUMMED, *_GREATEST)},
    }
    said: list[tuple[str, str]] = [("stretch", "count"), ("latency", "max")]
    said += [("latency", "sum"), ("latency", "count"), *((name, "sum") for name in _SUMMED)]
    said += [(name, "max") for name in _GREATEST]
    return pa.table(columns).group_by(list(_STRETCH)).aggregate(said)


def _point(row: Mapping[str, Any], bucket_seconds: int) -> HistoryPoint:
    with_work = row["latency_count"]
    return HistoryPoint(
        database=row["database_name"],
        start=datetime.fromtimestamp(row["stretch"] * bucket_seconds, UTC),
        sessions=row["stretch_count"],
        latency_max=row["latency_max"],
        latency_mean=row["latency_sum"] / with_work if with_work else None,
        **{name: row[f"{name}_sum"] for name in _SUMMED},
        **{name: row[f"{name}_max"] for name in _GREATEST},
    )


def _begun_within(parts: Iterable[Part], asked: HistoryRange) -> Iterator[Part]:
    """Rows of sessions that began in the range; session 0 is none."""
    for part in parts:
        is_one = pc.not_equal(part.rows["session_id"], 0)
        yield replace(part, rows=part.rows.filter(pc.and_(is_one, _within(part.rows[BEGUN], asked))))


def _within(moments: pa.ChunkedArray, asked: HistoryRange) -> pa.ChunkedArray:
    start, end = (pa.scalar(moment.astimezone(UTC), moments.type) for moment in (asked.start, asked.end))
    return pc.and_(pc.greater_equal(moments, start), pc.less(moments, end))


def _decoded(rows: pa.Table) -> pa.Table:
    place = rows.schema.get_field_index("database_name")
    return rows.set_column(place, "database_name", rows["database_name"].cast(pa.string()))
