"""cdc.ddl_history: the DDL that tracked tables met, a row for each capture instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import Connection, Select, insert, select

from engine.control.connections import Connections
from engine.control.schema import change_tables, databases, ddl_history
from engine.model.ddl_history import DdlEntry, DdlHistoryRow, SchemaChange
from engine.model.table_shape import ShapeColumn


class DdlHistoryRepository:
    """Reads what publications wrote."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def list(self, database: str, capture_instance: str | None = None) -> list[DdlHistoryRow]:
        """The history of one instance, or of all of a database, in log order."""
        query = _history(database)
        if capture_instance is not None:
            query = query.where(change_tables.c.capture_instance == capture_instance)
        with self._connections.read() as connection:
            return [DdlHistoryRow(*row[: len(_COLUMNS)]) for row in connection.execute(query)]

    def shapes(self, database: str) -> Sequence[SchemaChange]:
        """The history of a database with the shapes before and after, in log order."""
        with self._connections.read() as connection:
            rows = connection.execute(_history(database)).all()
        return [
            SchemaChange(
                DdlHistoryRow(*row[: len(_COLUMNS)]), _shape(row.columns_before), _shape(row.columns_after)
            )
            for row in rows
        ]


_COLUMNS = (
    change_tables.c.source_schema,
    change_tables.c.source_table,
    change_tables.c.capture_instance,
    ddl_history.c.required_column_update,
    ddl_history.c.ddl_command,
    ddl_history.c.ddl_lsn,
    ddl_history.c.ddl_time,
)
"""As `DdlHistoryRow` has them."""


def _history(database: str) -> Select[Any]:
    return (
        select(*_COLUMNS, ddl_history.c.columns_before, ddl_history.c.columns_after)
        .join(ddl_history, ddl_history.c.object_id == change_tables.c.object_id)
        .join(databases, databases.c.database_id == change_tables.c.database_id)
        .where(databases.c.name == database)
        .order_by(ddl_history.c.entry_id)
    )


def _shape(columns: Sequence[dict[str, Any]] | None) -> tuple[ShapeColumn, ...] | None:
    return None if columns is None else tuple(ShapeColumn(**column) for column in columns)


def record_ddl(connection: Connection, entries: Sequence[DdlEntry]) -> None:
    """Adds rows in the caller's transaction; those of instances dropped meanwhile are of no use any more."""
    wanted = {entry.object_id for entry in entries}
    there = select(change_tables.c.object_id).where(change_tables.c.object_id.in_(wanted))
    known = set(connection.scalars(there.with_for_update(key_share=True))) if wanted else set()
    rows = [_row(entry) for entry in entries if entry.object_id in known]
    if rows:
        connection.execute(insert(ddl_history), rows)


def _row(entry: DdlEntry) -> dict[str, Any]:
    values = {field.name: getattr(entry, field.name) for field in fields(entry)}
    shapes = ("columns_before", "columns_after")
    return values | {name: [asdict(column) for column in values[name]] for name in shapes}
