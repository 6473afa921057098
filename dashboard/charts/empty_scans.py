"""Runs of scans that found nothing: how long the database was quiet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pandas as pd
import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.charts.chart import Chart, TimeRange, note, time_figure
from dashboard.sessions import EmptyRun


def empty_scans_chart(runs: Sequence[EmptyRun], span: TimeRange) -> Chart:
    """``empty_scan_count`` growing over each run and reset by the scan that found transactions."""
    figure = time_figure(span, 220, "scans")
    x: list[str] = []
    y: list[int] = []
    for run in runs:
        start, end = max(run.start, span.start), min(run.end or span.end, span.end)
        x += [span.at(start), span.at(end), span.at(end)]
        y += [_scans_before(run, start, end), run.scans, 0]
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            name="consecutive empty scans",
            mode="lines",
            line={"color": theme.NEUTRAL, "width": 1.5},
            fill="tozeroy",
            fillcolor=theme.NEUTRAL + "33",
            hovertemplate="%{y:,} empty scans in a row<extra></extra>",
            showlegend=True,
        )
    )
    if runs:
        _label_longest(figure, runs, span)
    else:
        note(figure, "No empty scan in this range")
    return Chart(figure, _alt(runs), _table(runs, span))


def _scans_before(run: EmptyRun, start: datetime, end: datetime) -> int:
    """How many scans of the run lie before the range: they come evenly."""
    length = (end - run.start).total_seconds()
    return round(run.scans * (start - run.start).total_seconds() / length) if length > 0 else 0


def _label_longest(figure: go.Figure, runs: Sequence[EmptyRun], span: TimeRange) -> None:
    longest = max(runs, key=lambda run: run.scans)
    end = min(longest.end or span.end, span.end)
    figure.add_annotation(
        x=span.at(end),
        y=longest.scans,
        text=f"longest: {fmt.number(longest.scans)}",
        showarrow=False,
        yanchor="bottom",
        xanchor="right" if (end - span.start) > (span.end - span.start) / 2 else "left",
        font={"size": 12},
    )


def _alt(runs: Sequence[EmptyRun]) -> str:
    if not runs:
        return "No empty scan in this range."
    longest = max(runs, key=lambda run: run.scans)
    return (
        f"{fmt.plural(len(runs), 'run')} of empty scans; the longest has {fmt.plural(longest.scans, 'scan')}."
    )


def _table(runs: Sequence[EmptyRun], span: TimeRange) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "from": [span.at(run.start) for run in runs],
            "to": [span.at(run.end) if run.end else "" for run in runs],
            "empty_scan_count": [run.scans for run in runs],
        }
    )
