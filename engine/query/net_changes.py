"""cdc.fn_cdc_get_net_changes_<capture_instance> (reference/functions.md, 1.2)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from engine.errors import InvalidObjectName
from engine.lake.sql_text import named, quoted
from engine.lake.tables import Lake, lake_columns
from engine.model.capture_instance import CaptureInstance
from engine.model.change import COMMAND_ID, OPERATION, START_LSN, UPDATE_MASK, Operation
from engine.model.lsn import Lsn
from engine.model.mask import mask_width
from engine.query.all_changes import asked_rows
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
    return net_changes_of(spark, lake, instance, asked, instance.column_names, version)


def net_changes_of(
    spark: SparkSession,
    lake: Lake,
    instance: CaptureInstance,
    asked: ChangeRange,
    names: Sequence[str],
    version: int | None = None,
) -> DataFrame:
    """The net changes asked for. ``names``: how the result calls the captured columns.

    The operation follows from a key's first and last one: whether it was there before, and is after.
    """
    option = asked.row_filter_option
    written = (
        f"{Operation.MERGE:d}"
        if option == ALL_WITH_MERGE
        else f"if(first_operation = {Operation.INSERT:d}, {Operation.INSERT:d}, {Operation.UPDATE_NEW:d})"
    )
    columns = [
        ("start_lsn", START_LSN),
        (f"if(operation = {Operation.DELETE:d}, {Operation.DELETE:d}, {written})", OPERATION),
        ("mask", UPDATE_MASK),
        *((f"c{number}", name) for number, name in enumerate(names)),
    ]
    changes = asked_rows(spark, lake, instance, asked, version)
    changes = changes.where(f"{quoted(OPERATION)} <> {Operation.UPDATE_OLD:d}")
    came_and_went = f"first_operation = {Operation.INSERT:d} AND operation = {Operation.DELETE:d}"
    last = _histories(changes, instance, option == ALL_WITH_MASK).where(f"is_last AND NOT ({came_and_went})")
    return last.selectExpr(*named(columns))


def _histories(changes: DataFrame, instance: CaptureInstance, masks: bool) -> DataFrame:
    """Each change with what its key's history says up to it; captured columns are c0, c1, ….

    changes: without operation 3. One sort serves all: frames end at the row itself, so the last row of a
    key knows of all its changes. That takes half as long as aggregates by `max_by`, which sort before and
    after the exchange.
    """
    columns = lake_columns(instance)
    of_name = dict(zip(instance.column_names, columns, strict=True))
    key = ", ".join(quoted(of_name[name]) for name in instance.index_column_names)
    # A change of a key is one row once operation 3 is left out: its command's place says all.
    order = ", ".join(quoted(name) for name in (START_LSN, COMMAND_ID, OPERATION))
    over = f"OVER (PARTITION BY {key} ORDER BY {order})"
    return changes.selectExpr(
        f"{quoted(START_LSN)} AS start_lsn",
        f"{quoted(OPERATION)} AS operation",
        f"first_value({quoted(OPERATION)}) {over} AS first_operation",
        f"lead(1) {over} IS NULL AS is_last",
        f"{combined_mask(len(columns), over) if masks else 'CAST(NULL AS BINARY)'} AS mask",
        *(f"{quoted(column)} AS c{number}" for number, column in enumerate(columns)),
    )


def combined_mask(columns: int, over: str = "") -> str:
    """SQL for the union of masks: of a group, or of a window, ``over`` (``OVER (…)``).

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
