"""What was collected, asked over a range of time: sessions without repetition, latency, throughput, breaks.

A session belongs to the time it began at, which never changes, so ranges that meet lose and repeat nothing.
It is in every snapshot that was taken while it could still change: of these the last one that counts wins.
Works over Spark Connect as well: only SQL is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from engine.collector.breaks import Run, restarts
from engine.collector.day_files import days_of, rows_of_days
from engine.collector.file_history import SESSION_COLUMNS, FileHistory
from engine.collector.ranges import HistoryRange
from engine.collector.views import SESSIONS, SESSIONS_TABLE, CollectedView
from engine.lake.sql_text import delta_table, quoted
from engine.lake.tables import Lake
from engine.model.collection import HistoryBreak, HistoryPoint
from engine.query.failures import fetching

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


class History:
    """The history of scan sessions: by Arrow where that can read the lake, else by Spark.

    spark: asked for a session where one is needed.
    """

    def __init__(self, spark: Callable[[], SparkSession], lake: Lake) -> None:
        self._spark = spark
        self._lake = lake
        self._files = FileHistory(lake)

    def sessions(self, asked: HistoryRange) -> DataFrame:
        """Each session that began in the range once, as it was known last; columns of the view and its run.

        ``database_name``, ``engine_start``, then the 21 columns; in no order. Session 0 is none.
        """
        found = self._files.sessions(asked)
        if found is None:
            return self._by_spark().sessions(asked)
        return frame_of(self._spark(), found)

    def series(self, asked: HistoryRange, bucket_seconds: int) -> Sequence[HistoryPoint]:
        """What sessions did in each stretch of so many seconds, counted from 1970, by database and time.

        A stretch without a session has no point.
        """
        found = self._files.series(asked, bucket_seconds)
        return self._by_spark().series(asked, bucket_seconds) if found is None else found

    def engine_restarts(self, asked: HistoryRange) -> Sequence[HistoryBreak]:
        """Where another run of capture begins to give a database its sessions, in order of time."""
        found = self._files.engine_restarts(asked)
        return self._by_spark().engine_restarts(asked) if found is None else found

    def _by_spark(self) -> SparkHistory:
        return SparkHistory(self._spark(), self._lake)


class SparkHistory:
    """The same, wherever the lake is and however much of it is asked for."""

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
            f" min(snapshot_id) AS number FROM {self._table} WHERE session_id = 0 AND {_condition(asked)}"
            f" AND snapshot_time >= {_moment(asked.start)} AND snapshot_time < {_moment(asked.end)}"
            " GROUP BY database_name, engine_start"
        )
        return restarts(
            Run(row["database_name"], row["number"], row["first"], row["last"], row["engine_start"])
            for row in self._rows(query)
        )

    def _of(self, asked: HistoryRange) -> str:
        return (
            f"session_id <> 0 AND start_time >= {_moment(asked.start)} AND start_time < {_moment(asked.end)}"
            f" AND {_condition(asked)}"
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


def rows_taken(
    spark: Callable[[], SparkSession], lake: Lake, output_table: str, view: CollectedView, asked: HistoryRange
) -> pa.Table | None:
    """Rows of snapshots that count and were taken in the range, with the view's columns and their times.

    By Arrow where that can read the table, else by Spark; None where it was never written.
    """
    columns = [*view.columns.names, "database_name", "snapshot_time", "snapshot_id"]
    days = days_of(lake.custom_snapshots(output_table), asked)
    if days is None:
        frame = collected_rows(spark(), lake, output_table, asked.not_counted, asked.database)
        if frame is None:
            return None
        times = f"snapshot_time >= {_moment(asked.start)} AND snapshot_time < {_moment(asked.end)}"
        with fetching():
            return frame.where(times).select(*columns).toArrow()
    parts = [part.rows for part in rows_of_days(days, view, columns, asked)]
    if not parts:
        return pa.schema([view.schema.field(name) for name in columns]).empty_table()
    rows = pa.concat_tables(parts)
    inside = pc.and_(
        pc.greater_equal(rows["snapshot_time"], asked.start), pc.less(rows["snapshot_time"], asked.end)
    )
    return rows.filter(inside)


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
        return frame_of(spark, view.schema.empty_table()).select(*SESSION_COLUMNS)


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows that are known, as a DataFrame."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(rows if rows.num_rows else [], from_arrow_schema(rows.schema))


def _counted(not_counted: Sequence[int], database: str | None) -> Sequence[str]:
    """Conditions for rows of whole snapshots, of a database where one is named."""
    numbers = ", ".join(str(int(each)) for each in not_counted)
    whole = [f"snapshot_id NOT IN ({numbers})"] if numbers else []
    if database is None:
        return whole
    # As bytes: no name can end the text that it stands in.
    return [*whole, f"database_name = CAST(X'{database.encode().hex()}' AS string)"]


def _condition(asked: HistoryRange) -> str:
    """What rows of the range's snapshots meet; a day's files are skipped by their folder."""
    parts = [f"snapshot_date >= DATE'{asked.first_day}'"]
    if asked.last_day is not None:
        parts.append(f"snapshot_date <= DATE'{asked.last_day}'")
    return " AND ".join([*parts, *_counted(asked.not_counted, asked.database)])


def _moment(moment: datetime) -> str:
    return f"TIMESTAMP'{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC'"
