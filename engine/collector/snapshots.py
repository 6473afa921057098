"""The Delta tables of custom_snapshots: appends, compaction, expiry. One collector at a time writes them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pyarrow as pa
from pyspark.sql import SparkSession

from engine.collector.views import PARTITIONS
from engine.lake.failures import jvm_failures
from engine.lake.sql_text import delta_table
from engine.lake.tables import Lake
from engine.lake.vacuum import vacuumed

KEPT_HOURS = 24
"""Nobody asks for an old version; a query that still reads one has a day."""
_PROPERTIES = {
    "delta.deletedFileRetentionDuration": f"interval {KEPT_HOURS} hours",
    "delta.logRetentionDuration": "interval 2 days",
    "delta.checkpointInterval": "20",
}


class SnapshotTables:
    """Output tables by name."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake
        self._made: set[str] = set()

    def append(self, output_table: str, rows: pa.Table) -> None:
        """Appends a snapshot's rows in one commit, and makes the table where it is not there yet.

        Nothing is written where there are no rows. Raises LakeFailed.
        """
        if not rows.num_rows and output_table in self._made:
            return
        with jvm_failures():
            frame = self._spark.createDataFrame(rows).coalesce(1)
            writer = frame.write.format("delta").mode("append").partitionBy(*PARTITIONS)
            writer.options(**_PROPERTIES).save(self._lake.custom_snapshots(output_table))
        self._made.add(output_table)

    def compact(self, output_table: str, collection_set_id: int, day: date | None = None) -> None:
        """Makes one file of a day's many; without a day, of every day's. Raises LakeFailed."""
        which = f"collection_set_id = {collection_set_id:d}"
        if day is not None:
            which += f" AND snapshot_date = DATE'{day}'"
        self._run(f"OPTIMIZE {self._table(output_table)} WHERE {which}")

    def expire(self, output_table: str, collection_set_id: int, first_kept: date) -> None:
        """Deletes what a set collected before a day: whole files, nothing is rewritten. Raises LakeFailed."""
        self._run(
            f"DELETE FROM {self._table(output_table)} WHERE collection_set_id = {collection_set_id:d}"
            f" AND snapshot_date < DATE'{first_kept}'"
        )

    def vacuum(self, output_tables: Sequence[str]) -> None:
        """Removes files that no version of the last day has. Raises LakeFailed, OSError."""
        for name in output_tables:
            if not vacuumed(self._lake.custom_snapshots(name), KEPT_HOURS):
                self._run(f"VACUUM {self._table(name)}")

    def is_there(self, output_table: str) -> bool:
        """Whether the table was ever written to. Raises LakeFailed."""
        if output_table in self._made:
            return True
        path = self._lake.custom_snapshots(output_table)
        with jvm_failures():
            if not _is_delta(self._spark, path):
                return False
        self._made.add(output_table)
        return True

    def _table(self, output_table: str) -> str:
        return delta_table(self._lake.custom_snapshots(output_table))

    def _run(self, statement: str) -> None:
        with jvm_failures():
            self._spark.sql(statement).collect()


def _is_delta(spark: SparkSession, path: str) -> bool:
    from delta.tables import DeltaTable

    return bool(DeltaTable.isDeltaTable(spark, path))
