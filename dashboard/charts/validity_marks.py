"""What cleanup and clients are to validity intervals: lines and marks over the lanes, and their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.charts.chart import TimeRange
from dashboard.charts.lane import Bookmark, Lane

BAR = 0.55
"""Of a lane, the height of its bar; lines of cleanup reach beyond it."""
LINE = 0.84
INK = "#1D232B"
PAPER = "#FFFFFF"
"""Around what is drawn on a bar, so that it is seen on the bar, a light page and a dark one."""


def after_cleanup_words(lane: Lane, span: TimeRange) -> str:
    """What the next cleanup would do."""
    if lane.low_after is None or lane.low_after == lane.low:
        moved = "cleanup would take nothing now"
    else:
        moved = f"after the next cleanup from {fmt.moment(lane.low_after, span.zone)}"
    return moved if lane.waits_for is None else f"{moved}: it waits for client {escape(lane.waits_for)}"


@dataclass(frozen=True, slots=True)
class _Line:
    """A vertical line across one lane."""

    place: int
    time: datetime
    hover: str
    is_on_bar: bool


def cleanup_lines(
    lanes: Sequence[Lane], span: TimeRange, next_cleanup: datetime | None = None
) -> Iterator[go.Scatter]:
    """The retention horizon, dashed, the low watermark after the next cleanup, dotted, and when that is."""
    horizons = [
        _Line(
            place,
            lane.horizon,
            f"<b>{lane.capture_instance}</b><br>the retention horizon, {fmt.moment(lane.horizon, span.zone)}",
            lane.low is not None and lane.low <= lane.horizon,
        )
        for place, lane in enumerate(lanes)
        if lane.horizon is not None and _is_seen(lane.horizon, span)
    ]
    after = [
        _Line(
            place,
            lane.low_after,
            f"<b>{lane.capture_instance}</b><br>{after_cleanup_words(lane, span)}",
            True,
        )
        for place, lane in enumerate(lanes)
        if lane.low_after is not None and _is_seen(lane.low_after, span)
    ]
    on_bars = [line for line in (*horizons, *after) if line.is_on_bar]
    if on_bars:
        yield _lines(on_bars, span, "", BAR, {"color": PAPER, "width": 4}, is_told=False)
    for name, lines, dash in (("retention horizon", horizons, "dash"), ("low after cleanup", after, "dot")):
        if lines:
            yield _lines(lines, span, name, LINE, {"color": theme.CLEANUP, "width": 2, "dash": dash})
    if next_cleanup is not None and _is_seen(next_cleanup, span):
        hover = f"the next cleanup runs {fmt.moment(next_cleanup, span.zone)}"
        lines = [_Line(place, next_cleanup, hover, is_on_bar=False) for place in range(len(lanes))]
        yield _lines(lines, span, "next cleanup", 1, {"color": theme.CLEANUP, "width": 1, "dash": "dashdot"})


def earlier_horizon(lanes: Sequence[Lane], span: TimeRange) -> str:
    """Where the retention horizon is if it lies before the timeline, which then can't show it."""
    earlier = [lane.horizon for lane in lanes if lane.horizon is not None and lane.horizon < span.start]
    if not earlier:
        return ""
    horizon = min(earlier).astimezone(span.zone)
    return f"◂ retention horizon earlier: {horizon:%Y-%m-%d %H:%M} {fmt.zone_name(horizon)}"


def _is_seen(time: datetime, span: TimeRange) -> bool:
    return span.start <= time <= span.end


def _lines(
    lines: Sequence[_Line],
    span: TimeRange,
    name: str,
    height: float,
    look: dict[str, object],
    is_told: bool = True,
) -> go.Scatter:
    """All of one kind in one trace, with a point in the middle of each to point at."""
    offsets = (-height / 2, 0, height / 2)
    return go.Scatter(
        x=[x for line in lines for x in (*[span.at(line.time)] * len(offsets), None)],
        y=[y for line in lines for y in (*(line.place + offset for offset in offsets), None)],
        customdata=[text for line in lines for text in [line.hover] * (len(offsets) + 1)],
        mode="lines",
        name=name,
        line=look,
        hoverinfo=None if is_told else "skip",
        hovertemplate="%{customdata}<extra></extra>" if is_told else None,
    )


def bookmarks(lanes: Sequence[Lane], span: TimeRange) -> Iterator[go.Scatter]:
    """How far clients have come; those that cleanup has passed in the colour and form of what fails."""
    found = [
        (place, lane, each)
        for place, lane in enumerate(lanes)
        for each in lane.bookmarks
        if _is_seen(each.time, span)
    ]
    for name, is_behind, symbol, colour in (
        ("client", False, "diamond-tall", INK),
        ("client left behind", True, "x", theme.FAILING),
    ):
        of_kind = [each for each in found if each[2].is_behind is is_behind]
        if of_kind:
            yield go.Scatter(
                x=[span.at(bookmark.time) for _, _, bookmark in of_kind],
                y=[place for place, _, _ in of_kind],
                customdata=[_bookmark_words(lane, bookmark, span) for _, lane, bookmark in of_kind],
                mode="markers",
                name=name,
                marker={
                    "symbol": symbol,
                    "size": 13,
                    "color": colour,
                    "line": {"color": PAPER, "width": 1.5},
                },
                hovertemplate="%{customdata}<extra></extra>",
            )


def _bookmark_words(lane: Lane, bookmark: Bookmark, span: TimeRange) -> str:
    """Who has come how far in which instance, and what is wrong with that."""
    lines = [
        f"Client <b>{escape(bookmark.client)}</b> of {lane.capture_instance} has",
        f"all up to {fmt.moment(bookmark.time, span.zone)}  {bookmark.lsn}",
    ]
    return "<br>".join([*lines, *troubles_of(bookmark)])


def troubles_of(bookmark: Bookmark) -> list[str]:
    """What is wrong with how far a client has come."""
    behind = ["cleanup has passed it: changes it has not read are gone"] if bookmark.is_behind else []
    return [*behind, *(["silent for too long: the next cleanup drops it"] if bookmark.is_silent else [])]
