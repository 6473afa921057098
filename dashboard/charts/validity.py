"""Validity intervals: how far back and how far forward each capture instance can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pandas as pd
import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.charts.chart import Chart, TimeRange, mark, note, time_figure

LANE = 30


@dataclass(frozen=True, slots=True)
class Lane:
    """One instance: the commit times of its low watermark (None: not established yet) and the high one.

    ``captured_until`` is up to where the log is read: between ``high`` and it nothing was committed.
    """

    capture_instance: str
    source_table: str
    low: datetime | None
    high: datetime | None
    captured_until: datetime | None
    low_lsn: str
    high_lsn: str


def validity_chart(lanes: Sequence[Lane], span: TimeRange, now: datetime) -> Chart:
    """A lane for each instance: bar from low to high watermark, hatched tail to now = not captured yet.

    Two instances of one table stand side by side and their overlap is marked "safe to switch".
    """
    ordered = sorted(lanes, key=lambda lane: (lane.source_table, lane.low or now), reverse=True)
    left = 16 + round(6.6 * max((len(lane.capture_instance) for lane in ordered), default=12))
    figure = time_figure(span, max(180, 64 + LANE * len(ordered)))
    figure.update_layout(
        hovermode="closest",
        barmode="overlay",
        bargap=0.45,
        showlegend=False,
        margin={"l": left, "r": 12, "t": 28, "b": 30},
    )
    _add_key(figure, left)
    figure.update_xaxes(nticks=6)
    figure.update_yaxes(type="category", automargin=False, showgrid=False, rangemode="normal", nticks=None)
    names = [lane.capture_instance for lane in ordered]
    figure.update_yaxes(categoryorder="array", categoryarray=names, range=[-0.5, max(1, len(names)) - 0.5])
    figure.update_yaxes(tickmode="array", tickvals=list(range(len(names))), ticktext=names)
    figure.add_trace(_bars(ordered, span, now, "valid", theme.ACCENT))
    figure.add_trace(_bars(ordered, span, now, "captured, no changes", theme.ACCENT + "59"))
    figure.add_trace(_bars(ordered, span, now, "not captured yet", theme.NEUTRAL))
    _add_overlaps(figure, ordered, span, now)
    _add_unknown(figure, ordered)
    mark(figure, span.at(now), theme.NEUTRAL)
    if not ordered:
        note(figure, "No capture instance yet")
    return Chart(figure, _alt(ordered, now), _table(ordered, span))


def _add_key(figure: go.Figure, left: int) -> None:
    """What the bars mean, above the names: a legend of Plotly's would take its width from the lanes."""
    parts = (
        ("■", theme.ACCENT, "valid"),
        ("■", theme.ACCENT + "73", "captured, no changes"),
        ("▨", theme.NEUTRAL, "not captured yet"),
    )
    text = "&nbsp;&nbsp;&nbsp;".join(
        f'<span style="color:{colour}">{sign}</span> {words}' for sign, colour, words in parts
    )
    figure.add_annotation(
        text=text,
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
    base, length, names, hover = [], [], [], []
    for lane in lanes:
        interval = _interval(lane, kind, now)
        if interval is None or interval[1] <= span.start:
            continue
        start = max(interval[0], span.start)
        base.append(span.at(start))
        length.append((interval[1] - start).total_seconds() * 1000)
        names.append(lane.capture_instance)
        hover.append(_hover(lane, kind, interval, span))
    pattern = {"shape": "/", "fgcolor": colour, "bgcolor": "rgba(0,0,0,0)", "size": 6, "solidity": 0.35}
    return go.Bar(
        base=base,
        x=length,
        y=names,
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
        return (
            f"<b>{lane.capture_instance}</b> can be asked<br>"
            f"from {fmt.moment(interval[0], span.zone)}  {lane.low_lsn}<br>"
            f"to {fmt.moment(interval[1], span.zone)}  {lane.high_lsn}"
        )
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
    texts = [
        f"{lane.capture_instance} from {fmt.ago(lane.low, now)} to {fmt.ago(lane.high, now)}"
        if lane.low
        else f"{lane.capture_instance} {fmt.NOT_ESTABLISHED}"
        for lane in reversed(lanes)
    ]
    return "Validity intervals: " + "; ".join(texts[:8]) + "."


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
        }
    )
