"""What has expired, and when the lake's upkeep is due. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

COMPACT_EVERY = 12
"""Snapshots after which today's files become one: an hour of the default set."""


def kept_from(now: datetime, days_until_expiration: int) -> date | None:
    """The first day whose snapshots are kept; whole days go, so at least that long is kept. None: all are."""
    if days_until_expiration == 0:
        return None
    try:
        return (now.astimezone(UTC) - timedelta(days=days_until_expiration)).date()
    except OverflowError:  # before the year 1
        return None


def is_upkeep_due(last: datetime | None, now: datetime) -> bool:
    """Whether expiry and compaction have not been done on this day yet, whichever way the clock went."""
    return last is None or last.astimezone(UTC).date() != now.astimezone(UTC).date()


def is_forgotten(dropped: datetime, days_until_expiration: int, now: datetime) -> bool:
    """Whether nothing can be left of a set that was deleted then."""
    first = kept_from(now, days_until_expiration)
    return first is not None and dropped.astimezone(UTC).date() < first
