"""Validity intervals: how far back and how far forward each capture instance can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pandas as pd
import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.charts.chart import Chart, TimeRange, mark, note, time_figure
from dashboard.charts.lane import Lane
from dashboard.charts.validity_marks import BAR, after_cleanup_words, bookmarks, cleanup_lines, troubles_of

LANE = 30


def validity_chart(lanes: Sequence[Lane], span: TimeRange, now: datetime) -> Chart:
    """A lane for each instance: bar from low to high watermark, hatched tail to now = not captured yet.

    Dashed and dotted lines say what cleanup keeps and would keep, diamonds how far clients have come. Two
    instances of one table stand side by side and their overlap is marked "safe to switch".
    """
    ordered = sorted(lanes, key=lambda lane: (lane.source_table, lane.low or now), reverse=True)
    left = 16 + round(6.6 * max((len(lane.capture_instance) for lane in ordered), default=12))
    key = _key(ordered)
    top = 10 + 18 * len(key)
    figure = time_figure(span, max(152 + top, 36 + top + LANE * len(ordered)))
    figure.update_layout(
        hovermode="closest",
        barmode="overlay",
        showlegend=False,
        margin={"l": left, "r": 12, "t": top, "b": 30},
    )
    _add_key(figure, key, left)
    figure.update_xaxes(nticks=6)
    names = [lane.capture_instance for lane in ordered]
    figure.update_yaxes(
        type="linear",
        automargin=False,
        showgrid=False,
        rangemode="normal",
        nticks=None,
        range=[-0.5, max(1, len(names)) - 0.5],
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=names,
    )
    figure.add_traces(
        [
            _bars(ordered, span, now, "valid", theme.ACCENT),
            _bars(ordered, span, now, "captured, no changes", theme.ACCENT + "59"),
            _bars(ordered, span, now, "not captured yet", theme.NEUTRAL),
            *cleanup_lines(ordered, span),
            *bookmarks(ordered, span),
        ]
    )
    _add_overlaps(figure, ordered, span, now)
    _add_unknown(figure, ordered)
    mark(figure, span.at(now), theme.NEUTRAL)
    if not ordered:
        note(figure, "No capture instance yet")
    return Chart(figure, _alt(ordered, now), _table(ordered, span))


_KeyPart = tuple[str, str, str]
"""A sign, its colour (that of the text where it is empty) and what it means."""


def _key(lanes: Sequence[Lane]) -> list[list[_KeyPart]]:
    """What is drawn, in lines that fit a telephone."""
    marks = [each for lane in lanes for each in lane.bookmarks]
    bars = [
        ("■", theme.ACCENT, "valid"),
        ("■", theme.ACCENT + "73", "captured, no changes"),
        ("▨", theme.NEUTRAL, "not captured yet"),
    ]
    cleanup = [
        *([("┇", theme.CLEANUP, "retention horizon")] if any(lane.horizon for lane in lanes) else []),
        *([("⁞", theme.CLEANUP, "low after cleanup")] if any(lane.low_after for lane in lanes) else []),
        *([("◆", "", "client")] if any(not each.is_behind for each in marks) else []),
    ]
    behind = [("✖", theme.FAILING, "client left behind")] if any(each.is_behind for each in marks) else []
    return [line for line in (bars, cleanup, behind) if line]


def _add_key(figure: go.Figure, key: Sequence[Sequence[_KeyPart]], left: int) -> None:
    """Above the names: a legend of Plotly's would take its width from the lanes."""
    text = "<br>".join(
        "&nbsp;&nbsp;&nbsp;".join(
            f'<span style="color:{colour}">{sign}</span> {words}' if colour else f"{sign} {words}"
            for sign, colour, words in line
        )
        for line in key
    )
    figure.add_annotation(
        text=text,
        align="left",
        x=0,
        y=1,
        xref="paper",
        yref="paper",
        xanchor="left",
        yanchor="bottom",
        xshift=8 - left,
        yshift=6,
        showarrow=False,
        font={"size": 12},
        name="key",
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
    since = fmt.duration(round((interval[1] - interval[0]).total_seconds(), 1))
    if kind == "not captured yet":
        return f"<b>{lane.capture_instance}</b>: the last {since} of the log are not captured yet"
    return f"<b>{lane.capture_instance}</b>: the log was read, nothing was committed for {since}"


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


def _alt(lanes: Sequence[Lane], now: datetime) -> str:
    if not lanes:
        return "No capture instance yet."
    texts = [_alt_of(lane, now) for lane in reversed(lanes)]
    return "Validity intervals: " + "; ".join(texts[:8]) + "."


def _alt_of(lane: Lane, now: datetime) -> str:
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


def _table(lanes: Sequence[Lane], span: TimeRange) -> pd.DataFrame:
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
