"""cdc.ddl_history: the DDL that tracked tables met, a row for each capture instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from sqlalchemy import Connection, insert, select

from engine.control.connections import Connections
from engine.control.schema import change_tables, databases, ddl_history
from engine.model.ddl_history import DdlEntry, DdlHistoryRow


class DdlHistoryRepository:
    """Reads what publications wrote."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def list(self, database: str, capture_instance: str | None = None) -> list[DdlHistoryRow]:
        """The history of one instance, or of all of a database, in log order."""
        query = (
            select(
                change_tables.c.source_schema,
                change_tables.c.source_table,
                change_tables.c.capture_instance,
                ddl_history.c.required_column_update,
                ddl_history.c.ddl_command,
                ddl_history.c.ddl_lsn,
                ddl_history.c.ddl_time,
            )
            .join(ddl_history, ddl_history.c.object_id == change_tables.c.object_id)
            .join(databases, databases.c.database_id == change_tables.c.database_id)
            .where(databases.c.name == database)
            .order_by(ddl_history.c.entry_id)
        )
        if capture_instance is not None:
            query = query.where(change_tables.c.capture_instance == capture_instance)
        with self._connections.read() as connection:
            return [DdlHistoryRow(*row) for row in connection.execute(query)]


def record_ddl(connection: Connection, entries: Sequence[DdlEntry]) -> None:
    """Adds rows in the caller's transaction; those of instances dropped meanwhile are of no use any more."""
    wanted = {entry.object_id for entry in entries}
    there = select(change_tables.c.object_id).where(change_tables.c.object_id.in_(wanted))
    known = set(connection.scalars(there.with_for_update(key_share=True))) if wanted else set()
    names = [field.name for field in fields(DdlEntry)]
    rows = [{name: getattr(entry, name) for name in names} for entry in entries if entry.object_id in known]
    if rows:
        connection.execute(insert(ddl_history), rows)
