"""Capture and cleanup jobs (reference/procedures.md, 3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeAlias
from uuid import UUID

from typing_extensions import TypeIs, TypeVar


class JobType(StrEnum):
    """``job_type`` of msdb.dbo.cdc_jobs."""

    CAPTURE = "capture"
    CLEANUP = "cleanup"


class JobState(StrEnum):
    """What the agent last reported of a job."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CaptureParameters:
    """Parameters of a capture job: transactions a cycle, cycles a drain, seconds between drains."""

    maxtrans: int = 500
    maxscans: int = 10
    continuous: bool = True
    pollinginterval: int = 5

    @property
    def ceiling(self) -> float | None:
        """Most transactions a second these parameters allow; None where the interval is 0."""
        if not self.continuous or self.pollinginterval == 0:
            return None
        return self.maxtrans * self.maxscans / self.pollinginterval


@dataclass(frozen=True, slots=True)
class CleanupParameters:
    """Parameters of a cleanup job: minutes that changes are kept, rows that a statement deletes at most."""

    retention: int = 4320
    threshold: int = 5000


class RunOutcome(StrEnum):
    """How a run of a job ended."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    """The agent's process ended in the middle of it."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job. Times are UTC; ``end_time`` is None while it runs, and where it was interrupted.

    deleted_rows: what a cleanup has deleted from change tables and cdc.lsn_time_mapping.
    """

    job_type: JobType
    start_time: datetime
    end_time: datetime | None
    outcome: RunOutcome
    message: str
    deleted_rows: int


Parameters = TypeVar("Parameters", CaptureParameters, CleanupParameters, default=CaptureParameters)


@dataclass(frozen=True, slots=True)
class Job(Generic[Parameters]):
    """A row of msdb.dbo.cdc_jobs with the agent's state of it; ``Job`` alone is a capture job.

    ``configured`` is what the row says, ``running`` what the process started with (None when it
    does not run): parameters take effect only after stop and start. ``since`` is UTC.
    ``wanted`` is whether somebody asked it to run; ``message`` explains ``state``.

    A cleanup job runs once at a time: ``wanted`` ends where the run begins, FAILED is how the last one
    ended. ``schedule`` is cron text, None where it runs only when it is started; ``next_run`` is UTC, None
    until the agent has seen the schedule; ``last_run`` the newest run of its history.
    """

    job_id: UUID
    database: str
    job_type: JobType
    configured: Parameters
    running: Parameters | None
    wanted: bool
    state: JobState
    since: datetime
    message: str
    schedule: str | None = None
    next_run: datetime | None = None
    last_run: JobRun | None = None

    @property
    def name(self) -> str:
        """The job's name in the agent."""
        return f"cdc.{self.database}_{self.job_type}"


CleanupJob: TypeAlias = Job[CleanupParameters]
AnyJob: TypeAlias = Job[CaptureParameters] | Job[CleanupParameters]

CLEANUP_SCHEDULE = "0 2 * * *"
"""When a cleanup job runs unless it is told otherwise: daily at 02:00."""


def is_capture(job: AnyJob) -> TypeIs[Job[CaptureParameters]]:
    """Whether it is a capture job."""
    return job.job_type is JobType.CAPTURE


def is_cleanup(job: AnyJob) -> TypeIs[CleanupJob]:
    """Whether it is a cleanup job."""
    return job.job_type is JobType.CLEANUP
