"""Lanes of the validity timeline: what a picture says of each instance, and what cleanup would. Pure."""

from __future__ import annotations

from datetime import datetime

from dashboard.charts.lane import Bookmark, Lane
from dashboard.format import lsn_long
from dashboard.snapshot import DatabaseView
from engine.cleanup.retention import kept_since
from engine.model.capture_instance import CaptureInstance
from engine.model.client import Client
from engine.model.lsn import Lsn


def lanes(view: DatabaseView, now: datetime) -> list[Lane]:
    """A lane for each capture instance."""
    horizon = retention_horizon(view)
    return [_lane(view, instance, horizon, now) for instance in view.instances]


def retention_horizon(view: DatabaseView) -> datetime | None:
    """From when on cleanup keeps changes; None without a cleanup job, or before the first commit."""
    job, last = view.cleanup_job, view.watermarks.last_commit_time
    return None if job is None or last is None else kept_since(last, job.configured.retention)


def _lane(view: DatabaseView, instance: CaptureInstance, horizon: datetime | None, now: datetime) -> Lane:
    marks, low = view.watermarks, view.low_time(instance)
    clients = [each for each in view.clients if each.capture_instance == instance.capture_instance]
    low_after, waits_for = _after_cleanup(view, low, horizon, [c for c in clients if not c.is_expired(now)])
    return Lane(
        capture_instance=instance.capture_instance,
        source_table=f"{instance.source_schema}.{instance.source_table}",
        low=low,
        high=marks.last_commit_time,
        captured_until=marks.published_at,
        low_lsn=lsn_long(instance.start_lsn),
        high_lsn=lsn_long(marks.high),
        horizon=None if low is None else horizon,
        low_after=low_after,
        waits_for=waits_for,
        bookmarks=tuple(
            mark for each in clients if (mark := _bookmark(view, instance, each, now)) is not None
        ),
    )


def _after_cleanup(
    view: DatabaseView, low: datetime | None, horizon: datetime | None, clients: list[Client]
) -> tuple[datetime | None, str | None]:
    """Commit time of the low watermark if cleanup ran now, and the client that keeps it from the horizon.

    By times alone, so that no mapping is read for it: a run rounds up to the first commit from there on.
    None where the time of what the slowest client has is not known.
    """
    if low is None or horizon is None:
        return None, None
    slowest = min(clients, key=lambda each: each.acknowledged_lsn or Lsn.ZERO, default=None)
    if slowest is None:
        return max(low, horizon), None
    if slowest.acknowledged_lsn is None:
        return low, slowest.name
    reached = view.commit_times.get(slowest.acknowledged_lsn)
    if reached is None:
        return None, None
    return max(low, min(horizon, reached)), slowest.name if reached < horizon else None


def _bookmark(
    view: DatabaseView, instance: CaptureInstance, client: Client, now: datetime
) -> Bookmark | None:
    """None where it has acknowledged nothing, or nobody knows when that was committed."""
    lsn, low = client.acknowledged_lsn, instance.start_lsn
    if lsn is None or low is None:
        return None
    time = view.commit_times.get(lsn)
    if time is None and lsn < low:
        time = view.low_time(instance)  # its own went with what cleanup took from cdc.lsn_time_mapping
    if time is None:
        return None
    return Bookmark(client.name, lsn_long(lsn), time, is_behind=lsn < low, is_silent=client.is_expired(now))
