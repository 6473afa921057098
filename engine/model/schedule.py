"""When a job runs next, by the cron text of its schedule. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from cronsim import CronSim, CronSimError

_FIELDS = 5


class ScheduleUnreadable(ValueError):  # noqa: N818 - says what is wrong
    """The text is no schedule; ``str()`` says which part of it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Whether a job is to run now, and when next, in UTC."""

    is_due: bool
    next_run: datetime


def plan(schedule: str, expected: datetime | None, now: datetime, zone: tzinfo = UTC) -> Plan:
    """What the schedule says at ``now`` where the job was ``expected`` next; None: nobody has looked yet.

    Each time of the schedule is run once: where clocks jump forward over it, or nobody looked, right after
    and not once for each; where they jump back, what has run is not due again before its time tomorrow. Only
    where they jump back over two times or more is the nearest meant. Raises ScheduleUnreadable.
    """
    following = next_run(schedule, now, zone)
    if expected is not None and expected <= now:
        return Plan(True, following)
    if expected is None or (expected > following and expected > next_run(schedule, following, zone)):
        return Plan(False, following)
    return Plan(False, expected)


def next_run(schedule: str, after: datetime, zone: tzinfo = UTC) -> datetime:
    """The first time of ``schedule`` later than ``after``, in UTC.

    schedule: minute, hour, day of month, month, day of week, as in Debian's cron (0 and 7 are Sunday, and
    of two days that are given either may match). Its hours are those of ``zone``; where clocks go forward
    over it, it runs right after, where they go back, once. Raises ScheduleUnreadable.
    """
    if len(schedule.split()) != _FIELDS:
        raise ScheduleUnreadable("it must have five fields: minute, hour, day, month, day of week")
    try:
        found = next(CronSim(schedule, after.astimezone(zone)), None)
    except CronSimError as error:
        raise ScheduleUnreadable(str(error)) from error
    if found is None:
        raise ScheduleUnreadable("it has no day that ever comes")
    return found.astimezone(UTC)
