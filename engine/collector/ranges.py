"""Which sessions a question asks for, and which days' snapshots have them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

CLOCK_MARGIN = timedelta(days=1)
"""How far a clock may have been set back between a session's begin and its snapshot."""


@dataclass(frozen=True, slots=True)
class HistoryRange:
    """[start, end) of sessions' beginnings, of one database or all.

    taken_until: when the first snapshot at or after ``end`` was taken, in which the last sessions of the
    range are; None: all later ones are looked through. not_counted: snapshots that are no whole ones.
    """

    start: datetime
    end: datetime
    database: str | None = None
    taken_until: datetime | None = None
    not_counted: Sequence[int] = ()

    @property
    def first_day(self) -> date:
        """The first day whose snapshots may have sessions of the range, UTC."""
        return _day(self.start, -CLOCK_MARGIN)

    @property
    def last_day(self) -> date | None:
        """The last one; None: the newest there is."""
        return None if self.taken_until is None else _day(self.taken_until, CLOCK_MARGIN)


def _day(moment: datetime, margin: timedelta) -> date:
    try:
        return (moment.astimezone(UTC) + margin).date()
    except OverflowError:
        return date.min if margin < timedelta(0) else date.max
