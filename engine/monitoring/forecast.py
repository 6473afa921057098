"""How fast a source's log grows, and when it meets its limits at that pace. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

PACE_WINDOW = timedelta(hours=1)
"""Over how long the pace is taken, at least, where that far back is known."""
SHORTEST = timedelta(seconds=10)
"""Over less time there is no pace: a log grows by leaps."""
LONGEST = timedelta(days=3650)
"""What lies farther ahead is no forecast."""


@dataclass(frozen=True, slots=True)
class LogPoint:
    """Where a log ended at a moment: bytes since its beginning, and UTC."""

    position: int
    at: datetime


@dataclass(frozen=True, slots=True)
class LogForecast:
    """What happens to the log that a slot holds back, if it goes on growing at ``pace``.

    pace: bytes a second; None where it is unknown. slot_limit: until ``max_slot_wal_keep_size`` is used up,
    disk: until the server's disk is full; None where there is no such limit, or it is unknown, or nothing
    grows. is_growing: whether capture lets nothing go now; False means: from when it would stop.
    """

    pace: float | None
    slot_limit: timedelta | None
    disk: timedelta | None
    is_growing: bool

    @property
    def nearest(self) -> timedelta | None:
        """The first of the two."""
        return min((each for each in (self.slot_limit, self.disk) if each is not None), default=None)


def pace(before: LogPoint | None, now: LogPoint | None) -> float | None:
    """Bytes a second between two points of one log; None where they don't tell."""
    if before is None or now is None:
        return None
    seconds = (now.at - before.at).total_seconds()
    grown = now.position - before.position
    return grown / seconds if seconds >= SHORTEST.total_seconds() and grown >= 0 else None


def time_until(room: int | None, bytes_a_second: float | None) -> timedelta | None:
    """Until ``room`` bytes are used up; nothing is left where it is negative. None for never, or unknown."""
    if room is None or not bytes_a_second:
        return None
    seconds = max(0, room) / bytes_a_second
    return timedelta(seconds=seconds) if seconds <= LONGEST.total_seconds() else None


def forecast(
    before: LogPoint | None,
    now: LogPoint | None,
    slot_room: int | None,
    disk_room: int | None,
    *,
    is_growing: bool,
) -> LogForecast:
    """From two points of the log, and the bytes left until the slot's limit and on the disk."""
    speed = pace(before, now)
    return LogForecast(speed, time_until(slot_room, speed), time_until(disk_room, speed), is_growing)
