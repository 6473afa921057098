"""When collection sets collect. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from uuid import NAMESPACE_URL, UUID, uuid5

from engine.model.collection import CollectorSchedule
from engine.model.schedule import next_run

_MINUTES_A_DAY = 24 * 60


def _cron(minutes: int) -> str:
    if minutes == _MINUTES_A_DAY:
        return "0 0 * * *"
    if minutes % 60 == 0:
        return "0 * * * *" if minutes == 60 else f"0 */{minutes // 60} * * *"
    return "* * * * *" if minutes == 1 else f"*/{minutes} * * * *"


def _shipped(name: str, minutes: int) -> CollectorSchedule:
    name = f"CollectorSchedule_Every_{name}"
    return CollectorSchedule(uuid5(NAMESPACE_URL, f"highwater:{name}"), name, _cron(minutes))


SCHEDULES = (
    _shipped("5min", 5),
    _shipped("10min", 10),
    _shipped("15min", 15),
    _shipped("30min", 30),
    _shipped("60min", 60),
    _shipped("6h", 360),
)
"""The collector's schedules by the original's names; their uids are the same in every home."""
"""What a set has by default."""


def schedule_named(name: str) -> CollectorSchedule | None:
    """A shipped schedule by its name in any case."""
    return next((each for each in SCHEDULES if each.name.lower() == name.strip().lower()), None)


def schedule_with(uid: UUID) -> CollectorSchedule | None:
    """A shipped schedule by its uid."""
    return next((each for each in SCHEDULES if each.schedule_uid == uid), None)


def schedule_of_text(cron: str | None) -> CollectorSchedule | None:
    """The shipped schedule that means the same; None for another one."""
    return next((each for each in SCHEDULES if each.cron == cron), None)


def every(minutes: int) -> str | None:
    """Cron text for an interval; None where a day has no even number of them on the clock."""
    even = minutes > 0 and (60 % minutes == 0 if minutes < 60 else minutes % 60 == 0)
    if not even or _MINUTES_A_DAY % minutes:
        return None
    return _cron(minutes)


def interval_seconds(cron: str, at: datetime, zone: tzinfo = UTC) -> int:
    """Seconds between the next two times of a schedule: how often it collects then."""
    first = next_run(cron, at, zone)
    return round((next_run(cron, first, zone) - first).total_seconds())


def is_due(planned: datetime | None, now: datetime) -> bool:
    """Whether the planned time has come. However many were missed meanwhile, they are made up for once."""
    return planned is not None and planned <= now


def is_stale(planned: datetime | None, following: datetime) -> bool:
    """Whether a planned time must give way to ``following``, the schedule's next one.

    One that lies further ahead was planned by a clock that has gone back since, or by another schedule.
    """
    return planned is None or planned > following
