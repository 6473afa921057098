"""When capture read no log, under the lanes: intervals go on over it, since the log was read later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.charts.chart import TimeRange
from dashboard.charts.lane import Lane
from dashboard.charts.validity_key import NO_SCAN, NOT_KNOWN
from dashboard.sessions import LONGEST_REST
from engine.model.scan_session import ScanPause, ScanPauses

ROOM = 0.22
"""Under the lowest lane, in lanes: there it is nobody's."""


def seen_pauses(pauses: ScanPauses, span: TimeRange, pixel: int) -> list[ScanPause]:
    """Those that are at least a pixel wide."""
    return [
        each
        for each in pauses.pauses
        if min(each.end, span.end) - max(each.start, span.start) >= timedelta(seconds=pixel)
    ]


def unknown_scans(
    lanes: Sequence[Lane], pauses: ScanPauses, span: TimeRange, pixel: int
) -> tuple[datetime, datetime] | None:
    """The time that lanes reach back to and of which no sessions are kept; None where they all are.

    The commit that establishes a lane is a moment older than the scan that met it.
    """
    lows = [lane.low for lane in lanes if lane.low is not None]
    if pauses.known_since is None or not lows:
        return None
    start = max(min(lows), span.start)
    least = max(timedelta(seconds=pixel), LONGEST_REST)
    return None if pauses.known_since - start < least else (start, pauses.known_since)


def pause_strips(
    pauses: Sequence[ScanPause], unknown: tuple[datetime, datetime] | None, span: TimeRange
) -> Iterator[go.Bar]:
    """A strip under the lanes for each, to point at; another where nobody knows."""
    if pauses:
        texts = [
            f"<b>No scan</b> read the log for {fmt.duration((each.end - each.start).total_seconds())},<br>"
            f"from {fmt.moment(each.start, span.zone)}<br>to {fmt.moment(each.end, span.zone)}.<br>"
            "What was committed meanwhile was captured after it."
            for each in pauses
        ]
        yield _strip([(each.start, each.end) for each in pauses], texts, span, NO_SCAN, "")
    if unknown is not None:
        text = (
            f"No sessions are kept from before {fmt.moment(unknown[1], span.zone)}:<br>pauses are not known."
        )
        yield _strip([unknown], [text], span, NOT_KNOWN, ".")


def _strip(
    times: Sequence[tuple[datetime, datetime]],
    texts: Sequence[str],
    span: TimeRange,
    name: str,
    pattern: str,
) -> go.Bar:
    clipped = [(max(start, span.start), min(end, span.end)) for start, end in times]
    return go.Bar(
        base=[span.at(start) for start, _ in clipped],
        x=[(end - start).total_seconds() * 1000 for start, end in clipped],
        y=[-0.5 - ROOM / 2] * len(times),
        width=ROOM,
        orientation="h",
        name=name,
        marker={
            "color": theme.NEUTRAL,
            "line": {"width": 0},
            "pattern": {
                "shape": pattern,
                "fgcolor": theme.NEUTRAL,
                "bgcolor": "rgba(0,0,0,0)",
                "size": 4,
                "solidity": 0.3,
            }
            if pattern
            else {},
        },
        customdata=list(texts),
        hovertemplate="%{customdata}<extra></extra>",
    )


def pauses_of(lane: Lane, pauses: ScanPauses) -> str:
    """How often and how long there was no scan within a lane's interval, for the table."""
    inside = [each for each in pauses.pauses if lane.low is not None and each.end > lane.low]
    if not inside or lane.low is None:
        return fmt.DASH
    total = sum((each.end - max(each.start, lane.low)).total_seconds() for each in inside)
    return f"{fmt.plural(len(inside), 'time')}, {fmt.duration(total)} in all"
