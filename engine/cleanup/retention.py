"""How long changes are kept (reference/behaviour.md, 4). Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_BEGINNING = datetime.min.replace(tzinfo=UTC)


def kept_since(last_commit: datetime, retention: int) -> datetime:
    """The commit time from which on changes are kept, ``retention`` minutes before the last captured commit.

    The base is what was captured, not the clock: capture that lags loses nothing of its retention.
    """
    try:
        return last_commit - timedelta(minutes=retention)
    except OverflowError:
        return _BEGINNING
