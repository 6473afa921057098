"""Deleting obsolete change rows, in statements of bounded size (reference/procedures.md, 4).

Files that hold nothing but obsolete rows go first, in one statement that rewrites nothing. What is left
shares files with rows that stay: those are rewritten, a bounded number of rows at a time. In a local lake
`engine.lake.file_deletion` does so; SQL does elsewhere, over Spark Connect as well. What Delta's log says is
not asked of Spark: most tables of most runs have nothing obsolete, and a job would read the LSNs of all files
to find that out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from pyspark.sql import SparkSession

from engine.lake.failures import lake_failures
from engine.lake.file_deletion import FileDeletion, files_below
from engine.lake.file_tables import FileTables
from engine.lake.log_entries import NoLinksError
from engine.lake.obsolete_rows import is_obsolete
from engine.lake.range_files import RangeFile
from engine.lake.sql_text import delta_table, quoted
from engine.model.change import COMMAND_ID, OPERATION, SEQVAL, START_LSN
from engine.model.lsn import Lsn

CHANGE_KEY = (START_LSN, COMMAND_ID, SEQVAL, OPERATION)
"""What orders the rows of a change table, its commit LSN first."""
MAPPING_KEY = ("start_lsn",)
"""The same of cdc.lsn_time_mapping."""

MOST_ROWS = 2**31 - 1
"""More than these a LIMIT cannot say."""


def delete_below(
    spark: SparkSession,
    path: str,
    watermark: Lsn,
    threshold: int,
    key: Sequence[str] = CHANGE_KEY,
    by_files: FileDeletion | None = None,
) -> Iterator[int]:
    """Deletes the rows of a change table, or of another with such a ``key``, below ``watermark``.

    Each step is one statement and gives the number of rows that it deleted: of whole files first, then
    at most ``threshold``. Nothing obsolete: no step. by_files: whose memory of the tables serves. Raises
    LakeFailed; what went before stays deleted.
    """
    by_files = by_files or FileDeletion(FileTables())
    with lake_failures():
        with suppress(NoLinksError):  # raised before the first step; capture commits as Spark does there
            if (yield from by_files.steps(path, watermark, threshold, key)):
                return
        yield from _delete_by_sql(spark, path, watermark, threshold, key)


def _delete_by_sql(
    spark: SparkSession, path: str, watermark: Lsn, threshold: int, key: Sequence[str]
) -> Iterator[int]:
    table = delta_table(path)
    order = [quoted(name) for name in key]
    files = files_below(path, key[0], watermark)
    if files is None:
        boundary = _whole_files_below(spark, table, order[0], watermark)
    else:
        boundary = _whole_below(files, watermark)
    if boundary is not None:
        yield from _delete(spark, table, f"{order[0]} < '{boundary}'")
    obsolete = f"{order[0]} < '{watermark}'"
    while files_below(path, key[0], watermark) != [] and (
        condition := _next_batch(spark, table, order, obsolete, threshold)
    ):
        yield from _delete(spark, table, condition)


def _whole_below(files: Sequence[RangeFile], low: Lsn) -> Lsn | None:
    """Below which LSN there are whole files only; None where every file with obsolete rows has others too.

    files: those with rows below ``low``. SQL names rows, not files: one that is older than the first file
    with other rows too is left for later.
    """
    if not files:
        return None
    oldest = min(file.least for file in files)
    boundary = min((file.least for file in files if not is_obsolete(file, low)), default=str(low))
    return Lsn.parse(boundary) if oldest < boundary else None


def _whole_files_below(spark: SparkSession, table: str, lsn: str, watermark: Lsn) -> Lsn | None:
    """The LSN below which whole files lie; None where every file with obsolete rows has others too."""
    files = f"SELECT min({lsn}) AS first, max({lsn}) AS last FROM {table} GROUP BY _metadata.file_path"
    # Without a file that has both, all obsolete rows are in whole files.
    row = spark.sql(
        f"SELECT min(first) FILTER (WHERE last >= '{watermark}'), min(first) FROM ({files})"
        f" WHERE first < '{watermark}'"
    ).first()
    if row is None or row[1] is None:
        return None
    shared, oldest = row
    if shared is None:
        return watermark
    return Lsn.parse(shared) if shared > oldest else None


def _next_batch(
    spark: SparkSession, table: str, order: Sequence[str], obsolete: str, threshold: int
) -> str | None:
    """A condition for the first ``threshold`` obsolete rows in log order; None without any."""
    key = ", ".join(order)
    oldest = f"SELECT {key} FROM {table} WHERE {obsolete} ORDER BY {key} LIMIT {min(threshold, MOST_ROWS)}"
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
