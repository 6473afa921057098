"""The T-SQL that sys.sp_cdc_generate_wrapper_function returns (reference/functions.md, 4).

The functions map times to LSNs and leave the rest to cdc.fn_cdc_get_…_changes_<instance>: a bound outside
the validity interval becomes NULL, which that function answers with error 313. Column types are the
source's, as in cdc.captured_columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.model.capture_instance import CaptureInstance
from engine.model.change import OPERATION, SEQVAL, START_LSN, UPDATE_MASK, Operation
from engine.model.wrapper import (
    CDC_OPERATION,
    CDC_SEQVAL,
    CDC_STARTLSN,
    OPERATION_LETTERS,
    WrapperFunction,
    WrapperShape,
    flag_name,
)

_SCRIPT = """\
create function {function}
(
    @start_time datetime = null,
    @end_time datetime = null,
    @row_filter_option nvarchar(30) = N'all'
)
returns @resultset table
(
    {definitions}
)
as
begin
    declare @from_lsn binary(10), @to_lsn binary(10)

    if @start_time is null
        select @from_lsn = sys.fn_cdc_get_min_lsn({instance})
    else if sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_min_lsn({instance})) > @start_time
         or sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn()) < @start_time
        select @from_lsn = null
    else
        select @from_lsn = sys.fn_cdc_increment_lsn(
            sys.fn_cdc_map_time_to_lsn(N'largest less than or equal', @start_time))

    if @end_time is null
        select @to_lsn = sys.fn_cdc_get_max_lsn()
    else if sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn()) < @end_time
        select @to_lsn = null
    else
        select @to_lsn = sys.fn_cdc_map_time_to_lsn(N'{end_operator}', @end_time)

    if @from_lsn is not null and @to_lsn is not null and @from_lsn > @to_lsn
        return

    insert into @resultset
    select
        {selection}
    from cdc.{query_function}(@from_lsn, @to_lsn, @row_filter_option)

    return
end
"""


def wrapper_functions(instance: CaptureInstance, shape: WrapperShape) -> list[WrapperFunction]:
    """The all-changes wrapper, and the net-changes one where the instance has net changes."""
    kinds = ("all", "net") if instance.supports_net_changes else ("all",)
    return [_function(instance, shape, kind) for kind in kinds]


def _function(instance: CaptureInstance, shape: WrapperShape, kind: str) -> WrapperFunction:
    name = f"fn_{kind}_changes_{instance.capture_instance}"
    columns = _columns(instance, shape, kind)
    script = _SCRIPT.format(
        function=_name(name),
        definitions=",\n    ".join(f"{_name(column)} {type_}" for column, type_, _ in columns),
        instance=_text(instance.capture_instance),
        end_operator="largest less than or equal" if shape.closed_high_end_point else "largest less than",
        selection=",\n        ".join(f"{value} as {_name(column)}" for column, _, value in columns),
        query_function=_name(f"fn_cdc_get_{kind}_changes_{instance.capture_instance}"),
    )
    return WrapperFunction(name, script)


def _columns(instance: CaptureInstance, shape: WrapperShape, kind: str) -> Sequence[tuple[str, str, str]]:
    """(name, type, value) of each column of the result."""
    types = {column.column_name: column.column_type for column in instance.columns}
    leading = [(CDC_STARTLSN, "binary(10)", _name(START_LSN)), (CDC_SEQVAL, "binary(10)", _name(SEQVAL))]
    return [
        *(leading if kind == "all" else ()),
        *((column, types[column], _name(column)) for column in shape.columns),
        (CDC_OPERATION, "nvarchar(2)", _letters()),
        *((flag_name(column), "bit", _flag(instance, column)) for column in shape.flags),
    ]


def _letters() -> str:
    cases = " ".join(
        f"when {operation:d} then N'{letters}'" for operation, letters in OPERATION_LETTERS.items()
    )
    return f"case {_name(OPERATION)} {cases} end"


def _flag(instance: CaptureInstance, column: str) -> str:
    """Whether an update changed the column; NULL for other rows and where there is no mask."""
    ordinal = f"sys.fn_cdc_get_column_ordinal({_text(instance.capture_instance)}, {_text(column)})"
    is_update = f"{_name(OPERATION)} = {Operation.UPDATE_NEW:d} and {_name(UPDATE_MASK)} is not null"
    return f"case when {is_update} then sys.fn_cdc_is_bit_set({ordinal}, {_name(UPDATE_MASK)}) end"


def _name(name: str) -> str:
    return "[" + name.replace("]", "]]") + "]"


def _text(text: str) -> str:
    return "N'" + text.replace("'", "''") + "'"
