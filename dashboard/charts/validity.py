"""Validity intervals: how far back and how far forward each capture instance can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.charts.chart import Chart, TimeRange, gap_bands, mark, note, time_figure
from dashboard.charts.lane import Lane
from dashboard.charts.validity_key import NOW, RANGE, add_key, key_lines
from dashboard.charts.validity_marks import (
    BAR,
    after_cleanup_words,
    bookmarks,
    cleanup_lines,
    earlier_horizon,
)
from dashboard.charts.validity_pauses import ROOM, pause_strips, seen_pauses, unknown_scans
from dashboard.charts.validity_words import alt_of, table_of
from dashboard.sessions import align, align_up, bucket_seconds
from engine.model.scan_session import ScanPauses

LANE = 30
NOTHING_KNOWN = ScanPauses()


def validity_chart(
    lanes: Sequence[Lane],
    span: TimeRange,
    now: datetime,
    chosen: TimeRange | None = None,
    next_cleanup: datetime | None = None,
    pauses: ScanPauses = NOTHING_KNOWN,
) -> Chart:
    """A lane for each instance: bar from low to high watermark, hatched tail to now = not captured yet.

    Dashed and dotted lines say what cleanup keeps and would keep, diamonds how far clients have come. Two
    instances of one table stand side by side and their overlap is marked "safe to switch". ``chosen``, the
    header's range, is a band where ``span`` is wider; ``pauses`` are grey ones, with strips under the lanes.
    """
    ordered = in_order(lanes)
    now_drawn = _standing(ordered, span, now)
    traces = [
        _bars(ordered, span, now_drawn, "valid", theme.ACCENT),
        _bars(ordered, span, now_drawn, "captured, no changes", theme.ACCENT + "59"),
        _bars(ordered, span, now_drawn, "not captured yet", theme.NEUTRAL),
        *cleanup_lines(ordered, span, next_cleanup),
        *bookmarks(ordered, span),
    ]
    shown_pauses = seen_pauses(pauses, span, _pixel(span))
    strips = list(pause_strips(shown_pauses, unknown_scans(ordered, pauses, span, _pixel(span)), span))
    traces += strips
    band = None if chosen is None else _band(chosen, span, now_drawn)
    drawn = {trace.name for trace in traces if _is_seen(trace, span)} | {NOW} | ({RANGE} if band else set())
    key = key_lines(drawn, earlier_horizon(ordered, span))
    figure = _frame([lane.capture_instance for lane in ordered], span, key, ROOM if strips else 0)
    gap_bands(figure, shown_pauses, span)
    if band is not None:
        _add_band(figure, band, span)
    figure.add_traces(traces)
    _add_overlaps(figure, ordered, span, now_drawn)
    _add_unknown(figure, ordered)
    mark(figure, span.at(now_drawn), theme.NEUTRAL)
    if not ordered:
        note(figure, "No capture instance yet")
    return Chart(figure, alt_of(ordered, now, len(shown_pauses)), table_of(ordered, span, pauses))


def _frame(names: Sequence[str], span: TimeRange, key: Sequence[str], below: float) -> go.Figure:
    """The key, and under it a lane for each name; ``below``: room under the lowest, in lanes."""
    left = 16 + round(6.6 * max(map(len, names), default=12))
    top = 10 + 18 * len(key)
    figure = time_figure(span, max(152 + top, 36 + top + LANE * len(names)))
    figure.update_layout(
        hovermode="closest",
        barmode="overlay",
        showlegend=False,
        margin={"l": left, "r": 12, "t": top, "b": 30},
    )
    figure.update_xaxes(nticks=6)
    figure.update_yaxes(
        type="linear",
        automargin=False,
        showgrid=False,
        rangemode="normal",
        nticks=None,
        range=[-0.5 - below, max(1, len(names)) - 0.5],
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=list(names),
    )
    add_key(figure, key, left)
    return figure


def in_order(lanes: Sequence[Lane]) -> list[Lane]:
    """Lanes from the bottom of the timeline to its top: the first table, and its older instance, above."""
    return sorted(
        lanes, key=lambda lane: (lane.source_table, lane.low is None, lane.low or datetime.max), reverse=True
    )


def _standing(lanes: Sequence[Lane], span: TimeRange, now: datetime) -> datetime:
    """Now, as it is drawn: it moves on by about a pixel, or by what was captured, else the figure stands.

    Never earlier than up to where the log is read: what is captured is not drawn as missing.
    """
    read = [min(lane.captured_until, now) for lane in lanes if lane.captured_until is not None]
    return max(align(now, _pixel(span)), *read, span.start)


def _pixel(span: TimeRange) -> int:
    """Seconds that are about a pixel wide."""
    return bucket_seconds((span.end - span.start) / 4)


def _is_seen(trace: go.Bar | go.Scatter, span: TimeRange) -> bool:
    """Whether anything of it is at least a pixel wide: what only zooming in shows is not in the key."""
    if isinstance(trace, go.Scatter):
        return bool(trace.y)
    return any(length >= _pixel(span) * 1000 for length in trace.x)


def _band(chosen: TimeRange, span: TimeRange, now: datetime) -> tuple[datetime, datetime] | None:
    """What of the header's range lies in the timeline, in whole pixels; None where it is all, or nothing."""
    pixel = _pixel(span)
    start = max(align(chosen.start, pixel), span.start)
    end = min(align_up(chosen.end, pixel), align_up(now, pixel), span.end)
    is_all = start == span.start and chosen.end >= now
    return None if is_all or end <= start else (start, end)


def _add_band(figure: go.Figure, band: tuple[datetime, datetime], span: TimeRange) -> None:
    figure.add_shape(
        type="rect",
        x0=span.at(band[0]),
        x1=span.at(band[1]),
        y0=0,
        y1=1,
        yref="paper",
        line={"color": theme.ACCENT + "73", "width": 1},
        fillcolor=theme.ACCENT + "1F",
        layer="below",
        name=RANGE,
    )


def _interval(lane: Lane, kind: str, now: datetime) -> tuple[datetime, datetime] | None:
    if lane.low is None:
        return None
    high = max(lane.low, lane.high or lane.low)
    read = min(now, max(high, lane.captured_until or high))
    interval = {
        "valid": (lane.low, high),
        "captured, no changes": (high, read),
        "not captured yet": (read, now),
    }[kind]
    return interval if interval[1] > interval[0] else None


def _bars(lanes: Sequence[Lane], span: TimeRange, now: datetime, kind: str, colour: str) -> go.Bar:
    base, length, places, hover = [], [], [], []
    for place, lane in enumerate(lanes):
        interval = _interval(lane, kind, now)
        if interval is None or interval[1] <= span.start:
            continue
        start = max(interval[0], span.start)
        base.append(span.at(start))
        length.append((interval[1] - start).total_seconds() * 1000)
        places.append(place)
        hover.append(_hover(lane, kind, interval, span))
    pattern = {"shape": "/", "fgcolor": colour, "bgcolor": "rgba(0,0,0,0)", "size": 6, "solidity": 0.35}
    return go.Bar(
        base=base,
        x=length,
        y=places,
        width=BAR,
        orientation="h",
        name=kind,
        marker={
            "color": colour,
            "line": {"width": 0},
            "pattern": pattern if kind == "not captured yet" else {},
        },
        customdata=hover,
        hovertemplate="%{customdata}<extra></extra>",
    )


def _hover(lane: Lane, kind: str, interval: tuple[datetime, datetime], span: TimeRange) -> str:
    if kind == "valid":
        lines = (
            f"<b>{lane.capture_instance}</b> can be asked",
            f"from {fmt.moment(interval[0], span.zone)}  {lane.low_lsn}",
            f"to {fmt.moment(interval[1], span.zone)}  {lane.high_lsn}",
            *([] if lane.low_after is None else [after_cleanup_words(lane, span)]),
        )
        return "<br>".join(lines)
    start, end = (fmt.moment(time, span.zone) for time in interval)
    if kind == "not captured yet":  # a time: how long ago it was would be another text at every tick
        return f"<b>{lane.capture_instance}</b><br>the log after {start}<br>is not captured yet"
    return (
        f"<b>{lane.capture_instance}</b><br>the log is read to {end},<br>nothing was committed after {start}"
    )


def _add_overlaps(figure: go.Figure, lanes: Sequence[Lane], span: TimeRange, now: datetime) -> None:
    for index, lane in enumerate(lanes[1:], 1):
        other = lanes[index - 1]
        if lane.source_table != other.source_table or lane.low is None or other.low is None:
            continue
        start, end = max(lane.low, other.low, span.start), min(lane.high or now, other.high or now)
        if end <= start:
            continue
        figure.add_shape(
            type="rect",
            x0=span.at(start),
            x1=span.at(end),
            y0=index - 1.4,
            y1=index + 0.4,
            line={"color": theme.OVERLAP, "width": 1},
            fillcolor=theme.OVERLAP + "22",
            label={"text": "safe to switch", "font": {"size": 11}},
        )


def _add_unknown(figure: go.Figure, lanes: Sequence[Lane]) -> None:
    """An instance without a low watermark has its lane too: empty, with the reason."""
    for index, lane in enumerate(lanes):
        if lane.low is None:
            text = f"{fmt.NOT_ESTABLISHED}: capture has not met it in the log"
            place = {"x": 0.01, "xref": "paper", "xanchor": "left", "y": index}
            figure.add_annotation(text=text, showarrow=False, font={"size": 12}, **place)
