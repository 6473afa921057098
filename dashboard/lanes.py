"""Lanes of the validity timeline: what a picture says of each instance, and what cleanup would. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from dashboard.charts.chart import TimeRange
from dashboard.charts.lane import Bookmark, Lane
from dashboard.format import lsn_long
from dashboard.sessions import MAX_POINTS, align, align_up, bucket_seconds
from dashboard.snapshot import DatabaseView
from engine.cleanup.retention import kept_since
from engine.model.capture_instance import CaptureInstance
from engine.model.client import Client
from engine.model.lsn import Lsn

SHORTEST = timedelta(minutes=5)
"""What the timeline spans at least: below that it would move on with every scan."""
FARTHEST = 4
"""How many times as long as the intervals the timeline may become for the retention horizon."""
STEPS = 40
"""Into how many steps the timeline is cut: its ends lie on them, so that it moves on now and then only."""


def lanes(view: DatabaseView, now: datetime) -> list[Lane]:
    """A lane for each capture instance."""
    horizon = retention_horizon(view)
    return [_lane(view, instance, horizon, now) for instance in view.instances]


def timeline(
    shown: Sequence[Lane], now: datetime, zone: tzinfo = UTC, next_cleanup: datetime | None = None
) -> TimeRange:
    """What the timeline of these lanes spans: from the first there is to see to now, or the next cleanup.

    Neither squeezes the intervals out of sight: a retention horizon that would leave them less than a
    quarter of the width, and a cleanup that would take more than that, stay outside.
    """
    first = min((time for lane in shown for time in _times(lane)), default=now)
    first = min(first, now - SHORTEST)
    horizon = min((lane.horizon for lane in shown if lane.horizon is not None), default=first)
    if now - horizon <= FARTHEST * (now - first):
        first = min(first, horizon)
    last = now
    if next_cleanup is not None and now < next_cleanup <= now + (now - first) / (FARTHEST - 1):
        last = next_cleanup
    step = bucket_seconds((last - first) * (MAX_POINTS / STEPS))
    return TimeRange(align(first - timedelta(seconds=step / 2), step), align_up(last, step), zone)


def _times(lane: Lane) -> Iterator[datetime]:
    """What of a lane is to be seen, wherever it lies."""
    if lane.low is not None:
        yield lane.low
    yield from (mark.time for mark in lane.bookmarks)


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
