"""Rows of sys.dm_cdc_log_scan_sessions, of the agent's present run and of earlier ones.

A run's row 0 is the aggregate, folded anew with each session that is saved: reading it costs the
same after a million sessions as after one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    ScalarSelect,
    Select,
    and_,
    case,
    delete,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import insert

from engine.control.connections import Connections, database_id
from engine.control.leases import hold
from engine.control.schema import databases, scan_runs, scan_sessions
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanSession
from engine.monitoring.sessions import AGGREGATE_ID, fold

SESSIONS_KEPT = 100_000
"""Sessions kept of one run; older ones live on in the aggregate alone."""
RUNS_KEPT = timedelta(days=30)
"""How long sessions of earlier runs are kept."""

Sessions = list[ScanSession]

_NAMES = tuple(field.name for field in fields(ScanSession))


@dataclass(frozen=True, slots=True)
class NewestSession:
    """A session and when it was written last, UTC: while it gets on, often."""

    session: ScanSession
    written_at: datetime | None


class SessionRepository:
    """Scan sessions by database; ids count from 1 in each run of the agent, as after a server's start."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def begin(self, database: str, engine_start: datetime, token: int | None = None) -> int:
        """The next session's id in the run that began at ``engine_start``; no row is written yet.

        An empty scan after an empty one does not begin a session: it saves the same one again.
        ``token`` is the lease's. Raises LeaseLost when it is no longer that.
        """
        with self._connections.begin() as connection:
            key = _key(connection, database, token)
            new = insert(scan_runs).values(database_id=key, engine_start=engine_start, last_session_id=1)
            same_run = scan_runs.c.engine_start == new.excluded.engine_start
            statement = new.on_conflict_do_update(
                index_elements=[scan_runs.c.database_id],
                set_={
                    "engine_start": engine_start,
                    "last_session_id": case((same_run, scan_runs.c.last_session_id + 1), else_=1),
                },
            ).returning(scan_runs.c.last_session_id)
            number = int(connection.execute(statement).scalar_one())
            if number % 1000 == 1:
                _prune(connection, key, engine_start, number)
        return number

    def save(self, database: str, session: ScanSession, token: int | None = None) -> None:
        """Writes a session that `begin` numbered, new or again, and the run's aggregate with it.

        ``token`` as in `begin`.
        """
        with self._connections.begin() as connection:
            save_session(connection, _key(connection, database, token), session)

    def list(self, database: str, limit: int, engine_start: datetime | None = None) -> list[ScanSession]:
        """The newest ``limit`` sessions of a run, ascending; the present run when none is named."""
        with self._connections.read() as connection:
            run = engine_start or _present_run(connection, database)
            query = (
                _sessions(database)
                .where(scan_sessions.c.engine_start == run, scan_sessions.c.session_id != AGGREGATE_ID)
                .order_by(scan_sessions.c.session_id.desc())
                .limit(limit)
            )
            return [_session(row) for row in reversed(connection.execute(query).all())]

    def newest(self) -> dict[str, NewestSession]:
        """The newest session of the present run of each database that has any, by database."""
        mine = scan_sessions.c.database_id == scan_runs.c.database_id
        last = (
            select(scan_sessions)
            .where(
                mine,
                scan_sessions.c.engine_start == scan_runs.c.engine_start,
                scan_sessions.c.session_id != AGGREGATE_ID,
            )
            .order_by(scan_sessions.c.session_id.desc())
            .limit(1)
            .lateral()
        )
        query = select(databases.c.name, last).select_from(
            databases.join(scan_runs).join(last, literal(True))
        )
        with self._connections.read() as connection:
            rows = connection.execute(query).all()
        return {row.name: NewestSession(_session(row), row.written_at) for row in rows}

    def aggregate(self, database: str) -> ScanSession | None:
        """Session 0 of the present run; None before its first session."""
        with self._connections.read() as connection:
            query = _sessions(database).where(
                scan_sessions.c.engine_start == _present_run(connection, database),
                scan_sessions.c.session_id == AGGREGATE_ID,
            )
            row = connection.execute(query).one_or_none()
        return None if row is None else _session(row)

    def log_ends(self, upto: datetime) -> dict[str, tuple[Lsn, datetime]]:
        """Where each log ended when it was last read to its end before ``upto``, and when that was, UTC.

        By database. The earliest that is known where nothing is known of the time before. Sessions that
        ended at a bound of theirs, or failed, don't know the log's end.
        """
        ends = select(scan_sessions.c.end_lsn, scan_sessions.c.end_time).where(
            scan_sessions.c.database_id == databases.c.database_id,
            scan_sessions.c.session_id != AGGREGATE_ID,
            scan_sessions.c.failed_sessions_count == 0,
            scan_sessions.c.end_lsn != scan_sessions.c.last_commit_lsn,
        )
        start = scan_sessions.c.start_time
        before = ends.where(start <= upto, scan_sessions.c.end_time <= upto).order_by(start.desc())
        first = ends.where(scan_sessions.c.end_time > upto).order_by(start)
        found: dict[str, tuple[Lsn, datetime]] = {}
        with self._connections.read() as connection:
            for end in (first, before):
                one = end.limit(1).lateral()
                query = select(databases.c.name, one).join(one, literal(True))
                known = connection.execute(query)
                found |= {row.name: (Lsn.parse(row.end_lsn), row.end_time) for row in known}
        return found

    def since(self, database: str, moment: datetime, limit: int) -> Sessions:
        """The newest ``limit`` sessions of all runs that began at ``moment`` or later, by start."""
        query = (
            _sessions(database)
            .where(scan_sessions.c.start_time >= moment, scan_sessions.c.session_id != AGGREGATE_ID)
            .order_by(scan_sessions.c.start_time.desc(), scan_sessions.c.session_id.desc())
            .limit(limit)
        )
        with self._connections.read() as connection:
            return [_session(row) for row in reversed(connection.execute(query).all())]

    def collected(
        self, database: str, engine_start: datetime | None, session_id: int, limit: int
    ) -> Sequence[tuple[datetime, ScanSession]]:
        """What the data collector has not got: sessions from that of an earlier call on, each with its run.

        That one comes again, for it may have gone on since; so does session 0 of the present run, first.
        Without an earlier call, all of the present run. At most ``limit``, the oldest; runs in the order of
        their beginning, the present one last, whatever the clock did.
        """
        with self._connections.read() as connection:
            present = _present_run(connection, database)
            if present is None:
                return []
            run, number = scan_sessions.c.engine_start, scan_sessions.c.session_id
            wanted = run == present
            if engine_start is not None:
                later = or_(run > engine_start, run == present)
                wanted = or_(
                    and_(run == engine_start, number >= session_id), and_(run != engine_start, later)
                )
            total = _sessions(database).where(run == present, number == AGGREGATE_ID)
            rest = _sessions(database).where(wanted, number != AGGREGATE_ID)
            rest = rest.order_by(run == present, run, number).limit(limit)
            rows = [*connection.execute(total), *connection.execute(rest)]
        return [(row.engine_start, _session(row)) for row in rows]

    def runs(self, names: Sequence[str]) -> dict[str, datetime]:
        """When the present run of capture began, of each of these databases that has been scanned."""
        query = select(databases.c.name, scan_runs.c.engine_start).join(databases)
        with self._connections.read() as connection:
            rows = connection.execute(query.where(databases.c.name.in_(names)))
            return {row.name: row.engine_start for row in rows}


def save_session(connection: Connection, key: int, session: ScanSession) -> None:
    """Writes a session and the aggregate of the present run, in the caller's transaction.

    One process at a time writes (the lease), so the aggregate needs no lock of its own.
    """
    run = connection.execute(
        select(scan_runs.c.engine_start).where(scan_runs.c.database_id == key)
    ).scalar_one()
    mine = (scan_sessions.c.database_id == key, scan_sessions.c.engine_start == run)
    rows = connection.execute(
        select(scan_sessions).where(*mine, scan_sessions.c.session_id.in_([AGGREGATE_ID, session.session_id]))
    )
    before = {row.session_id: _session(row) for row in rows}
    total = fold(before.get(AGGREGATE_ID), session, before.get(session.session_id))
    new = insert(scan_sessions).values(written_at=func.clock_timestamp())
    statement = new.on_conflict_do_update(
        index_elements=[
            scan_sessions.c.database_id,
            scan_sessions.c.engine_start,
            scan_sessions.c.session_id,
        ],
        set_={name: new.excluded[name] for name in (*_NAMES, "written_at") if name != "session_id"},
    )
    place = {"database_id": key, "engine_start": run}
    rows_to_write = [asdict(row) | place for row in (total, session)]
    connection.execute(statement, rows_to_write)


def _key(connection: Connection, database: str, token: int | None) -> int:
    return database_id(connection, database) if token is None else hold(connection, database, token)


def _prune(connection: Connection, key: int, engine_start: datetime, number: int) -> None:
    """Keeps the table bounded: the oldest sessions of this run and of earlier runs go."""
    of_this_run = scan_sessions.c.engine_start == engine_start
    mine = scan_sessions.c.database_id == key
    old = scan_sessions.c.session_id.between(AGGREGATE_ID + 1, number - SESSIONS_KEPT)
    earlier = scan_sessions.c.start_time < func.now() - literal(RUNS_KEPT)
    connection.execute(delete(scan_sessions).where(mine, of_this_run, old))
    connection.execute(delete(scan_sessions).where(mine, ~of_this_run, earlier))


def _present_run(connection: Connection, database: str) -> datetime | None:
    query = select(scan_runs.c.engine_start).join(
        databases, databases.c.database_id == scan_runs.c.database_id
    )
    return connection.scalar(query.where(databases.c.name == database))


def _sessions(database: str) -> Select[Any]:
    return select(scan_sessions).where(scan_sessions.c.database_id == _key_of(database))


def _key_of(database: str) -> ScalarSelect[int]:
    return select(databases.c.database_id).where(databases.c.name == database).scalar_subquery()


def _session(row: Row[Any]) -> ScanSession:
    return ScanSession(**{name: getattr(row, name) for name in _NAMES})
