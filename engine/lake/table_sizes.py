"""How large the lake's tables are, from Delta's logs: no Spark job where the log can be read directly."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.sql import SparkSession

from engine.lake.failures import jvm_failures
from engine.lake.live_files import TableVersion, live_files
from engine.lake.parquet_files import local_folder
from engine.lake.sql_text import delta_table
from engine.lake.tail import TableTail
from engine.model.table_size import TableSize


def size_in_log(path: str) -> TableSize | None:
    """The table's size as its log says; None where there is none. DeltaError for what only Spark knows."""
    try:
        return _size(live_files(path))
    except TableNotFoundError:
        return None


def table_size(path: str, spark: Callable[[], SparkSession]) -> TableSize | None:
    """The table's size now; None where there is none. Spark is asked for what its log does not say.

    Raises LakeFailed, and what ``spark`` raises.
    """
    if local_folder(path) is not None:
        with suppress(DeltaError):  # a feature of the table that only Spark knows
            return size_in_log(path)
    return _by_spark(spark(), path)


class TableSizes:
    """Remembers each table's size with its version: one that has not changed costs a look at its log."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tail = TableTail()
        self._known: dict[str, tuple[int, TableSize]] = {}

    def of(self, path: str) -> TableSize | None:
        """The table's size now; None where there is none. Raises LakeFailed."""
        if local_folder(path) is None:
            return _by_spark(self._spark, path)
        version = self._tail.version(path)
        if version is None:
            return None
        known = self._known.get(path)
        if known is not None and known[0] == version:
            return known[1]
        try:
            table = live_files(path)
        except TableNotFoundError:
            return None
        except DeltaError:  # a feature of the table that only Spark knows
            return _by_spark(self._spark, path)
        size = _size(table)
        self._known[path] = (table.version, size)
        return size


def _by_spark(spark: SparkSession, path: str) -> TableSize | None:
    name = delta_table(path)
    with jvm_failures():
        detail = spark.sql(f"DESCRIBE DETAIL {name}").first()
        if detail is None or detail["numFiles"] is None:
            return None
        counted = spark.sql(f"SELECT count(*) FROM {name}").first()
    assert counted is not None
    return TableSize(int(counted[0]), int(detail["numFiles"]), int(detail["sizeInBytes"]))


def _size(table: TableVersion) -> TableSize:
    files = table.files.values()
    return TableSize(sum(file.rows or 0 for file in files), len(files), sum(file.size for file in files))
