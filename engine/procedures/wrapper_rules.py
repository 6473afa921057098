"""What sys.sp_cdc_generate_wrapper_function allows (reference/procedures.md, 5): pure rules."""

from __future__ import annotations

from engine.errors import CdcError, NotABit, WrapperColumnNotCaptured, WrapperFlagNotCaptured
from engine.model.capture_instance import CaptureInstance
from engine.model.wrapper import WrapperShape
from engine.procedures.column_list import parse_column_list


def wrapper_shape(
    instance: CaptureInstance,
    closed_high_end_point: bool | int = True,
    column_list: str | None = None,
    update_flag_list: str | None = None,
) -> WrapperShape:
    """The shape that these parameters give a wrapper function; empty lists are like NULL.

    Raises NotABit (22844), WrapperColumnNotCaptured (22918), WrapperFlagNotCaptured (22919), and what
    a captured column list raises when it cannot be read (22942, 22965).
    """
    if closed_high_end_point not in (0, 1):
        raise NotABit("@closed_high_end_point")
    columns = _captured(instance, column_list, WrapperColumnNotCaptured)
    flags = _captured(instance, update_flag_list, WrapperFlagNotCaptured)
    return WrapperShape(columns or instance.column_names, flags, bool(closed_high_end_point))


def is_given(column_list: str | None) -> bool:
    """Whether a list names anything."""
    return column_list is not None and bool(column_list.strip())


def _captured(
    instance: CaptureInstance, column_list: str | None, not_captured: type[CdcError]
) -> tuple[str, ...]:
    """The names in the list, in its order; none without one."""
    if column_list is None or not is_given(column_list):
        return ()
    names = parse_column_list(column_list, instance.source_schema, instance.source_table)
    for name in names:
        if name not in instance.column_names:
            raise not_captured(name, instance.capture_instance)
    return names
