"""Deleting obsolete change rows, in statements of bounded size (reference/procedures.md, 4).

Files that hold nothing but obsolete rows go first, in one statement that rewrites nothing. What is left
shares files with rows that stay: those are rewritten, a bounded number of rows at a time. Works over
Spark Connect as well: only SQL is sent.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from engine.lake.failures import jvm_failures
from engine.lake.sql_text import delta_table, quoted
from engine.model.change import COMMAND_ID, OPERATION, SEQVAL, START_LSN
from engine.model.lsn import Lsn

_LSN = quoted(START_LSN)
_KEY = tuple(quoted(name) for name in (START_LSN, COMMAND_ID, SEQVAL, OPERATION))


def delete_below(spark: SparkSession, path: str, watermark: Lsn, threshold: int) -> Iterator[int]:
    """Deletes the rows of a change table whose commit LSN is below ``watermark``.

    Each step is one statement and gives the number of rows that it deleted: of whole files first, then
    at most ``threshold``. Nothing obsolete: no step. Raises LakeFailed; what went before stays deleted.
    """
    with jvm_failures():
        table = delta_table(path)
        obsolete = f"{_LSN} < '{watermark}'"
        if boundary := _whole_files_below(spark, table, watermark):
            yield from _delete(spark, table, f"{_LSN} < '{boundary}'")
        while condition := _next_batch(spark, table, obsolete, threshold):
            yield from _delete(spark, table, condition)


def _whole_files_below(spark: SparkSession, table: str, watermark: Lsn) -> str | None:
    """The LSN below which whole files lie; None where every file with obsolete rows has others too."""
    files = f"SELECT min({_LSN}) AS first, max({_LSN}) AS last FROM {table} GROUP BY _metadata.file_path"
    # Without a file that has both, all obsolete rows are in whole files.
    row = spark.sql(
        f"SELECT min(first) FILTER (WHERE last >= '{watermark}'), min(first) FROM ({files})"
        f" WHERE first < '{watermark}'"
    ).first()
    if row is None or row[1] is None:
        return None
    shared, oldest = row
    if shared is None:
        return str(watermark)
    return str(shared) if shared > oldest else None


def _next_batch(spark: SparkSession, table: str, obsolete: str, threshold: int) -> str | None:
    """A condition for the first ``threshold`` obsolete rows in log order; None without any."""
    key = ", ".join(_KEY)
    oldest = f"SELECT {key} FROM {table} WHERE {obsolete} ORDER BY {key} LIMIT {threshold}"
    row = spark.sql(f"SELECT max(struct({key})) AS last FROM ({oldest})").first()
    if row is None or row.last is None:
        return None
    last = ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in row.last)
    return f"{obsolete} AND struct({key}) <= struct({last})"


def _delete(spark: SparkSession, table: str, condition: str) -> Iterator[int]:
    row = spark.sql(f"DELETE FROM {table} WHERE {condition}").first()
    assert row is not None
    if row[0]:
        yield int(row[0])
