"""The Delta tables of custom_snapshots: appends, compaction, expiry. One collector at a time writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import structlog
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from engine.collector.day_files import files_by_day
from engine.collector.versions import BEGUN
from engine.collector.views import PARTITIONS
from engine.lake.delta_log import DeltaTables
from engine.lake.failures import LakeFailed, jvm_failures, lake_failures
from engine.lake.file_commits import FileCommit, Purpose
from engine.lake.parquet_files import local_folder
from engine.lake.sql_text import delta_table
from engine.lake.tables import Lake
from engine.lake.vacuum import vacuum

_log = structlog.get_logger(__name__)

COMMITS_A_CHECKPOINT = 20
KEPT_HOURS = 24
"""Nobody asks for an old version; a query that still reads one has a day."""
_PROPERTIES = {
    "delta.deletedFileRetentionDuration": f"interval {KEPT_HOURS} hours",
    "delta.logRetentionDuration": "interval 2 days",
    "delta.checkpointInterval": str(COMMITS_A_CHECKPOINT),
}


_BOUNDED = frozenset({BEGUN, "snapshot_time"})
"""Columns whose bounds Delta's log tells: where a day's sessions begin, and when they were collected."""


class SnapshotTables:
    """Output tables by name."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake
        self._tables = DeltaTables(spark)
        self._made: set[str] = set()

    def append(self, output_table: str, rows: pa.Table) -> None:
        """Appends a snapshot's rows in one commit, and makes the table where it is not there yet.

        rows: of one day and one set. Nothing is written where there are no rows. Raises LakeFailed.
        """
        if not rows.num_rows and output_table in self._made:
            return
        path = self._lake.custom_snapshots(output_table)
        with lake_failures():
            if rows.num_rows and self._tables.files.takes_files(path):
                self._append_file(path, rows)
            else:
                frame = self._spark.createDataFrame(rows).coalesce(1)
                writer = frame.write.format("delta").mode("append").partitionBy(*PARTITIONS)
                writer.options(**_PROPERTIES).save(path)
        self._made.add(output_table)

    def _append_file(self, path: str, rows: pa.Table) -> None:
        """The same without Spark's planning, which takes a second of processor time a table."""
        partition = {name: str(rows[name][0]) for name in PARTITIONS}
        commit = self._tables.files.begin_files(path, Purpose.APPEND, partition, _BOUNDED)
        commit.append(rows.drop_columns(list(PARTITIONS)), fsync=True)
        self._done(path, commit)

    def compact(self, output_table: str, collection_set_id: int, day: date | None = None) -> None:
        """Makes one file of a day's many; without a day, of every day's. Raises LakeFailed."""
        path = self._lake.custom_snapshots(output_table)
        with lake_failures():
            days = self._days(path, collection_set_id)
        if days is None:
            self._optimize(output_table, collection_set_id, day)
            return
        for each, files in days.items():
            if len(files) > 1 and day in (None, each):
                with lake_failures():
                    self._compact_day(path, collection_set_id, each, files)

    def _compact_day(self, path: str, collection_set_id: int, day: date, files: Sequence[str]) -> None:
        partition = _partition(collection_set_id, day)
        commit = self._tables.files.begin_files(path, Purpose.COMPACT, partition, _BOUNDED)
        rows = pa.concat_tables([commit.rows(file) for file in files])
        commit.replace(files, rows, fsync=True)
        self._done(path, commit)

    def _days(self, path: str, collection_set_id: int) -> Mapping[date, Sequence[str]] | None:
        """A set's files by their day; None where only Spark can commit to the table."""
        return files_by_day(path, collection_set_id) if self._tables.files.takes_files(path) else None

    def _done(self, path: str, commit: FileCommit, deleted: int = 0) -> None:
        if not commit.commit(fsync=True, deleted_rows=deleted) or commit.version is None:
            raise LakeFailed("Another writer was faster.")
        if commit.version % COMMITS_A_CHECKPOINT == 0:  # the others' are Delta's, where Spark commits
            try:
                with jvm_failures():
                    self._tables.checkpoint(path, COMMITS_A_CHECKPOINT)
            except (LakeFailed, OSError) as error:  # the rows are there; readers only replay more of the log
                _log.warning("checkpoint not written", path=path, error=str(error))

    def _optimize(self, output_table: str, collection_set_id: int, day: date | None) -> None:
        which = f"collection_set_id = {collection_set_id:d}"
        if day is not None:
            which += f" AND snapshot_date = DATE'{day}'"
        self._run(f"OPTIMIZE {self._table(output_table)} WHERE {which}")

    def expire(self, output_table: str, collection_set_id: int, first_kept: date) -> None:
        """Deletes what a set collected before a day: whole files, nothing is rewritten. Raises LakeFailed."""
        path = self._lake.custom_snapshots(output_table)
        with lake_failures():
            days = self._days(path, collection_set_id)
            if days is not None:
                for day in sorted(day for day in days if day < first_kept):
                    self._expire_day(path, collection_set_id, day, days[day])
                return
        self._run(
            f"DELETE FROM {self._table(output_table)} WHERE collection_set_id = {collection_set_id:d}"
            f" AND snapshot_date < DATE'{first_kept}'"
        )

    def _expire_day(self, path: str, collection_set_id: int, day: date, files: Sequence[str]) -> None:
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        commit = self._tables.files.begin_files(path, Purpose.DELETE, _partition(collection_set_id, day))
        commit.replace(files, commit.schema.empty_table(), fsync=True)
        self._done(path, commit, rows)

    def vacuum(self, output_tables: Sequence[str]) -> None:
        """Removes files that no version of the last day has. Raises LakeFailed, OSError."""
        for name in output_tables:
            try:
                done = vacuum(self._lake.custom_snapshots(name), KEPT_HOURS, orphans=False)
            except DeltaError:  # a feature of the table that only Spark knows
                done = None
            if done is None:
                self._run(f"VACUUM {self._table(name)}")

    def is_there(self, output_table: str) -> bool:
        """Whether the table was ever written to. Raises LakeFailed."""
        if output_table not in self._made and self._is_delta(self._lake.custom_snapshots(output_table)):
            self._made.add(output_table)
        return output_table in self._made

    def _is_delta(self, path: str) -> bool:
        folder = local_folder(path)
        if folder is not None:
            # Where making the table failed, on a full disk for one, a log without an entry may be left.
            return any((folder / "_delta_log").glob("*.json"))
        with jvm_failures():
            return _is_delta(self._spark, path)

    def _table(self, output_table: str) -> str:
        return delta_table(self._lake.custom_snapshots(output_table))

    def _run(self, statement: str) -> None:
        with jvm_failures():
            self._spark.sql(statement).collect()


def _partition(collection_set_id: int, day: date) -> Mapping[str, str]:
    return dict(zip(PARTITIONS, (str(day), str(collection_set_id)), strict=True))


def _is_delta(spark: SparkSession, path: str) -> bool:
    from delta.tables import DeltaTable

    return bool(DeltaTable.isDeltaTable(spark, path))
