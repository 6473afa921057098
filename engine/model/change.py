"""The shape of change rows (reference/tables.md, cdc.<capture_instance>_CT)."""

from __future__ import annotations

from enum import IntEnum

START_LSN = "__$start_lsn"
END_LSN = "__$end_lsn"
SEQVAL = "__$seqval"
OPERATION = "__$operation"
UPDATE_MASK = "__$update_mask"
COMMAND_ID = "__$command_id"

LEADING_COLUMNS = (START_LSN, END_LSN, SEQVAL, OPERATION, UPDATE_MASK)
"""Metadata columns before the captured ones; COMMAND_ID is physically last."""


class Operation(IntEnum):
    """``__$operation``; MERGE occurs only in net changes with ``all with merge``."""

    DELETE = 1
    INSERT = 2
    UPDATE_OLD = 3
    UPDATE_NEW = 4
    MERGE = 5
