"""Clients of capture instances: registered, heard of, and dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, insert, select, update

from engine.control.connections import Connections
from engine.control.scan_errors import add_error
from engine.control.schema import change_tables, clients, databases, watermarks
from engine.errors import AcknowledgementRefused, ClientUnknown
from engine.model.client import Client
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanError

PACE_WINDOW = timedelta(minutes=15)
"""How far back the acknowledgement lies, at least, that a client's pace is told from, once there is one."""


class ClientRepository:
    """Clients as rows, which go with their capture instance."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def register(
        self, database: str, capture_instance: str, name: str, expires_after: timedelta | None, now: datetime
    ) -> Client | None:
        """A client that begins at the low endpoint; None where there is no such instance.

        One that is there keeps its place: it is heard of, and gets this limit.
        """
        with self._connections.begin() as connection:
            instance = _instance(connection, database, capture_instance)
            if instance is None:
                return None
            seconds = None if expires_after is None else int(expires_after.total_seconds())
            mine = (clients.c.object_id == instance.object_id, clients.c.client_name == name)
            known = connection.execute(
                update(clients).where(*mine).values(expires_seconds=seconds, acknowledged_at=now)
            ).rowcount
            if not known:
                values = {
                    "object_id": instance.object_id,
                    "client_name": name,
                    "acknowledged_lsn": instance.start_lsn,
                    "acknowledged_at": now,
                    "registered_at": now,
                    "expires_seconds": seconds,
                    "earlier_lsn": instance.start_lsn,
                    "earlier_at": now,
                }
                connection.execute(insert(clients).values(values))
            return _client(connection.execute(_clients().where(*mine)).one())

    def acknowledge(self, database: str, capture_instance: str, name: str, lsn: Lsn, now: datetime) -> Client:
        """The client has everything up to ``lsn``. Raises ClientUnknown, AcknowledgementRefused."""
        with self._connections.begin() as connection:
            query = (
                _clients()
                .add_columns(change_tables.c.start_lsn, watermarks.c.high, clients.c.object_id)
                .outerjoin(watermarks, watermarks.c.database_id == change_tables.c.database_id)
                .where(*_named(database, capture_instance), clients.c.client_name == name)
            )
            row = connection.execute(query.with_for_update(of=clients)).one_or_none()
            if row is None:
                raise ClientUnknown(name, capture_instance)
            client = _client(row)
            least = max((each for each in (client.acknowledged_lsn, row.start_lsn) if each), default=None)
            if least is None or row.high is None or not least <= lsn <= row.high:
                raise AcknowledgementRefused(lsn, name, least, row.high)
            values: dict[str, Any] = {"acknowledged_lsn": lsn, "acknowledged_at": now}
            if client.acknowledged_at - client.earlier_at >= PACE_WINDOW:
                values |= {"earlier_lsn": client.acknowledged_lsn, "earlier_at": client.acknowledged_at}
            if client.held_lsn is not None and lsn >= client.held_lsn:
                values |= {"held_lsn": None, "held_since": None}
            mine = (clients.c.object_id == row.object_id, clients.c.client_name == name)
            connection.execute(update(clients).where(*mine).values(values))
            return _client(connection.execute(_clients().where(*mine)).one())

    def list(self, database: str | None = None, capture_instance: str | None = None) -> Sequence[Client]:
        """Clients of all databases, of one, or of one instance; by database, instance and name."""
        query = _clients().order_by(databases.c.name, change_tables.c.capture_instance, clients.c.client_name)
        if database is not None:
            query = query.where(databases.c.name == database)
        if capture_instance is not None:
            query = query.where(change_tables.c.capture_instance == capture_instance)
        with self._connections.read() as connection:
            return [_client(row) for row in connection.execute(query)]

    def drop(self, database: str, capture_instance: str, name: str) -> bool:
        """Forgets a client; False when there is none."""
        named = select(change_tables.c.object_id).join(databases).where(*_named(database, capture_instance))
        mine = (clients.c.object_id.in_(named), clients.c.client_name == name)
        with self._connections.begin() as connection:
            return connection.execute(delete(clients).where(*mine)).rowcount == 1

    def drop_stale(
        self, database: str, now: datetime, told: Callable[[Client], ScanError]
    ) -> Sequence[Client]:
        """Drops clients that were silent for longer than they may be; ``told`` makes each one's error row."""
        with self._connections.begin() as connection:
            query = _clients().add_columns(clients.c.object_id, change_tables.c.database_id)
            rows = connection.execute(
                query.where(databases.c.name == database).with_for_update(of=clients)
            ).all()
            stale = [(row, _client(row)) for row in rows if _client(row).is_expired(now)]
            for row, client in stale:
                forget(connection, row.database_id, row.object_id, client.name, told(client))
        return [client for _, client in stale]


def forget(connection: Connection, key: int, object_id: int, name: str, error: ScanError) -> None:
    """Drops a client that did not ask for it, with an error row that says so, in the caller's transaction."""
    mine = (clients.c.object_id == object_id, clients.c.client_name == name)
    connection.execute(delete(clients).where(*mine))
    add_error(connection, key, error)


def clients_of(connection: Connection, key: int) -> Sequence[tuple[int, Client]]:
    """The clients of a database with the object ids of their instances, in the caller's transaction."""
    query = _clients().add_columns(clients.c.object_id).where(change_tables.c.database_id == key)
    return [(row.object_id, _client(row)) for row in connection.execute(query)]


def _instance(connection: Connection, database: str, capture_instance: str) -> Row[Any] | None:
    """The instance's row, locked: a low endpoint moves before or after, never past what is read here."""
    query: Select[Any] = (
        select(change_tables.c.object_id, change_tables.c.start_lsn)
        .join(databases)
        .where(*_named(database, capture_instance))
    )
    return connection.execute(query.with_for_update(of=change_tables)).one_or_none()


def _named(database: str, capture_instance: str) -> tuple[Any, Any]:
    return databases.c.name == database, change_tables.c.capture_instance == capture_instance


def _clients() -> Select[Any]:
    return (
        select(
            clients.c.client_name,
            clients.c.acknowledged_lsn,
            clients.c.acknowledged_at,
            clients.c.registered_at,
            clients.c.expires_seconds,
            clients.c.earlier_lsn,
            clients.c.earlier_at,
            clients.c.held_lsn,
            clients.c.held_since,
            change_tables.c.capture_instance,
            databases.c.name.label("database"),
        )
        .select_from(clients)
        .join(change_tables, change_tables.c.object_id == clients.c.object_id)
        .join(databases, databases.c.database_id == change_tables.c.database_id)
    )


def _client(row: Row[Any]) -> Client:
    return Client(
        database=row.database,
        capture_instance=row.capture_instance,
        name=row.client_name,
        acknowledged_lsn=row.acknowledged_lsn,
        acknowledged_at=row.acknowledged_at,
        registered_at=row.registered_at,
        expires_after=None if row.expires_seconds is None else timedelta(seconds=row.expires_seconds),
        earlier_lsn=row.earlier_lsn,
        earlier_at=row.earlier_at,
        held_lsn=row.held_lsn,
        held_since=row.held_since,
    )
