"""How far each database is published, and the identity of the log that was read."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, select

from engine.control.connections import Connections
from engine.control.schema import databases, watermarks
from engine.model.watermark import Watermarks
from engine.sources.base import LogIdentity


class WatermarkRepository:
    """Reads what publications wrote (publication.py)."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def get(self, database: str) -> Watermarks:
        """The positions of a database; all None before its first publication."""
        row = self._row(database)
        if row is None:
            return Watermarks(database, None, None, None, None, None)
        return _watermarks(row)

    def list(self) -> list[Watermarks]:
        """The positions of every database that has any, by database."""
        query = select(watermarks, databases.c.name).join(databases).order_by(databases.c.name)
        with self._connections.read() as connection:
            return [_watermarks(row) for row in connection.execute(query)]

    def identity(self, database: str) -> LogIdentity | None:
        """The log that was read last; None before the first publication."""
        row = self._row(database)
        if row is None or row.slot is None:
            return None
        return LogIdentity(row.system_identifier, row.timeline, row.slot)

    def _row(self, database: str) -> Row[Any] | None:
        query = select(watermarks, databases.c.name).join(databases).where(databases.c.name == database)
        with self._connections.read() as connection:
            return connection.execute(query).one_or_none()


def _watermarks(row: Row[Any]) -> Watermarks:
    return Watermarks(
        database=row.name,
        high=row.high,
        checkpoint=row.checkpoint,
        scanned=row.scanned,
        last_commit_time=row.last_commit_time,
        published_at=row.published_at,
    )
