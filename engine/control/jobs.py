"""msdb.dbo.cdc_jobs with the agent's state of each job."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, overload
from uuid import UUID, uuid4

from sqlalchemy import Connection, Row, Select, case, delete, func, select, true, update
from sqlalchemy.dialects.postgresql import insert

from engine.control.connections import Connections, database_id
from engine.control.notifications import JOBS, REPORTED, notify
from engine.control.schema import cdc_jobs, databases, job_history
from engine.control.table_cleanups import from_json
from engine.errors import JobMissing
from engine.model.job import (
    SCHEDULES,
    AnyJob,
    CaptureParameters,
    CleanupJob,
    CleanupParameters,
    Job,
    JobRun,
    JobState,
    JobStep,
    JobType,
    RunOutcome,
    Subsystem,
)

JobParameters = CaptureParameters | CleanupParameters
_Of = TypeVar("_Of", CaptureParameters, CleanupParameters)


class JobRepository:
    """Jobs as rows: whoever may write here starts, stops or tunes one, and the agent obeys.

    Each change notifies JOBS, each report of the agent REPORTED, both with the database's name.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @overload
    def get(self, database: str, job_type: Literal[JobType.CAPTURE] = ...) -> Job | None: ...

    @overload
    def get(self, database: str, job_type: Literal[JobType.CLEANUP]) -> CleanupJob | None: ...

    @overload
    def get(self, database: str, job_type: JobType) -> AnyJob | None: ...

    def get(self, database: str, job_type: JobType = JobType.CAPTURE) -> AnyJob | None:
        """One job; None when the database has none of that type."""
        query = _jobs().where(databases.c.name == database, cdc_jobs.c.job_type == job_type)
        with self._connections.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _job(row)

    def list(self, database: str | None = None) -> list[AnyJob]:
        """The jobs of one database, or of all, by database and job type."""
        query = _jobs().order_by(databases.c.name, cdc_jobs.c.job_type)
        if database is not None:
            query = query.where(databases.c.name == database)
        with self._connections.read() as connection:
            return [_job(row) for row in connection.execute(query)]

    def add(
        self,
        database: str,
        parameters: JobParameters,
        *,
        wanted: bool,
        schedule: str | None = "",
    ) -> bool:
        """A job where the database has none of its type yet; False where it has.

        schedule: as `Job.schedule`; an empty one is its type's own.
        """
        with self._connections.begin() as connection:
            key = database_id(connection, database)
            added = add_job(connection, key, parameters, wanted=wanted, schedule=schedule)
            notify(connection, JOBS, database)
        return added

    def change(self, job: AnyJob, parameters: JobParameters) -> None:
        """Other parameters, which take effect when the job starts next. Raises JobMissing."""
        self._set(job.database, job.job_type, JOBS, **_columns(parameters))

    def set_step(self, database: str, step: JobStep | None) -> None:
        """What the capture job runs when it starts next; None is its scan. Raises JobMissing."""
        self._set(database, JobType.CAPTURE, JOBS, **_step_columns(step))

    def reschedule(self, database: str, job_type: JobType, schedule: str | None) -> None:
        """Another schedule for the job, counted from now on. Raises JobMissing."""
        self._set(database, job_type, JOBS, schedule=schedule, next_run=None)

    def start_due(self, job: Job, next_run: datetime | None) -> None:
        """Asks for a capture job whose time has come; nothing where another agent did, or it was changed."""
        mine = (
            cdc_jobs.c.job_id == job.job_id,
            cdc_jobs.c.schedule == job.schedule,
            cdc_jobs.c.next_run == job.next_run,
        )
        with self._connections.begin() as connection:
            connection.execute(update(cdc_jobs).where(*mine).values(wanted=True, next_run=next_run))
            notify(connection, JOBS, job.database)

    def expect(self, job: AnyJob, next_run: datetime) -> None:
        """When the job runs next by the schedule that it had; nothing where that was changed meanwhile."""
        mine = (cdc_jobs.c.job_id == job.job_id, cdc_jobs.c.schedule == job.schedule)
        with self._connections.begin() as connection:
            connection.execute(update(cdc_jobs).where(*mine).values(next_run=next_run))

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

    def stop(self, database: str, job_type: JobType) -> None:
        """Asks the agent to stop the run that it is in, and not to begin one that was asked for."""
        is_running = cdc_jobs.c.state == JobState.RUNNING
        self._set(
            database,
            job_type,
            JOBS,
            wanted=False,
            state=case((is_running, JobState.STOPPING.value), else_=cdc_jobs.c.state),
            since=case((is_running, func.clock_timestamp()), else_=cdc_jobs.c.since),
            message=case((is_running, "Stops after its statement."), else_=cdc_jobs.c.message),
        )

    def report(
        self,
        job_id: UUID,
        state: JobState,
        message: str,
        running: JobParameters | None,
        step: JobStep | None = None,
    ) -> None:
        """What the agent says of a job; ``since`` moves when the state does. A dropped job is no error."""
        with self._connections.begin() as connection:
            report(connection, job_id, state, message, running, step)

    def _set(self, database: str, job_type: JobType, channel: str, **values: Any) -> None:
        with self._connections.begin() as connection:
            key = database_id(connection, database)
            statement = update(cdc_jobs).where(cdc_jobs.c.database_id == key, cdc_jobs.c.job_type == job_type)
            if connection.execute(statement.values(values)).rowcount == 0:
                raise JobMissing(job_type, database)
            notify(connection, channel, database)


def report(
    connection: Connection,
    job_id: UUID,
    state: JobState,
    message: str,
    running: JobParameters | None,
    step: JobStep | None = None,
) -> None:
    """What the agent says of a job, in the caller's transaction."""
    changed = case((cdc_jobs.c.state != state, func.clock_timestamp()), else_=cdc_jobs.c.since)
    statement = (
        update(cdc_jobs)
        .where(cdc_jobs.c.job_id == job_id, databases.c.database_id == cdc_jobs.c.database_id)
        .values(
            state=state,
            message=message,
            since=changed,
            **_running(running),
            **_step_columns(step, "running_"),
        )
        .returning(databases.c.name)
    )
    database = connection.scalar(statement)
    if database is not None:
        notify(connection, REPORTED, database)


def add_job(
    connection: Connection,
    key: int,
    parameters: JobParameters,
    *,
    wanted: bool,
    schedule: str | None = "",
) -> bool:
    """Inserts a job into the caller's transaction; False where the database has one of its type."""
    job_type = JobType.CAPTURE if isinstance(parameters, CaptureParameters) else JobType.CLEANUP
    values = {
        "database_id": key,
        "job_type": job_type,
        "job_id": uuid4(),
        "wanted": wanted,
        "state": JobState.STOPPED,
        "since": datetime.now(UTC),
        "message": "The agent has not started it yet." if wanted else _NOT_STARTED[job_type],
        "schedule": SCHEDULES[job_type] if schedule == "" else schedule,
        **_columns(parameters),
    }
    new = insert(cdc_jobs).values(values).on_conflict_do_nothing()
    return connection.scalar(new.returning(cdc_jobs.c.job_id)) is not None


def remove_jobs(connection: Connection, key: int) -> None:
    """Drops every job of the database in the caller's transaction."""
    connection.execute(delete(cdc_jobs).where(cdc_jobs.c.database_id == key))


_NOT_STARTED = {JobType.CAPTURE: "Not started.", JobType.CLEANUP: "It has not run yet."}


def _columns(parameters: JobParameters, prefix: str = "") -> dict[str, int | bool]:
    return {prefix + field.name: getattr(parameters, field.name) for field in fields(parameters)}


def _step_columns(step: JobStep | None, prefix: str = "") -> dict[str, int | bool | str | None]:
    return {
        f"{prefix}subsystem": None if step is None else str(step.subsystem),
        f"{prefix}command": None if step is None else step.command,
    }


def _running(parameters: JobParameters | None) -> dict[str, int | bool | str | None]:
    """Every column of what a job runs with: those of the other type are NULL."""
    names = [
        f"running_{field.name}" for kind in (CaptureParameters, CleanupParameters) for field in fields(kind)
    ]
    return dict.fromkeys(names) | ({} if parameters is None else _columns(parameters, "running_"))


def _jobs() -> Select[Any]:
    """Jobs, each with its newest run."""
    runs = (
        select(job_history)
        .where(job_history.c.job_id == cdc_jobs.c.job_id)
        .order_by(job_history.c.run_id.desc())
        .limit(1)
        .lateral("newest")
    )
    newest = [
        runs.c.start_time,
        runs.c.end_time,
        runs.c.outcome,
        runs.c.message.label("outcome_message"),
        runs.c.deleted_rows,
        runs.c.retries,
        runs.c.parameters,
        runs.c.output,
        runs.c.tables,
    ]
    return select(cdc_jobs, databases.c.name, *newest).join(databases).outerjoin(runs, true())


def _job(row: Row[Any]) -> AnyJob:
    if row.job_type == JobType.CLEANUP:
        return _job_of(CleanupParameters, row)
    return _job_of(CaptureParameters, row)


def _job_of(kind: type[_Of], row: Row[Any]) -> Job[_Of]:
    configured = _parameters(kind, row)
    assert configured is not None, "a job's row has its parameters"
    return Job(
        job_id=row.job_id,
        database=row.name,
        job_type=JobType(row.job_type),
        configured=configured,
        running=_parameters(kind, row, "running_"),
        wanted=row.wanted,
        state=JobState(row.state),
        since=row.since,
        message=row.message,
        schedule=row.schedule,
        next_run=row.next_run,
        last_run=_last_run(row),
        step=_step(row),
        running_step=_step(row, "running_"),
    )


def _parameters(kind: type[_Of], row: Row[Any], prefix: str = "") -> _Of | None:
    values = [getattr(row, prefix + field.name) for field in fields(kind)]
    return None if values[0] is None else kind(*values)


def _step(row: Row[Any], prefix: str = "") -> JobStep | None:
    subsystem, command = (getattr(row, f"{prefix}{name}") for name in ("subsystem", "command"))
    return None if subsystem is None else JobStep(Subsystem(subsystem), command)


def _last_run(row: Row[Any]) -> JobRun | None:
    if row.start_time is None:
        return None
    return run_of(row, row.outcome_message)


def run_of(row: Row[Any], message: str) -> JobRun:
    """A run of a row of dbo.job_history that says its job's type too."""
    return JobRun(
        JobType(row.job_type),
        row.start_time,
        row.end_time,
        RunOutcome(row.outcome),
        message,
        row.deleted_rows,
        row.retries,
        row.parameters,
        row.output,
        from_json(row.tables),
    )
