"""Capture and cleanup jobs (reference/procedures.md, 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeAlias
from uuid import UUID

from typing_extensions import TypeIs, TypeVar

from engine.model.lsn import Lsn


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


WAITS_FOR_SCAN = "Waits for the end of a scan that somebody called (sp_cdc_scan)."
"""What the agent says of a capture job that is starting, but must let a called scan end first."""


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


class Subsystem(StrEnum):
    """What runs a job's step, as msdb.dbo.sysjobsteps names it."""

    TSQL = "TSQL"
    PYTHON = "PYTHON"


@dataclass(frozen=True, slots=True)
class JobStep:
    """A step of one's own in the place of a capture job's scan: a script that calls sp_cdc_scan itself."""

    subsystem: Subsystem
    command: str


class RunOutcome(StrEnum):
    """How a run of a job ended."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    """The agent's process ended in the middle of it."""


@dataclass(frozen=True, slots=True)
class TableCleanup:
    """What cleanup does to one table: a plan before it runs, its effect afterwards.

    capture_instance: None for cdc.lsn_time_mapping. low_before, low_after: its low endpoint, and when these
    transactions were committed, UTC, where known; the mapping has none before. rows: that go; whole_rows:
    those of them that go first, in one statement; whole_files, shared_files: how many files hold nothing but
    obsolete rows, and how many hold others too; told by a plan alone. waits_for: the client that keeps the
    low endpoint behind. failed: some rows were left.
    """

    capture_instance: str | None
    low_before: Lsn | None
    low_after: Lsn | None
    time_before: datetime | None
    time_after: datetime | None
    rows: int = 0
    statements: int = 0
    whole_rows: int | None = None
    whole_files: int | None = None
    shared_files: int | None = None
    waits_for: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job. Times are UTC; ``end_time`` is None while it runs, and where it was interrupted.

    deleted_rows: what a cleanup has deleted from change tables and cdc.lsn_time_mapping. parameters: by
    the original's names, as it ran with them. A capture job runs from its first scan that went well until
    it is stopped or fails; retries: how often it tried in vain since it failed. output: the end of what a
    step of one's own printed. tables: what a cleanup came to, table by table; none while it runs.
    """

    job_type: JobType
    start_time: datetime
    end_time: datetime | None
    outcome: RunOutcome
    message: str
    deleted_rows: int
    retries: int = 0
    parameters: Mapping[str, int | bool | str] = field(default_factory=dict)
    output: str = ""
    tables: tuple[TableCleanup, ...] = field(default=(), compare=False)


Parameters = TypeVar("Parameters", CaptureParameters, CleanupParameters, default=CaptureParameters)


@dataclass(frozen=True, slots=True)
class Job(Generic[Parameters]):
    """A row of msdb.dbo.cdc_jobs with the agent's state of it; ``Job`` alone is a capture job.

    ``configured`` is what the row says, ``running`` what the process started with (None when it
    does not run): parameters take effect only after stop and start. ``since`` is UTC.
    ``wanted`` is whether somebody asked it to run; ``message`` explains ``state``.

    A cleanup job runs once at a time: ``wanted`` ends where the run begins, FAILED is how the last one
    ended. ``schedule`` is cron text, None where it runs only when it is started; ``next_run`` is UTC, None
    until the agent has seen the schedule; ``last_run`` the newest run of its history. A capture job that has
    a schedule is started by it where it does not run.

    ``step`` is what a capture job runs in the place of its scan, ``running_step`` what it was started with;
    None is the scan.
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
    step: JobStep | None = None
    running_step: JobStep | None = None

    @property
    def name(self) -> str:
        """The job's name in the agent."""
        return f"cdc.{self.database}_{self.job_type}"


CleanupJob: TypeAlias = Job[CleanupParameters]
AnyJob: TypeAlias = Job[CaptureParameters] | Job[CleanupParameters]

CLEANUP_SCHEDULE = "0 2 * * *"
"""When a cleanup job runs unless it is told otherwise: daily at 02:00."""
SCHEDULES: Mapping[JobType, str | None] = {JobType.CAPTURE: None, JobType.CLEANUP: CLEANUP_SCHEDULE}
"""The schedules of new jobs: capture runs at once, and on."""


def is_capture(job: AnyJob) -> TypeIs[Job[CaptureParameters]]:
    """Whether it is a capture job."""
    return job.job_type is JobType.CAPTURE


def is_cleanup(job: AnyJob) -> TypeIs[CleanupJob]:
    """Whether it is a cleanup job."""
    return job.job_type is JobType.CLEANUP
