"""Wrapper functions fn_all_changes_<instance>, fn_net_changes_<instance> (reference/functions.md, 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.model.change import Operation

CDC_STARTLSN = "__CDC_STARTLSN"
CDC_SEQVAL = "__CDC_SEQVAL"
CDC_OPERATION = "__CDC_OPERATION"

OPERATION_LETTERS: Mapping[Operation, str] = {
    Operation.DELETE: "D",
    Operation.INSERT: "I",
    Operation.UPDATE_OLD: "UO",
    Operation.UPDATE_NEW: "UN",
    Operation.MERGE: "M",
}
"""``__CDC_OPERATION`` for each ``__$operation``."""


def flag_name(column: str) -> str:
    """The column that says whether an update changed ``column``."""
    return f"{column}_uflag"


@dataclass(frozen=True, slots=True)
class WrapperShape:
    """What a wrapper function returns, and where its interval ends.

    columns: captured columns in the order of the result; flags: columns that get an update flag, in order.
    closed_high_end_point: commit times up to the end time and including it, rather than before it.
    """

    columns: tuple[str, ...]
    flags: tuple[str, ...] = ()
    closed_high_end_point: bool = True


@dataclass(frozen=True, slots=True)
class WrapperFunction:
    """One row of sys.sp_cdc_generate_wrapper_function: a name and the T-SQL that creates it."""

    function_name: str
    create_script: str
