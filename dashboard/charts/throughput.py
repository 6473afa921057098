"""Throughput of capture: transactions per second against the ceiling of the running configuration."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.charts.chart import Chart, TimeRange, note, time_figure
from dashboard.sessions import Bucket

_COMMANDS = theme.CATEGORICAL[5]


def transactions_chart(buckets: Sequence[Bucket], ceiling: float | None, span: TimeRange) -> Chart:
    """Captured transactions per second, with the ceiling ``maxtrans * maxscans / pollinginterval``.

    A ceiling far above everything drawn stays out of the scale and is named in the legend,
    since it would press the series flat.
    """
    values = [bucket.transactions for bucket in buckets]
    figure = time_figure(span, 220, "tran/s")
    figure.add_trace(_series(buckets, values, span, "transactions/s", theme.ACCENT, "tran/s"))
    known = [value for value in values if value is not None]
    highest = max(known, default=0.0)
    if ceiling is not None:
        _ceiling(figure, ceiling, span, drawn=ceiling <= max(highest, 1) * 4)
    figure.add_trace(_area(buckets, values, span, theme.ACCENT))
    if not known:
        note(figure, "No scan in this range")
    return Chart(figure, _alt(known, ceiling), _table(buckets, span))


def commands_chart(buckets: Sequence[Bucket], span: TimeRange) -> Chart:
    """Captured commands (row changes) per second: never on one axis with transactions."""
    values = [bucket.commands for bucket in buckets]
    figure = time_figure(span, 220, "cmd/s")
    figure.add_trace(_series(buckets, values, span, "commands/s", _COMMANDS, "cmd/s"))
    figure.add_trace(_area(buckets, values, span, _COMMANDS))
    known = [value for value in values if value is not None]
    if not known:
        note(figure, "No scan in this range")
    alt = (
        f"Captured commands per second: at most {fmt.rate(max(known), 'cmd/s')}."
        if known
        else "No scan in this range."
    )
    return Chart(figure, alt, _table(buckets, span))


def _series(
    buckets: Sequence[Bucket],
    values: Sequence[float | None],
    span: TimeRange,
    name: str,
    colour: str,
    unit: str,
) -> go.Scatter:
    return go.Scatter(
        x=[span.at(bucket.start) for bucket in buckets],
        y=[None if value is None else round(value, 3) for value in values],
        name=name,
        mode="lines",
        line={"color": colour, "width": 1.8, "shape": "hv"},
        connectgaps=False,
        hovertemplate="%{y:,.1f} " + unit + "<extra></extra>",
        showlegend=True,
    )


def _area(
    buckets: Sequence[Bucket], values: Sequence[float | None], span: TimeRange, colour: str
) -> go.Scatter:
    """What is below the line, by itself: Plotly fills right across a series' gaps."""
    return go.Scatter(
        x=[span.at(bucket.start) for bucket in buckets],
        y=[round(value or 0, 3) for value in values],
        mode="lines",
        line={"width": 0, "shape": "hv"},
        fill="tozeroy",
        fillcolor=colour + "26",
        hoverinfo="skip",
        showlegend=False,
    )


def _ceiling(figure: go.Figure, ceiling: float, span: TimeRange, drawn: bool) -> None:
    name = f"ceiling {fmt.rate(ceiling, 'tran/s')}" + ("" if drawn else " (off scale)")
    figure.add_trace(
        go.Scatter(
            x=[span.at(span.start), span.at(span.end)],
            y=[ceiling, ceiling] if drawn else [None, None],
            name=name,
            mode="lines",
            line={"color": theme.FAILING, "width": 1.5, "dash": "dash"},
            hoverinfo="skip",
            showlegend=True,
        )
    )


def _alt(known: Sequence[float], ceiling: float | None) -> str:
    if not known:
        return "No scan in this range."
    text = f"Captured transactions per second: at most {fmt.rate(max(known), 'tran/s')}"
    if ceiling is None:
        return text + ", no ceiling with polling interval 0."
    return text + f", ceiling {fmt.rate(ceiling, 'tran/s')} ({max(known) / ceiling:.0%} used at the peak)."


def _table(buckets: Sequence[Bucket], span: TimeRange) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "from": [span.at(bucket.start) for bucket in buckets],
            "transactions/s": [bucket.transactions for bucket in buckets],
            "commands/s": [bucket.commands for bucket in buckets],
        }
    )
