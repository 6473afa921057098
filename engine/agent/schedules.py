"""What the schedules of jobs say, as the agent hears it."""

from __future__ import annotations

from datetime import datetime, tzinfo

import structlog

from engine.model.job import AnyJob
from engine.model.schedule import Plan, ScheduleUnreadable, plan

_log = structlog.get_logger(__name__)


def plan_of(job: AnyJob, now: datetime, zone: tzinfo) -> Plan | None:
    """Whether the job is due by its schedule, and when next; None without one that can be read."""
    if job.schedule is None:
        return None
    try:
        return plan(job.schedule, job.next_run, now, zone)
    except ScheduleUnreadable as error:  # not written by us
        _log.error("schedule of a job", job=job.name, error=str(error))
        return None
