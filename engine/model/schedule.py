"""When a job runs next, by the cron text of its schedule. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from cronsim import CronSim, CronSimError

_FIELDS = 5


class ScheduleUnreadable(ValueError):  # noqa: N818 - says what is wrong
    """The text is no schedule; ``str()`` says which part of it."""


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
