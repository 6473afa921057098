"""When no scan read a database's log: between sessions, and within a session between runs of the job."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, func, literal, not_, select

from engine.control.connections import Connections
from engine.control.schema import cdc_jobs, databases, job_history, scan_sessions
from engine.model.job import JobType
from engine.model.scan_session import ScanPause, ScanPauses
from engine.monitoring.sessions import AGGREGATE_ID


class ScanPauseRepository:
    """Pauses of capture by database, from what its sessions and its job's history tell."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def since(self, database: str, moment: datetime, longer_than: timedelta) -> ScanPauses:
        """Pauses that ended after ``moment``, oldest first; one that goes on is none yet.

        Scans that failed read nothing. Empty scans share a session, though the job may have been stopped
        between them: there the job's history knows. Where a session begins between two of its runs, somebody
        has called a scan or the sessions tell it themselves.
        """
        with self._connections.read() as connection:
            key = connection.scalar(select(databases.c.database_id).where(databases.c.name == database))
            first, pauses = _between_sessions(connection, key, moment, longer_than)
            pauses += _between_runs(connection, key, moment, longer_than)
        return ScanPauses(first, tuple(sorted(pauses, key=lambda pause: pause.start)))


def _between_sessions(
    connection: Connection, key: int | None, moment: datetime, longer_than: timedelta
) -> tuple[datetime | None, list[ScanPause]]:
    session = scan_sessions.c
    went_well = and_(
        session.database_id == key,
        session.session_id != AGGREGATE_ID,
        not_(and_(session.failed_sessions_count > 0, session.tran_count == 0)),
    )
    before = select(func.max(session.start_time)).where(went_well, session.start_time <= moment)
    first = connection.scalar(before)
    since = first or moment
    order = (session.start_time, session.session_id)
    # A session without an end was cut: it is known to have run until its row was written last.
    rows = (
        select(
            func.coalesce(session.end_time, session.written_at, session.start_time).label("start"),
            func.lead(session.start_time).over(order_by=order).label("end"),
            func.min(session.start_time).over().label("first"),
        )
        .where(went_well, session.start_time >= since)
        .subquery()
    )
    if first is None:
        first = connection.scalar(select(func.min(rows.c.first)))
    return first, _read(connection, rows.c.start, rows.c.end, moment, longer_than)


def _between_runs(
    connection: Connection, key: int | None, moment: datetime, longer_than: timedelta
) -> list[ScanPause]:
    mine = and_(cdc_jobs.c.database_id == key, cdc_jobs.c.job_type == JobType.CAPTURE)
    runs = (
        select(
            job_history.c.end_time.label("start"),
            func.lead(job_history.c.start_time).over(order_by=job_history.c.run_id).label("end"),
        )
        .select_from(job_history.join(cdc_jobs))
        .where(mine)
        .subquery()
    )
    session = scan_sessions.c
    begun = exists().where(
        session.database_id == literal(key),
        session.session_id != AGGREGATE_ID,
        session.start_time > runs.c.start,
        session.start_time < runs.c.end,
    )
    return _read(connection, runs.c.start, runs.c.end, moment, longer_than, ~begun)


def _read(
    connection: Connection,
    start: ColumnElement[Any],
    end: ColumnElement[Any],
    moment: datetime,
    longer_than: timedelta,
    *also: ColumnElement[bool],
) -> list[ScanPause]:
    query = select(start, end).where(end > moment, end - start > literal(longer_than), *also)
    return [ScanPause(*row) for row in connection.execute(query)]
