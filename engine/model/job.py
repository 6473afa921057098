"""Capture and cleanup jobs (reference/procedures.md, 3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


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
class Job:
    """A row of msdb.dbo.cdc_jobs with the agent's state of it.

    ``configured`` is what the row says, ``running`` what the process started with (None when it
    does not run): parameters take effect only after stop and start. ``since`` is UTC.
    ``wanted`` is whether somebody asked it to run; ``message`` explains ``state``.
    """

    job_id: UUID
    database: str
    job_type: JobType
    configured: CaptureParameters
    running: CaptureParameters | None
    wanted: bool
    state: JobState
    since: datetime
    message: str

    @property
    def name(self) -> str:
        """The job's name in the agent."""
        return f"cdc.{self.database}_{self.job_type}"
