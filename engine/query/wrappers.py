"""Wrapper functions fn_all_changes_<instance> and fn_net_changes_<instance> (reference/functions.md, 4).

They are the query functions over commit times, as the scripts of sp_cdc_generate_wrapper_function have
them: the start is open, the end closed or open as the wrapper's shape says, and a bound outside the
validity interval is error 313. When one call's end is the next one's start, nothing is lost or repeated,
provided that nothing is captured later with a commit time that is not after that end: ask for an end
before the newest commit time, as the original's pages advise.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from engine.errors import InvalidObjectName
from engine.lake.sql_text import named, quoted
from engine.lake.tables import Lake, lake_columns
from engine.model.capture_instance import CaptureInstance
from engine.model.change import OPERATION, SEQVAL, START_LSN, UPDATE_MASK, Operation
from engine.model.lsn import Lsn
from engine.model.wrapper import (
    CDC_OPERATION,
    CDC_SEQVAL,
    CDC_STARTLSN,
    OPERATION_LETTERS,
    WrapperShape,
    flag_name,
)
from engine.query import all_changes, net_changes
from engine.query.lsn_functions import LsnTimeMapping, TimeBounds, utc
from engine.query.mask_columns import bit_set_text
from engine.query.validity import checked_range


def all_changes_by_time(
    spark: SparkSession,
    lake: Lake,
    instance: CaptureInstance,
    start_time: datetime | None,
    end_time: datetime | None,
    high: Lsn | None,
    row_filter_option: str | None,
    shape: WrapperShape,
    version: int | None = None,
) -> DataFrame:
    """Every change committed after ``start_time`` and up to ``end_time``, in log order.

    Returns ``__CDC_STARTLSN``, ``__CDC_SEQVAL``, the shape's columns, ``__CDC_OPERATION`` (D, I, UN, with
    ``all update old`` also UO) and ``<column>_uflag``: NULL but for UN. None as a bound: that end of the
    validity interval. Raises RangeOutsideValidity.
    """
    lsns = lsn_range(spark, lake, instance, start_time, end_time, high, shape)
    asked = checked_range(
        all_changes.FUNCTION, instance, *lsns, high, row_filter_option, all_changes.ALL_CHANGES_OPTIONS
    )
    leading = [(quoted(START_LSN), CDC_STARTLSN), (quoted(SEQVAL), CDC_SEQVAL)]
    changes = all_changes.changes_in_order(spark, lake, instance, asked, version)
    return changes.selectExpr(*named([*leading, *_selection(instance, shape)]))


def net_changes_by_time(
    spark: SparkSession,
    lake: Lake,
    instance: CaptureInstance,
    start_time: datetime | None,
    end_time: datetime | None,
    high: Lsn | None,
    row_filter_option: str | None,
    shape: WrapperShape,
    version: int | None = None,
) -> DataFrame:
    """The net changes of what was committed after ``start_time`` and up to ``end_time``; no order.

    Returns the shape's columns, ``__CDC_OPERATION`` (D, I, UN; ``all with merge``: D, M) and
    ``<column>_uflag``: NULL but for UN of ``all with mask``. Raises RangeOutsideValidity,
    InvalidObjectName when the instance has no net changes.
    """
    if not instance.supports_net_changes or not instance.index_columns:
        raise InvalidObjectName(f"{net_changes.FUNCTION}{instance.capture_instance}")
    lsns = lsn_range(spark, lake, instance, start_time, end_time, high, shape)
    asked = checked_range(
        net_changes.FUNCTION, instance, *lsns, high, row_filter_option, net_changes.NET_CHANGES_OPTIONS
    )
    changes = net_changes.net_changes_of(spark, lake, instance, asked, lake_columns(instance), version)
    return changes.selectExpr(*named(_selection(instance, shape)))


def lsn_range(
    spark: SparkSession,
    lake: Lake,
    instance: CaptureInstance,
    start_time: datetime | None,
    end_time: datetime | None,
    high: Lsn | None,
    shape: WrapperShape,
) -> tuple[Lsn | None, Lsn | None]:
    """The closed range of LSNs that an interval of commit times means; None for a bound outside validity."""
    low = instance.start_lsn
    if low is None or high is None or (start_time is None and end_time is None):
        return low, high
    mapping = LsnTimeMapping(spark, lake, instance.database, high)
    bounds = mapping.bounds(low, start_time, end_time, shape.closed_high_end_point)
    return (
        low if start_time is None else _after(bounds, utc(start_time)),
        high if end_time is None else _upto(bounds, utc(end_time)),
    )


def _after(bounds: TimeBounds, start: datetime) -> Lsn | None:
    too_early = bounds.low_time is not None and bounds.low_time > start
    if too_early or _too_late(bounds, start) or bounds.before_start is None:
        return None
    return bounds.before_start.next()


def _upto(bounds: TimeBounds, end: datetime) -> Lsn | None:
    return None if _too_late(bounds, end) else bounds.upto_end


def _too_late(bounds: TimeBounds, time: datetime) -> bool:
    return bounds.high_time is not None and bounds.high_time < time


def _selection(instance: CaptureInstance, shape: WrapperShape) -> Sequence[tuple[str, str]]:
    """(expression, name) of the columns that both wrappers have, over the change table's own names."""
    of_name = dict(zip(instance.column_names, lake_columns(instance), strict=True))
    return [
        *((quoted(of_name[name]), name) for name in shape.columns),
        (_letters(), CDC_OPERATION),
        *((_flag(instance, name), flag_name(name)) for name in shape.flags),
    ]


def _letters() -> str:
    cases = " ".join(
        f"WHEN {operation:d} THEN '{letters}'" for operation, letters in OPERATION_LETTERS.items()
    )
    return f"CASE {quoted(OPERATION)} {cases} END"


def _flag(instance: CaptureInstance, column: str) -> str:
    """Whether an update changed the column; NULL for other rows and where there is no mask."""
    bit = bit_set_text(instance.column_names.index(column) + 1)
    is_update = f"{quoted(OPERATION)} = {Operation.UPDATE_NEW:d} AND {quoted(UPDATE_MASK)} IS NOT NULL"
    return f"CASE WHEN {is_update} THEN {bit} END"
