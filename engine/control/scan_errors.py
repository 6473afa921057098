"""Rows of sys.dm_cdc_errors: the errors of the last 32 sessions that had any."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select

from engine.control.connections import Connections, database_id
from engine.control.leases import Lease, hold
from engine.control.schema import databases, scan_errors, scan_runs
from engine.model.scan_session import ScanError

SESSIONS_KEPT = 32
ERRORS_KEPT = 1000
"""Rows kept at most: errors outside of a session all belong to session 0."""
MESSAGE_LENGTH = 1024
"""error_message is nvarchar(1024)."""

Errors = list[ScanError]

_NAMES = tuple(field.name for field in fields(ScanError))


class ScanErrorRepository:
    """Errors of scans by database."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def add(self, database: str, error: ScanError, lease: Lease | None = None) -> None:
        """Records an error; what is older than the last 32 sessions with errors goes.

        With a lease only while that stands: who has lost it took for an error what its successor, or
        whoever disabled the database, did. Raises LeaseLost then.
        """
        with self._connections.begin() as connection:
            if lease is not None:
                hold(connection, lease.database, lease.token, lease.job_type)
            add_error(connection, database_id(connection, database), error)

    def list(self, database: str) -> list[ScanError]:
        """The errors kept, oldest first."""
        key = select(databases.c.database_id).where(databases.c.name == database).scalar_subquery()
        query = select(scan_errors).where(scan_errors.c.database_id == key).order_by(scan_errors.c.entry_id)
        with self._connections.read() as connection:
            return [_error(row) for row in connection.execute(query)]

    def by_database(self) -> dict[str, Errors]:
        """The errors kept of each database that has any, oldest first."""
        query = select(scan_errors, databases.c.name).join(databases).order_by(scan_errors.c.entry_id)
        found: defaultdict[str, Errors] = defaultdict(list)
        with self._connections.read() as connection:
            for row in connection.execute(query):
                found[row.name].append(_error(row))
        return found

    def collected(self, database: str, entry_id: int) -> Sequence[tuple[int, datetime | None, ScanError]]:
        """Errors after an entry, oldest first, each with its number and the run of capture it belongs to."""
        key = select(databases.c.database_id).where(databases.c.name == database).scalar_subquery()
        query = (
            select(scan_errors)
            .where(scan_errors.c.database_id == key, scan_errors.c.entry_id > entry_id)
            .order_by(scan_errors.c.entry_id)
        )
        with self._connections.read() as connection:
            return [(row.entry_id, row.engine_start, _error(row)) for row in connection.execute(query)]


def add_error(connection: Connection, key: int, error: ScanError) -> None:
    """Records an error of a database in the caller's transaction."""
    run = select(scan_runs.c.engine_start).where(scan_runs.c.database_id == key).scalar_subquery()
    values = asdict(error) | {
        "error_message": error.error_message[:MESSAGE_LENGTH],
        "database_id": key,
        "engine_start": run,
    }
    connection.execute(insert(scan_errors).values(values))
    _prune(connection, key)


def _prune(connection: Connection, key: int) -> None:
    newest = (
        select(
            scan_errors.c.engine_start,
            scan_errors.c.session_id,
            func.max(scan_errors.c.entry_id).label("last"),
        )
        .where(scan_errors.c.database_id == key)
        .group_by(scan_errors.c.engine_start, scan_errors.c.session_id)
        .order_by(func.max(scan_errors.c.entry_id).desc())
        .limit(SESSIONS_KEPT)
        .subquery()
    )
    in_newest = (
        select(newest.c.last)
        .where(
            newest.c.engine_start.is_not_distinct_from(scan_errors.c.engine_start),
            newest.c.session_id == scan_errors.c.session_id,
        )
        .correlate(scan_errors)
        .exists()
    )
    latest = (
        select(scan_errors.c.entry_id)
        .where(scan_errors.c.database_id == key)
        .order_by(scan_errors.c.entry_id.desc())
        .limit(ERRORS_KEPT)
    )
    mine = scan_errors.c.database_id == key
    connection.execute(delete(scan_errors).where(mine, ~in_newest | scan_errors.c.entry_id.not_in(latest)))


def _error(row: Row[Any]) -> ScanError:
    return ScanError(**{name: getattr(row, name) for name in _NAMES})
