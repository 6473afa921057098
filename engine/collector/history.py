"""What was collected, asked over a range of time: sessions without repetition, latency, throughput, breaks.

A session belongs to the time it began at, which never changes, so ranges that meet lose and repeat nothing.
It is in every snapshot that was taken while it could still change: of these the last one that counts wins.
Works over Spark Connect as well: only SQL is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from engine.collector.views import SESSIONS, SESSIONS_TABLE, CollectedView
from engine.lake.sql_text import delta_table, quoted
from engine.lake.tables import Lake
from engine.model.collection import BreakKind, HistoryBreak, HistoryPoint
from engine.query.failures import fetching

CLOCK_MARGIN = timedelta(days=1)
"""How far a clock may have been set back between a session's begin and its snapshot."""
_KEY = "database_name, engine_start, session_id"
_NOT_THERE = ("PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_MISSING")
_VALUES = (
    "latency",
    "tran_count",
    "command_count",
    "log_record_count",
    "duration",
    "empty_scan_count",
    "error_count",
)


@dataclass(frozen=True, slots=True)
class HistoryRange:
    """[start, end) of sessions' beginnings, of one database or all.

    taken_until: when the first snapshot at or after ``end`` was taken, in which the last sessions of the
    range are; None: all later ones are looked through. not_counted: snapshots that are no whole ones.
    """

    start: datetime
    end: datetime
    database: str | None = None
    taken_until: datetime | None = None
    not_counted: Sequence[int] = ()

    def condition(self) -> str:
        """What rows of the range's snapshots meet; a day's files are skipped by their folder."""
        parts = [f"snapshot_date >= DATE'{_day(self.start, -CLOCK_MARGIN)}'"]
        if self.taken_until is not None:
            parts.append(f"snapshot_date <= DATE'{_day(self.taken_until, CLOCK_MARGIN)}'")
        return " AND ".join([*parts, *_counted(self.not_counted, self.database)])


class History:
    """The history of scan sessions in the lake."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._table = delta_table(lake.custom_snapshots(SESSIONS_TABLE))

    def sessions(self, asked: HistoryRange) -> DataFrame:
        """Each session that began in the range once, as it was known last; columns of the view and its run.

        ``database_name``, ``engine_start``, then the 21 columns; in no order. Session 0 is none.
        """
        columns = ", ".join(quoted(name) for name in SESSIONS.columns.names)
        return sql_or_nothing(
            self._spark,
            f"SELECT database_name, engine_start, {columns} FROM ("
            f" SELECT *, row_number() OVER (PARTITION BY {_KEY} ORDER BY snapshot_id DESC) AS version"
            f" FROM {self._table} WHERE {self._of(asked)}) WHERE version = 1",
            SESSIONS,
        )

    def series(self, asked: HistoryRange, bucket_seconds: int) -> Sequence[HistoryPoint]:
        """What sessions did in each stretch of so many seconds, counted from 1970, by database and time.

        A stretch without a session has no point.
        """
        # Per column rather than per row: such a sum is kept in place, a whole row would have to be sorted.
        last = ", ".join(f"max_by({name}, snapshot_id) AS {name}" for name in _VALUES)
        stretch = f"CAST(floor(unix_micros(begun) / ({bucket_seconds:d} * 1000000D)) AS bigint)"
        query = (
            f"SELECT database_name AS database, {stretch} * {bucket_seconds:d} AS start,"
            " count(*) AS sessions,"
            " CAST(max(latency) FILTER (WHERE tran_count > 0) AS int) AS latency_max,"
            " avg(latency) FILTER (WHERE tran_count > 0) AS latency_mean,"
            " sum(tran_count) AS tran_count, sum(command_count) AS command_count,"
            " sum(log_record_count) AS log_record_count, sum(duration) AS duration,"
            " max(empty_scan_count) AS empty_scan_count, sum(error_count) AS error_count"
            f" FROM (SELECT {_KEY}, max(start_time) AS begun, {last}"
            f" FROM {self._table} WHERE {self._of(asked)} GROUP BY {_KEY})"
            " GROUP BY 1, 2 ORDER BY 1, 2"
        )
        rows = self._rows(query)
        return [HistoryPoint(**(row | {"start": datetime.fromtimestamp(row["start"], UTC)})) for row in rows]

    def engine_restarts(self, asked: HistoryRange) -> Sequence[HistoryBreak]:
        """Where another run of capture begins to give a database its sessions, in order of time."""
        query = (
            "SELECT database_name, engine_start, min(snapshot_time) AS first, max(snapshot_time) AS last,"
            f" min(snapshot_id) AS number FROM {self._table} WHERE session_id = 0 AND {asked.condition()}"
            f" AND snapshot_time >= {_moment(asked.start)} AND snapshot_time < {_moment(asked.end)}"
            " GROUP BY database_name, engine_start ORDER BY database_name, number"
        )
        rows = self._rows(query)
        found = [
            HistoryBreak(BreakKind.ENGINE_RESTART, before["last"], after["first"], after["database_name"])
            for before, after in pairwise(rows)
            if before["database_name"] == after["database_name"]
        ]
        return sorted(found, key=lambda each: (each.start, each.database or ""))

    def _of(self, asked: HistoryRange) -> str:
        return (
            f"session_id <> 0 AND start_time >= {_moment(asked.start)} AND start_time < {_moment(asked.end)}"
            f" AND {asked.condition()}"
        )

    def _rows(self, query: str) -> list[dict[str, Any]]:
        frame = sql_or_nothing(self._spark, query)
        with fetching():
            return [] if not frame.columns else list(frame.toArrow().to_pylist())


def collected_rows(
    spark: SparkSession,
    lake: Lake,
    output_table: str,
    not_counted: Sequence[int],
    database: str | None = None,
) -> DataFrame | None:
    """custom_snapshots.<output_table>, snapshots that count, of all databases or one.

    None where that table was never written.
    """
    table = delta_table(lake.custom_snapshots(output_table.lower()))
    condition = " AND ".join(["true", *_counted(not_counted, database)])
    frame = sql_or_nothing(spark, f"SELECT * FROM {table} WHERE {condition}")
    return frame if frame.columns else None


def sql_or_nothing(spark: SparkSession, query: str, view: CollectedView | None = None) -> DataFrame:
    """A query's rows; where its table was never written none, of the view's columns if there is a view."""
    with fetching():
        try:
            frame = spark.sql(query)
            frame.columns  # noqa: B018 - over Connect a query is looked at no sooner
            return frame
        except AnalysisException as error:
            if not (error.getCondition() or "").startswith(_NOT_THERE):
                raise
        if view is None:
            return spark.sql("SELECT 1").select()
        from pyspark.sql.pandas.types import from_arrow_schema

        names = ("database_name", "engine_start", *view.columns.names)
        schema = from_arrow_schema(view.schema)
        return spark.createDataFrame([], schema).select(*names)


def _counted(not_counted: Sequence[int], database: str | None) -> Sequence[str]:
    """Conditions for rows of whole snapshots, of a database where one is named."""
    numbers = ", ".join(str(int(each)) for each in not_counted)
    whole = [f"snapshot_id NOT IN ({numbers})"] if numbers else []
    if database is None:
        return whole
    # As bytes: no name can end the text that it stands in.
    return [*whole, f"database_name = CAST(X'{database.encode().hex()}' AS string)"]


def _day(moment: datetime, margin: timedelta) -> date:
    try:
        return (moment.astimezone(UTC) + margin).date()
    except OverflowError:
        return date.min if margin < timedelta(0) else date.max


def _moment(moment: datetime) -> str:
    return f"TIMESTAMP'{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC'"
