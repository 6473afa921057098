"""When cleanup by retention comes to a client, and when the client's limit does. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from engine.cleanup.retention import kept_since
from engine.model.client import Client, ClientForecast


def forecast(
    client: Client,
    acknowledged_time: datetime | None,
    earlier_time: datetime | None,
    last_commit: datetime | None,
    retention: int | None,
    now: datetime,
) -> ClientForecast:
    """What becomes of a client if it goes on at its pace, and capture with the clock.

    acknowledged_time, earlier_time: when the transactions at its acknowledgement, and at the earlier one,
    were committed; None where not known. last_commit: the last captured; retention: minutes, of the cleanup
    job; None without one. Its pace is what it has acknowledged since the earlier one, in seconds of commit
    time, by the time that has gone since then up to now: a client that fell silent slows down.
    """
    if client.expires_at is None and (acknowledged_time is None or last_commit is None or retention is None):
        return ClientForecast(None, None)
    passed = None
    if acknowledged_time is not None and last_commit is not None and retention is not None:
        gap = acknowledged_time - kept_since(last_commit, retention)
        passed = _reached(gap, _pace(client, acknowledged_time, earlier_time, now), now)
    return ClientForecast(passed, client.expires_at)


def _pace(client: Client, acknowledged: datetime, earlier: datetime | None, now: datetime) -> float:
    """Seconds of commit time a second."""
    elapsed = (now - client.earlier_at).total_seconds()
    if earlier is None or elapsed <= 0:
        return 0.0
    return max(0.0, (acknowledged - earlier).total_seconds() / elapsed)


def _reached(gap: timedelta, pace: float, now: datetime) -> datetime | None:
    """When what moves a second a second has made up ``gap``; None where it never does."""
    if gap <= timedelta(0):
        return now + gap
    if pace >= 1:
        return None
    try:
        return now + gap / (1 - pace)
    except OverflowError:
        return None
