"""DDL on tracked tables (reference/tables.md, cdc.ddl_history)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from engine.model.lsn import Lsn
from engine.model.table_shape import ShapeColumn


@dataclass(frozen=True, slots=True)
class DdlEntry:
    """One row of cdc.ddl_history: a statement that altered a tracked table, for one capture instance.

    ``ddl_time`` is when the transaction of the statement was committed, UTC (not documented). The text of
    ``ddl_command`` is empty where the source could not tell it (its role may not create event triggers).
    columns_before, columns_after: the source table's shape; the original keeps none.
    """

    source_object_id: int
    object_id: int
    required_column_update: bool
    ddl_command: str
    ddl_lsn: Lsn
    ddl_time: datetime
    columns_before: tuple[ShapeColumn, ...] = ()
    columns_after: tuple[ShapeColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class DdlHistoryRow:
    """One row of sys.sp_cdc_get_ddl_history's result set (reference/procedures.md, 5)."""

    source_schema: str
    source_table: str
    capture_instance: str
    required_column_update: bool
    ddl_command: str
    ddl_lsn: Lsn
    ddl_time: datetime


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One row of DDL history with the shape of the source table before and after the statement.

    Both are None for DDL that was read before shapes were kept.
    """

    history: DdlHistoryRow
    columns_before: tuple[ShapeColumn, ...] | None
    columns_after: tuple[ShapeColumn, ...] | None
