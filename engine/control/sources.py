"""Registered source databases (the part of sys.databases that change data capture needs)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from engine.control.connections import Connections, database_id
from engine.control.schema import databases
from engine.errors import DatabaseExists
from engine.model.source_database import SourceDatabase


class SourceRepository:
    """Sources by name. DSNs come without a password: secrets stay in the home."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def add(self, name: str, kind: str, dsn: str) -> SourceDatabase:
        """Registers a source, not yet enabled. Raises DatabaseExists."""
        values = {
            "name": name,
            "kind": kind,
            "dsn": dsn,
            "is_cdc_enabled": False,
            "create_date": datetime.now(UTC),
        }
        try:
            with self._connections.begin() as connection:
                return _source(
                    connection.execute(insert(databases).values(values).returning(databases)).one()
                )
        except IntegrityError as error:
            raise DatabaseExists(name, "another source") from error

    def get(self, name: str) -> SourceDatabase | None:
        """One source; None when none has that name."""
        with self._connections.read() as connection:
            row = connection.execute(select(databases).where(databases.c.name == name)).one_or_none()
        return None if row is None else _source(row)

    def list(self) -> list[SourceDatabase]:
        """All sources by name."""
        with self._connections.read() as connection:
            rows = connection.execute(select(databases).order_by(databases.c.name)).all()
        return [_source(row) for row in rows]

    def set_dsn(self, name: str, dsn: str) -> None:
        """Another way to the same database (a moved socket, another port). Raises UnknownDatabase."""
        self._set(name, dsn=dsn)

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Records ``is_cdc_enabled``. Raises UnknownDatabase."""
        self._set(name, is_cdc_enabled=enabled)

    def _set(self, name: str, **values: Any) -> None:
        with self._connections.begin() as connection:
            key = database_id(connection, name)
            connection.execute(update(databases).where(databases.c.database_id == key).values(values))


def _source(row: Row[Any]) -> SourceDatabase:
    return SourceDatabase(
        database_id=row.database_id,
        name=row.name,
        kind=row.kind,
        dsn=row.dsn,
        is_cdc_enabled=row.is_cdc_enabled,
        created=row.create_date,
    )
