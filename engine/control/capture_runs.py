"""Runs of capture jobs in the history of jobs: from the first scan that went well to a stop or a failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, insert, select, update

from engine.control.connections import Connections
from engine.control.job_runs import end_interrupted, prune
from engine.control.leases import Lease, hold
from engine.control.schema import cdc_jobs, job_history
from engine.model.job import RunOutcome

RunParameters = Mapping[str, int | bool | str]


@dataclass(frozen=True, slots=True)
class CaptureRun:
    """How a run of a capture job ended, or that it goes on.

    run_id: None for one that is to be written first. end_time: None while it runs. output: what its step
    printed at last.
    """

    job_id: UUID
    start_time: datetime
    parameters: RunParameters
    outcome: RunOutcome = RunOutcome.RUNNING
    message: str = "Running."
    end_time: datetime | None = None
    retries: int = 0
    output: str = ""
    run_id: int | None = None


class CaptureRunRepository:
    """Rows of the history; only the holder of the lease begins one."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def save(self, run: CaptureRun, lease: Lease) -> int | None:
        """Writes a run, a new one or what became of it; its number, None where its job is no more.

        Raises LeaseLost when another has taken over: he has said of this run that it was interrupted.
        """
        with self._connections.begin() as connection:
            hold(connection, lease.database, lease.token, lease.job_type)
            if run.run_id is None:
                return _insert(connection, run)
            mine = job_history.c.run_id == run.run_id
            connection.execute(update(job_history).where(mine).values(_values(run)))
        return run.run_id


def _insert(connection: Connection, run: CaptureRun) -> int | None:
    mine = cdc_jobs.c.job_id == run.job_id
    job = connection.execute(select(cdc_jobs).where(mine).with_for_update()).one_or_none()
    if job is None:
        return None
    end_interrupted(connection, job)
    new = insert(job_history).values({"job_id": run.job_id, "deleted_rows": 0, **_values(run)})
    number: int | None = connection.scalar(new.returning(job_history.c.run_id))
    prune(connection, job)
    return number


def _values(run: CaptureRun) -> dict[str, object]:
    return {
        "start_time": run.start_time,
        "end_time": run.end_time,
        "outcome": run.outcome,
        "message": run.message,
        "retries": run.retries,
        "parameters": dict(run.parameters),
        "output": run.output,
    }
