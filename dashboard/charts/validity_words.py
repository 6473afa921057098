"""The validity timeline in words: for those who can't see it, and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pandas as pd

from dashboard import format as fmt
from dashboard.charts.chart import TimeRange
from dashboard.charts.lane import Lane
from dashboard.charts.validity_marks import troubles_of
from dashboard.charts.validity_pauses import pauses_of
from engine.model.scan_session import ScanPauses


def alt_of(lanes: Sequence[Lane], now: datetime, pauses: int) -> str:
    """The takeaway; lanes from the bottom to the top."""
    if not lanes:
        return "No capture instance yet."
    texts = [_lane_words(lane, now) for lane in reversed(lanes)]
    if pauses:
        texts = [*texts[:8], f"{fmt.plural(pauses, 'pause')} of capture"]
    return "Validity intervals: " + "; ".join(texts[:9]) + "."


def _lane_words(lane: Lane, now: datetime) -> str:
    if lane.low is None:
        return f"{lane.capture_instance} {fmt.NOT_ESTABLISHED}"
    parts = [f"{lane.capture_instance} from {fmt.ago(lane.low, now)} to {fmt.ago(lane.high, now)}"]
    if lane.low_after is not None and lane.low_after != lane.low:
        parts.append(f"after cleanup from {fmt.ago(lane.low_after, now)}")
    if lane.waits_for is not None:
        parts.append(f"cleanup waits for client {lane.waits_for}")
    for each in lane.bookmarks:
        place = "left behind at" if each.is_behind else "at"
        parts.append(f"client {each.client} {place} {fmt.ago(each.time, now)}")
    return ", ".join(parts)


def table_of(lanes: Sequence[Lane], span: TimeRange, pauses: ScanPauses) -> pd.DataFrame:
    """A row for each lane, with what lies outside the timeline too."""
    rows = list(reversed(lanes))
    return pd.DataFrame(
        {
            "capture_instance": [lane.capture_instance for lane in rows],
            "source_table": [lane.source_table for lane in rows],
            "low watermark": [lane.low_lsn for lane in rows],
            "low time": [fmt.moment(lane.low, span.zone) for lane in rows],
            "high watermark": [lane.high_lsn for lane in rows],
            "high time": [fmt.moment(lane.high, span.zone) for lane in rows],
            "retention horizon": [_time(lane.horizon, span) for lane in rows],
            "low time after cleanup": [_time(lane.low_after, span) for lane in rows],
            "cleanup waits for": [lane.waits_for or fmt.DASH for lane in rows],
            "without a scan": [pauses_of(lane, pauses) for lane in rows],
            "clients": [_clients(lane, span) or fmt.DASH for lane in rows],
        }
    )


def _time(time: datetime | None, span: TimeRange) -> str:
    return fmt.DASH if time is None else fmt.moment(time, span.zone)


def _clients(lane: Lane, span: TimeRange) -> str:
    texts = (
        " ".join([each.client, fmt.moment(each.time, span.zone), each.lsn])
        + "".join(f" ({trouble})" for trouble in troubles_of(each))
        for each in lane.bookmarks
    )
    return "; ".join(texts)
