"""Capture instances: what is captured of one source table (reference/tables.md, cdc.change_tables)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from engine.model.lsn import Lsn
from engine.model.table_shape import ShapeColumn


@dataclass(frozen=True, slots=True)
class CapturedColumn:
    """One row of cdc.captured_columns, and how the lake stores the column.

    ``column_type`` is the source's own type text (``numeric(12,2)``), ``lake_type`` the Spark SQL
    type of the change-table column (``decimal(12,2)``).
    """

    column_name: str
    column_id: int
    column_type: str
    column_ordinal: int
    is_computed: bool
    lake_type: str


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """One row of cdc.index_columns: a column of the row identifier."""

    column_name: str
    index_ordinal: int
    column_id: int


@dataclass(frozen=True, slots=True)
class CaptureInstance:
    """One row of cdc.change_tables with its columns.

    ``start_lsn`` is None until the capture process has recognised the instance in the log.
    ``object_id`` is the change table's id, unique in the control database. ``source_columns`` is the
    source table's shape as far as the log was read: captured columns keep the name that they were
    captured under, whatever the source calls them now.
    """

    object_id: int
    database: str
    capture_instance: str
    source_schema: str
    source_table: str
    source_object_id: int
    start_lsn: Lsn | None
    supports_net_changes: bool
    role_name: str | None
    index_name: str | None
    filegroup_name: str | None
    create_date: datetime
    columns: tuple[CapturedColumn, ...]
    index_columns: tuple[IndexColumn, ...]
    has_drop_pending: bool = False
    partition_switch: bool = True
    source_columns: tuple[ShapeColumn, ...] = ()

    @property
    def end_lsn(self) -> None:
        """Always NULL, as in the original."""
        return None

    @property
    def change_table(self) -> str:
        """The change table's name."""
        return f"{self.capture_instance}_CT"

    @property
    def column_names(self) -> tuple[str, ...]:
        """Captured column names in ordinal order."""
        return tuple(column.column_name for column in self.columns)

    def source_names(self) -> tuple[str | None, ...]:
        """What the source calls each captured column now, in ordinal order; None for one that was dropped."""
        if not self.source_columns:
            return self.column_names
        names = {column.column_id: column.name for column in self.source_columns}
        return tuple(names.get(column.column_id) for column in self.columns)

    @property
    def index_column_names(self) -> tuple[str, ...]:
        """Row identifier columns in index order; empty without one."""
        return tuple(column.column_name for column in self.index_columns)
