"""Latency of each scan session: from the commit at the source to the end of the scan that captured it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from statistics import median

import pandas as pd
import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.charts.chart import Chart, TimeRange, mark, note, time_figure
from dashboard.sessions import EmptyRun, LatencyPoint
from engine.model.scan_session import ScanError


def latency_chart(
    points: Sequence[LatencyPoint],
    empty: Sequence[EmptyRun],
    errors: Sequence[ScanError],
    restarts: Sequence[datetime],
    span: TimeRange,
    threshold: float | None = None,
    is_log: bool | None = None,
) -> Chart:
    """Points at ``end_time``; empty runs lie on the baseline (their 0 is no latency), errors are crosses.

    threshold: seconds from where on an alert is raised, a band from there up. is_log: None lets the chart
    choose: logarithmic when one slow scan, such as the first, would press all others flat.
    """
    is_log = bool(points) and (_spreads(points) if is_log is None else is_log)
    figure = time_figure(span, 220, "seconds, log scale" if is_log else "seconds")
    base = min(max(point.latency, 0.001) for point in points) / 2 if is_log else 0.0
    if threshold is not None and points:
        figure.add_traces(_band(points, threshold, span, is_log))
    figure.add_trace(_points(points, span))
    _add_empty_runs(figure, empty, span, base)
    _add_errors(figure, errors, span, base)
    for moment in restarts:
        if span.start <= moment <= span.end:
            mark(figure, span.at(moment), theme.NEUTRAL)
    if is_log:
        figure.update_yaxes(type="log", rangemode="normal", nticks=None, dtick=1)
    if not points:
        note(figure, "No transaction was captured in this range")
    return Chart(figure, _alt(points, errors, threshold), _table(points, span))


def _spreads(points: Sequence[LatencyPoint]) -> bool:
    latencies = [point.latency for point in points]
    return len(latencies) > 4 and max(latencies) > 20 * max(median(latencies), 0.05)


NEAR = {False: 4, True: 100}
"""How many times above all points a threshold may be, on a linear and a logarithmic scale, to be drawn."""


def _band(
    points: Sequence[LatencyPoint], threshold: float, span: TimeRange, is_log: bool
) -> list[go.Scatter]:
    """A line at the threshold, and the colour of what fails from there up; far above it is named alone."""
    highest = max(point.latency for point in points)
    is_drawn = threshold <= NEAR[is_log] * highest
    ends = [span.at(span.start), span.at(span.end)]
    line = go.Scatter(
        x=ends,
        y=[threshold, threshold] if is_drawn else [None, None],
        name=f"alert above {fmt.duration(threshold)}" + ("" if is_drawn else " (off scale)"),
        mode="lines",
        line={"color": theme.FAILING, "width": 1, "dash": "dash"},
        hoverinfo="skip",
        showlegend=True,
    )
    if not is_drawn:
        return [line]
    top = max(highest, threshold) * (2 if is_log else 1.1)
    fill = go.Scatter(
        x=ends,
        y=[top, top],
        name="alert band",
        mode="lines",
        line={"width": 0},
        fill="tonexty",
        fillcolor=theme.FAILING + "1F",
        hoverinfo="skip",
        showlegend=False,
    )
    return [line, fill]


def _points(points: Sequence[LatencyPoint], span: TimeRange) -> go.Scatter:
    return go.Scatter(
        x=[span.at(point.end_time) for point in points],
        y=[max(round(point.latency, 3), 0.001) for point in points],
        name="latency",
        mode="lines+markers",
        line={"color": theme.ACCENT, "width": 1},
        marker={"size": 5, "color": theme.ACCENT},
        customdata=[[p.session.session_id, p.session.tran_count, p.session.command_count] for p in points],
        hovertemplate="%{y:,.2f} s · session %{customdata[0]}, %{customdata[1]:,} tran, "
        "%{customdata[2]:,} cmd<extra></extra>",
        showlegend=True,
    )


def _add_empty_runs(figure: go.Figure, empty: Sequence[EmptyRun], span: TimeRange, base: float) -> None:
    x: list[str | None] = []
    for run in empty:
        start, end = max(run.start, span.start), min(run.end or span.end, span.end)
        x += [span.at(start), span.at(end), None]
    if x:
        figure.add_trace(
            go.Scatter(
                x=x,
                y=[base if value else None for value in x],
                name="empty scans",
                mode="lines",
                line={"color": theme.NEUTRAL, "width": 4},
                hoverinfo="skip",
                showlegend=True,
            )
        )


def _add_errors(figure: go.Figure, errors: Sequence[ScanError], span: TimeRange, base: float) -> None:
    shown = [error for error in errors if span.start <= error.entry_time <= span.end]
    if shown:
        figure.add_trace(
            go.Scatter(
                x=[span.at(error.entry_time) for error in shown],
                y=[base] * len(shown),
                name="errors",
                mode="markers",
                marker={"symbol": "x", "size": 10, "color": theme.FAILING},
                customdata=[[e.error_number, e.error_message[:120]] for e in shown],
                hovertemplate="Msg %{customdata[0]}: %{customdata[1]}<extra></extra>",
                showlegend=True,
            )
        )


def _alt(points: Sequence[LatencyPoint], errors: Sequence[ScanError], threshold: float | None) -> str:
    if not points:
        return "No transaction was captured in this range."
    worst = max(points, key=lambda point: point.latency)
    text = f"Latency: last {fmt.duration(points[-1].latency)}, worst {fmt.duration(worst.latency)}"
    if threshold is not None:
        over = sum(1 for point in points if point.latency > threshold)
        text += f"; {fmt.plural(over, 'point')} above the alert threshold of {fmt.duration(threshold)}"
    return f"{text}; {fmt.plural(len(errors), 'error')}."


def _table(points: Sequence[LatencyPoint], span: TimeRange) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "end_time": [span.at(point.end_time) for point in points],
            "latency (s)": [round(point.latency, 3) for point in points],
            "session_id": [point.session.session_id for point in points],
            "tran_count": [point.session.tran_count for point in points],
        }
    )
