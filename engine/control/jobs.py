"""msdb.dbo.cdc_jobs with the agent's state of each job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, Row, Select, case, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from engine.control.connections import Connections, database_id
from engine.control.notifications import JOBS, REPORTED, notify
from engine.control.schema import cdc_jobs, databases
from engine.errors import JobMissing
from engine.model.job import CaptureParameters, Job, JobState, JobType


class JobRepository:
    """Jobs as rows: whoever may write here starts, stops or tunes one, and the agent obeys.

    Each change notifies JOBS, each report of the agent REPORTED, both with the database's name.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def get(self, database: str, job_type: JobType = JobType.CAPTURE) -> Job | None:
        """One job; None when the database has none of that type."""
        query = _jobs().where(databases.c.name == database, cdc_jobs.c.job_type == job_type)
        with self._connections.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _job(row)

    def list(self, database: str | None = None) -> list[Job]:
        """The jobs of one database, or of all, by database and job type."""
        query = _jobs().order_by(databases.c.name, cdc_jobs.c.job_type)
        if database is not None:
            query = query.where(databases.c.name == database)
        with self._connections.read() as connection:
            return [_job(row) for row in connection.execute(query)]

    def add(self, database: str, parameters: CaptureParameters, *, wanted: bool) -> None:
        """A capture job where the database has none yet."""
        with self._connections.begin() as connection:
            add_capture_job(connection, database_id(connection, database), parameters, wanted=wanted)
            notify(connection, JOBS, database)

    def change(self, job: Job, parameters: CaptureParameters) -> None:
        """Other parameters, which take effect when the job starts next. Raises JobMissing."""
        self._set(job.database, job.job_type, JOBS, **_columns(parameters))

    def remove(self, database: str, job_type: JobType = JobType.CAPTURE) -> None:
        """Drops a job; none is no error."""
        with self._connections.begin() as connection:
            key = database_id(connection, database)
            connection.execute(
                delete(cdc_jobs).where(cdc_jobs.c.database_id == key, cdc_jobs.c.job_type == job_type)
            )
            notify(connection, JOBS, database)

    def want(self, database: str, job_type: JobType, wanted: bool) -> None:
        """Asks the agent to run the job, or to stop it. Raises JobMissing."""
        self._set(database, job_type, JOBS, wanted=wanted)

    def report(self, job_id: UUID, state: JobState, message: str, running: CaptureParameters | None) -> None:
        """What the agent says of a job; ``since`` moves when the state does. A dropped job is no error."""
        changed = case((cdc_jobs.c.state != state, func.clock_timestamp()), else_=cdc_jobs.c.since)
        statement = (
            update(cdc_jobs)
            .where(cdc_jobs.c.job_id == job_id, databases.c.database_id == cdc_jobs.c.database_id)
            .values(state=state, message=message, since=changed, **_columns(running, "running_"))
            .returning(databases.c.name)
        )
        with self._connections.begin() as connection:
            database = connection.scalar(statement)
            if database is not None:
                notify(connection, REPORTED, database)

    def _set(self, database: str, job_type: JobType, channel: str, **values: Any) -> None:
        with self._connections.begin() as connection:
            key = database_id(connection, database)
            statement = update(cdc_jobs).where(cdc_jobs.c.database_id == key, cdc_jobs.c.job_type == job_type)
            if connection.execute(statement.values(values)).rowcount == 0:
                raise JobMissing(job_type, database)
            notify(connection, channel, database)


def add_capture_job(connection: Connection, key: int, parameters: CaptureParameters, *, wanted: bool) -> None:
    """Inserts a capture job into the caller's transaction where the database has none."""
    values = {
        "database_id": key,
        "job_type": JobType.CAPTURE,
        "job_id": uuid4(),
        "wanted": wanted,
        "state": JobState.STOPPED,
        "since": datetime.now(UTC),
        "message": "The agent has not started it yet." if wanted else "Not started.",
        **_columns(parameters),
    }
    connection.execute(insert(cdc_jobs).values(values).on_conflict_do_nothing())


def remove_jobs(connection: Connection, key: int) -> None:
    """Drops every job of the database in the caller's transaction."""
    connection.execute(delete(cdc_jobs).where(cdc_jobs.c.database_id == key))


_PARAMETERS = ("maxtrans", "maxscans", "continuous", "pollinginterval")


def _columns(parameters: CaptureParameters | None, prefix: str = "") -> dict[str, int | bool | None]:
    return {prefix + name: None if parameters is None else getattr(parameters, name) for name in _PARAMETERS}


def _parameters(values: Sequence[Any]) -> CaptureParameters | None:
    return None if values[0] is None else CaptureParameters(*values)


def _jobs() -> Select[Any]:
    return select(cdc_jobs, databases.c.name).join(databases)


def _job(row: Row[Any]) -> Job:
    configured = _parameters([getattr(row, name) for name in _PARAMETERS])
    return Job(
        job_id=row.job_id,
        database=row.name,
        job_type=JobType(row.job_type),
        configured=configured or CaptureParameters(),
        running=_parameters([getattr(row, f"running_{name}") for name in _PARAMETERS]),
        wanted=row.wanted,
        state=JobState(row.state),
        since=row.since,
        message=row.message,
    )
