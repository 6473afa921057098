"""cdc.fn_cdc_get_all_changes_<capture_instance> (reference/functions.md, 1.1)."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from engine.lake.range_rows import no_rows, range_rows
from engine.lake.sql_text import delta_table, named, quoted, renamed
from engine.lake.tables import Lake, lake_columns
from engine.model.capture_instance import CaptureInstance
from engine.model.change import (
    COMMAND_ID,
    LEADING_COLUMNS,
    OPERATION,
    SEQVAL,
    START_LSN,
    UPDATE_MASK,
    Operation,
)
from engine.model.lsn import Lsn
from engine.query.validity import ChangeRange, checked_range

FUNCTION = "cdc.fn_cdc_get_all_changes_"
"""How error 313 calls the function."""

ALL = "all"
ALL_UPDATE_OLD = "all update old"
ALL_CHANGES_OPTIONS = (ALL, ALL_UPDATE_OLD)
"""Row filter options: updates as their new row, or as their old and their new row."""


def all_changes(
    spark: SparkSession,
    lake: Lake,
    instance: CaptureInstance,
    from_lsn: Lsn | None,
    to_lsn: Lsn | None,
    high: Lsn | None,
    row_filter_option: str | None,
    version: int | None = None,
) -> DataFrame:
    """Every change committed in ``from_lsn`` … ``to_lsn``, in commit order and order of the transaction.

    Returns ``__$start_lsn``, ``__$seqval``, ``__$operation``, ``__$update_mask``, then the captured columns.
    high: the published high watermark. version: of the change table, in which the rows are always read;
    None: in that of the moment, which may lack rows that were cleaned up since. Raises RangeOutsideValidity.
    """
    asked = checked_range(FUNCTION, instance, from_lsn, to_lsn, high, row_filter_option, ALL_CHANGES_OPTIONS)
    metadata = [(quoted(name), name) for name in (START_LSN, SEQVAL, OPERATION, UPDATE_MASK)]
    captured = [
        (quoted(column), name)
        for column, name in zip(lake_columns(instance), instance.column_names, strict=True)
    ]
    return changes_in_order(spark, lake, instance, asked, version).selectExpr(*named(metadata + captured))


def change_table(spark: SparkSession, lake: Lake, instance: CaptureInstance, high: Lsn | None) -> DataFrame:
    """The rows of the change table up to ``high`` in no order, captured columns under the source's names."""
    names = [*LEADING_COLUMNS, *instance.column_names, COMMAND_ID]
    own = [*LEADING_COLUMNS, *lake_columns(instance), COMMAND_ID]
    select = renamed([(quoted(column), name) for column, name in zip(own, names, strict=True)])
    if high is None or instance.start_lsn is None:
        captured = (column.lake_type for column in instance.columns)
        types = ["string", "string", "string", "int", "binary", *captured, "int"]
        return no_rows(spark, zip(types, names, strict=True))
    table = delta_table(lake.change_table(instance.database, instance.capture_instance))
    return spark.sql(f"SELECT {select} FROM {table} WHERE {quoted(START_LSN)} <= '{high}'")


def changes_in_order(
    spark: SparkSession, lake: Lake, instance: CaptureInstance, asked: ChangeRange, version: int | None = None
) -> DataFrame:
    """The rows asked for, in log order, with all columns of the change table under its own names.

    Whoever selects from it keeps the order and may rename: a captured column may be called like a column
    of the order.
    """
    rows = asked_rows(spark, lake, instance, asked, version)
    if asked.row_filter_option == ALL:
        rows = rows.where(f"{quoted(OPERATION)} <> {Operation.UPDATE_OLD:d}")
    return rows.orderBy(*(quoted(name) for name in (START_LSN, COMMAND_ID, SEQVAL, OPERATION)))


def asked_rows(
    spark: SparkSession, lake: Lake, instance: CaptureInstance, asked: ChangeRange, version: int | None
) -> DataFrame:
    """All rows of the range, in no order, with all columns of the change table under its own names."""
    path = lake.change_table(instance.database, instance.capture_instance)
    return range_rows(spark, path, START_LSN, asked.from_lsn, asked.to_lsn, version)
