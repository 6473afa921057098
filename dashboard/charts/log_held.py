"""Log held: bytes that capture keeps the source from truncating, under the limit where any is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pandas as pd
import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.charts.chart import Chart, Gap, TimeRange, gap_bands, note, time_figure
from dashboard.log_held import UNLIMITED, LogSample, is_unlimited

MIB = 2**20
NEAR = 4
"""A limit this many times above all that is drawn is named, not drawn: it would press the line flat."""


def log_held_chart(samples: Sequence[LogSample], gaps: Sequence[Gap], span: TimeRange) -> Chart:
    """Samples in the range, joined but for gaps; crosses where log was lost; the limit as a step line."""
    shown = [each for each in samples if span.start <= each.at <= span.end]
    figure = time_figure(span, 220, "MiB")
    gap_bands(figure, gaps, span)
    limits = _limit([each.at for each in shown], [each.limit for each in shown], shown, span)
    if limits is not None:
        figure.add_trace(limits)
    _add_lost(figure, [each for each in shown if each.is_lost], span)
    figure.add_trace(_line(shown, gaps, span))
    if not shown:
        note(figure, "Nothing is known of this range")
    return Chart(figure, _alt(shown), _table(shown, span))


def with_limit(
    chart: Chart, starts: Sequence[datetime], limits: Sequence[float | None], unlimited: bool, span: TimeRange
) -> Chart:
    """A small chart of the history with the limit of each stretch below its line and beside its numbers."""
    figure = chart.figure
    known = [(start, limit) for start, limit in zip(starts, limits, strict=True) if limit is not None]
    highest = max((value for trace in figure.data for value in trace.y or () if value is not None), default=0)
    drawn = _limit_line([at for at, _ in known], [limit for _, limit in known], unlimited, highest, span)
    if drawn is None:
        return chart
    figure.add_trace(drawn)
    figure.data = (figure.data[-1], *figure.data[:-1])  # what the chart is of stays on top
    if not figure.layout.showlegend:  # without an earlier period the heading names the line
        figure.update_traces(showlegend=False)
        figure.update_layout(showlegend=True)
        figure.data[0].showlegend = True
    table = chart.table.assign(**{"limit (MiB)": [None if each is None else each / MIB for each in limits]})
    return replace(chart, alt=f"{chart.alt.removesuffix('.')}; {drawn.name}.", table=table)


def _limit(
    times: Sequence[datetime], limits: Sequence[int | None], shown: Sequence[LogSample], span: TimeRange
) -> go.Scatter | None:
    known = [(at, limit) for at, limit in zip(times, limits, strict=True) if limit is not None]
    highest = max((each.held for each in shown), default=0) / MIB
    return _limit_line(
        [at for at, _ in known], [limit for _, limit in known], is_unlimited(shown), highest, span
    )


def _limit_line(
    times: Sequence[datetime], limits: Sequence[float], unlimited: bool, highest: float, span: TimeRange
) -> go.Scatter | None:
    """In the legend: the newest limit, or that there is none. None where nothing tells."""
    if not limits and not unlimited:
        return None
    colour = theme.FAILING if limits else theme.NEUTRAL
    is_drawn = bool(limits) and min(limits) / MIB <= NEAR * max(highest, 1)
    name = UNLIMITED if not limits else f"limit {fmt.size(round(limits[-1]))}"
    return go.Scatter(
        x=[span.at(at) for at in times] if is_drawn else [span.at(span.start)],
        y=[round(limit / MIB, 3) for limit in limits] if is_drawn else [None],
        name=name if is_drawn or not limits else f"{name} (off scale)",
        mode="lines+markers" if is_drawn and len(limits) == 1 else "lines",
        line={
            "color": theme.FAILING if limits else theme.NEUTRAL,
            "width": 1.5,
            "dash": "dash",
            "shape": "hv",
        },
        marker={"symbol": "line-ew-open", "size": 12, "color": colour},
        hovertemplate="limit %{y:,.1f} MiB<extra></extra>",
        showlegend=True,
    )


def _add_lost(figure: go.Figure, lost: Sequence[LogSample], span: TimeRange) -> None:
    if lost:
        figure.add_trace(
            go.Scatter(
                x=[span.at(each.at) for each in lost],
                y=[0] * len(lost),
                name="log lost",
                mode="markers",
                marker={"symbol": "x", "size": 10, "color": theme.FAILING},
                hovertemplate="log that capture needs is lost<extra></extra>",
                showlegend=True,
            )
        )


def _line(shown: Sequence[LogSample], gaps: Sequence[Gap], span: TimeRange) -> go.Scatter:
    """A hole behind the sample that each gap begins with: nothing is joined across it."""
    holes = {gap.start: (gap.start, None) for gap in gaps if span.start <= gap.start <= span.end}
    drawn: list[tuple[datetime, float | None]] = [(each.at, round(each.held / MIB, 3)) for each in shown]
    drawn = sorted([*drawn, *(holes.values() if shown else ())], key=lambda point: point[0])
    return go.Scatter(
        x=[span.at(at) for at, _ in drawn],
        y=[value for _, value in drawn],
        name="log held",
        mode="lines+markers" if len(shown) < 80 else "lines",
        marker={"size": 5, "color": theme.ACCENT},
        line={"color": theme.ACCENT, "width": 1.6},
        connectgaps=False,
        hovertemplate="%{y:,.1f} MiB<extra></extra>",
        showlegend=True,
    )


def _alt(shown: Sequence[LogSample]) -> str:
    if not shown:
        return "Log held: nothing is known of this range."
    text = f"Log held: last {fmt.size(shown[-1].held)}, at most {fmt.size(max(each.held for each in shown))}"
    if any(each.is_lost for each in shown):
        return f"{text}; log that capture needs was lost."
    limit = next((each.limit for each in reversed(shown) if each.limit is not None), None)
    return f"{text}; {UNLIMITED if limit is None else f'limit {fmt.size(limit)}'}."


def _table(shown: Sequence[LogSample], span: TimeRange) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "time": [span.at(each.at) for each in shown],
            "held (bytes)": [each.held for each in shown],
            "limit (bytes)": [each.limit for each in shown],
            "lost": [each.is_lost for each in shown],
        }
    )
