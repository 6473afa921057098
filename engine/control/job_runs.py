"""Runs of cleanup jobs and the history of them, as msdb keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from engine.control.connections import Connections
from engine.control.jobs import report, run_of
from engine.control.leases import Lease, hold
from engine.control.schema import cdc_jobs, databases, job_history
from engine.control.table_cleanups import to_json
from engine.model.job import (
    CleanupJob,
    CleanupParameters,
    JobRun,
    JobState,
    JobType,
    RunOutcome,
    TableCleanup,
)

RUNS_KEPT = 1000
"""Runs kept of each job."""
INTERRUPTED = "The agent ended while it ran."
_STATES = {RunOutcome.FAILED: JobState.FAILED}


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run that has begun, with the parameters that its job has now."""

    run_id: int
    job: CleanupJob
    parameters: CleanupParameters


class JobRunRepository:
    """Runs: claimed by the one who holds the lease, told of as they go on, and ended."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def claim(
        self, job: CleanupJob, lease: Lease, now: datetime, next_run: datetime | None
    ) -> ClaimedRun | None:
        """Begins a run, where the job still is to run now; None where it is not.

        Runs that the job's history still has as running were interrupted: whoever holds the lease is alone.
        next_run: when the schedule wants it next. Raises LeaseLost.
        """
        mine = cdc_jobs.c.job_id == job.job_id
        with self._connections.begin() as connection:
            hold(connection, lease.database, lease.token, lease.job_type)
            row = connection.execute(select(cdc_jobs).where(mine).with_for_update()).one_or_none()
            if row is None:
                return None
            end_interrupted(connection, row)
            if not row.wanted and not _is_due(row, now):
                return None
            parameters = CleanupParameters(row.retention, row.threshold)
            connection.execute(update(cdc_jobs).where(mine).values(wanted=False, next_run=next_run))
            report(connection, job.job_id, JobState.RUNNING, "Running.", parameters)
            values = {
                "job_id": job.job_id,
                "start_time": now,
                "outcome": RunOutcome.RUNNING,
                "message": "Running.",
                "deleted_rows": 0,
                "parameters": asdict(parameters),
            }
            run_id = connection.scalar(insert(job_history).values(values).returning(job_history.c.run_id))
            assert run_id is not None
            prune(connection, row)
        return ClaimedRun(run_id, job, parameters)

    def progress(self, run: ClaimedRun, deleted_rows: int) -> None:
        """How many rows the run has deleted so far."""
        self._update(run, deleted_rows=deleted_rows)

    def finish(
        self,
        run: ClaimedRun,
        end: datetime,
        outcome: RunOutcome,
        message: str,
        deleted_rows: int,
        tables: Sequence[TableCleanup] = (),
    ) -> None:
        """Ends a run; the job's state and message say how. A job that was dropped meanwhile is no error."""
        with self._connections.begin() as connection:
            values = {"end_time": end, "outcome": outcome, "message": message, "deleted_rows": deleted_rows}
            connection.execute(_of(run).values(values | {"tables": to_json(tables)}))
            report(connection, run.job.job_id, _STATES.get(outcome, JobState.STOPPED), message, None)

    def list(self, database: str, job_type: JobType | None, limit: int) -> list[JobRun]:
        """The newest runs of a database's jobs, or of one of them, newest first."""
        query = (
            select(cdc_jobs.c.job_type, job_history)
            .select_from(job_history.join(cdc_jobs).join(databases))
            .where(databases.c.name == database)
            .order_by(job_history.c.run_id.desc())
            .limit(limit)
        )
        if job_type is not None:
            query = query.where(cdc_jobs.c.job_type == job_type)
        with self._connections.read() as connection:
            return [run_of(row, row.message) for row in connection.execute(query)]

    def _update(self, run: ClaimedRun, **values: Any) -> None:
        with self._connections.begin() as connection:
            connection.execute(_of(run).values(values))


def _of(run: ClaimedRun) -> Any:
    return update(job_history).where(job_history.c.run_id == run.run_id)


def _is_due(row: Row[Any], now: datetime) -> bool:
    return row.schedule is not None and row.next_run is not None and row.next_run <= now


def end_interrupted(connection: Connection, row: Row[Any]) -> None:
    """Runs that the history of a job still has as running were cut off."""
    unfinished = (job_history.c.job_id == row.job_id, job_history.c.outcome == RunOutcome.RUNNING)
    ended = {"outcome": RunOutcome.INTERRUPTED, "message": INTERRUPTED}
    connection.execute(update(job_history).where(*unfinished).values(ended))
    if row.state in (JobState.RUNNING, JobState.STOPPING):
        report(connection, row.job_id, JobState.STOPPED, INTERRUPTED, None)


def prune(connection: Connection, row: Row[Any]) -> None:
    """Forgets a job's oldest runs."""
    mine = job_history.c.job_id == row.job_id
    newest = select(job_history.c.run_id).where(mine).order_by(job_history.c.run_id.desc())
    too_old = newest.offset(RUNS_KEPT).limit(1).scalar_subquery()
    connection.execute(delete(job_history).where(mine, job_history.c.run_id <= too_old))
