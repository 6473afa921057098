"""cdc.fn_cdc_get_net_changes_<capture_instance> (reference/functions.md, 1.2)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from engine.errors import InvalidObjectName
from engine.lake.sql_text import delta_table, quoted, renamed
from engine.lake.tables import Lake, lake_columns
from engine.model.capture_instance import CaptureInstance
from engine.model.change import COMMAND_ID, OPERATION, START_LSN, UPDATE_MASK, Operation
from engine.model.lsn import Lsn
from engine.model.mask import mask_width
from engine.query.validity import ChangeRange, checked_range

FUNCTION = "cdc.fn_cdc_get_net_changes_"
"""How error 313 calls the function."""

ALL = "all"
ALL_WITH_MASK = "all with mask"
ALL_WITH_MERGE = "all with merge"
NET_CHANGES_OPTIONS = (ALL, ALL_WITH_MASK, ALL_WITH_MERGE)
"""Row filter options: operations; also the mask of all changes; insert and update as one operation."""

_CHUNK_DIGITS = 14
"""Hex digits of a mask that are combined as one non-negative bigint."""
_OF_KEY = "OVER of_key"

Columns = Sequence[tuple[str, str]]
"""Captured columns: the change table's name and the result's."""


def net_changes(
    spark: SparkSession,
    lake: Lake,
    instance: CaptureInstance,
    from_lsn: Lsn | None,
    to_lsn: Lsn | None,
    high: Lsn | None,
    row_filter_option: str | None,
    version: int | None = None,
) -> DataFrame:
    """One row for each row identifier changed in ``from_lsn`` … ``to_lsn``, with its final content.

    Returns ``__$start_lsn`` (of the key's last change), ``__$operation``, ``__$update_mask`` (NULL unless
    ``all with mask``), then the captured columns; no order. high: the published high watermark; version as
    in `all_changes`.
    Raises RangeOutsideValidity, InvalidObjectName when the instance has no net changes.
    """
    if not instance.supports_net_changes or not instance.index_columns:
        raise InvalidObjectName(f"cdc.fn_cdc_get_net_changes_{instance.capture_instance}")
    asked = checked_range(FUNCTION, instance, from_lsn, to_lsn, high, row_filter_option, NET_CHANGES_OPTIONS)
    return spark.sql(net_changes_of(lake, instance, asked, instance.column_names, version))


def net_changes_of(
    lake: Lake,
    instance: CaptureInstance,
    asked: ChangeRange,
    names: Sequence[str],
    version: int | None = None,
) -> str:
    """SQL for the net changes asked for. ``names``: how the result calls the captured columns."""
    table = delta_table(lake.change_table(instance.database, instance.capture_instance), version)
    condition = asked.condition(quoted(START_LSN))
    changes = f"SELECT * FROM {table} WHERE {condition} AND {quoted(OPERATION)} <> {Operation.UPDATE_OLD:d}"
    columns = lake_columns(instance)
    of_name = dict(zip(instance.column_names, columns, strict=True))
    key = [of_name[name] for name in instance.index_column_names]
    return net_changes_text(changes, key, list(zip(columns, names, strict=True)), asked.row_filter_option)


def net_changes_text(changes: str, key: Sequence[str], columns: Columns, option: str) -> str:
    """The SQL over ``changes``, a query for rows of a change table without operation 3.

    key: columns that identify a row; columns: captured columns and how the result calls them.
    The operation follows from a key's first and last one: whether it was there before, and is after.
    """
    mask = combined_mask(len(columns), _OF_KEY) if option == ALL_WITH_MASK else "CAST(NULL AS BINARY)"
    written = (
        f"{Operation.MERGE:d}"
        if option == ALL_WITH_MERGE
        else f"if(first_operation = {Operation.INSERT:d}, {Operation.INSERT:d}, {Operation.UPDATE_NEW:d})"
    )
    select = renamed(
        [
            ("start_lsn", START_LSN),
            (f"if(operation = {Operation.DELETE:d}, {Operation.DELETE:d}, {written})", OPERATION),
            ("mask", UPDATE_MASK),
            *((f"c{number}", name) for number, (_, name) in enumerate(columns)),
        ]
    )
    came_and_went = f"first_operation = {Operation.INSERT:d} AND operation = {Operation.DELETE:d}"
    return (
        f"SELECT {select} FROM ({_histories(changes, key, columns, mask)})"
        f" WHERE is_last AND NOT ({came_and_went})"
    )


def _histories(changes: str, key: Sequence[str], columns: Columns, mask: str) -> str:
    """SQL for each change with what its key's history says up to it; captured columns are c0, c1, ….

    One sort serves all: frames end at the row itself, so the last row of a key knows of all its changes.
    That takes half as long as aggregates by `max_by`, which sort before and after the exchange.
    """
    # A change of a key is one row once operation 3 is left out: its command's place says all.
    order = ", ".join(quoted(name) for name in (START_LSN, COMMAND_ID, OPERATION))
    captured = ", ".join(f"{quoted(column)} AS c{number}" for number, (column, _) in enumerate(columns))
    return (
        f"SELECT {quoted(START_LSN)} AS start_lsn, {quoted(OPERATION)} AS operation,"
        f" first_value({quoted(OPERATION)}) {_OF_KEY} AS first_operation,"
        f" lead(1) {_OF_KEY} IS NULL AS is_last, {mask} AS mask, {captured} FROM ({changes})"
        f" WINDOW of_key AS (PARTITION BY {', '.join(quoted(name) for name in key)} ORDER BY {order})"
    )


def combined_mask(columns: int, over: str = "") -> str:
    """SQL for the union of masks: of a group, or of a window named by ``over`` (``OVER w``).

    Spark combines no bits of binaries, so hex digits go through bigints a few bytes at a time. Inserts and
    deletes have all bits set, hence so has any net row that a whole row takes part in.
    """
    digits = 2 * mask_width(columns)
    text = f"lpad(hex({quoted(UPDATE_MASK)}), {digits}, '0')"
    chunks = [(first, min(_CHUNK_DIGITS, digits - first)) for first in range(0, digits, _CHUNK_DIGITS)]
    combined = []
    for first, width in chunks:
        bits = f"CAST(conv(substr({text}, {first + 1}, {width}), 16, 10) AS BIGINT)"
        combined.append(f"lpad(hex(bit_or({bits}) {over}), {width}, '0')")
    return f"unhex(concat({', '.join(combined)}))"
