"""A small chart of the history, and the heat map of changes: gaps are bands, restarts break the line."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import log10

import pandas as pd
import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.charts.chart import Chart, TimeRange, gap_bands, mark, note, time_figure
from dashboard.charts.marks import add_marks
from dashboard.history import restarts
from dashboard.history_marks import Mark, counts
from engine.model.collection import BreakKind, HistoryBreak

HEIGHT = 170
LANE = 24


def history_chart(
    title: str,
    unit: str,
    starts: Sequence[datetime],
    values: Sequence[float | None],
    earlier: Sequence[float | None] | None,
    breaks: Sequence[HistoryBreak],
    span: TimeRange,
    colour: str = theme.ACCENT,
    is_sampled: bool = False,
    marks: Sequence[Mark] = (),
) -> Chart:
    """One measure over the range; ``earlier`` is the compared period, a ghost line on the same stretches.

    marks: what else happened in the range.
    is_sampled: values come with snapshots, so that stretches between two have none; the line goes on there.
    """
    figure = time_figure(span, HEIGHT, unit)
    figure.update_layout(showlegend=earlier is not None)
    gap_bands(figure, [each for each in breaks if each.kind is BreakKind.GAP], span)
    anew, step = restarts(breaks), starts[1] - starts[0] if len(starts) > 1 else timedelta(0)
    add_marks(figure, marks, span, max(1, int(step.total_seconds())))
    if earlier is not None:
        figure.add_trace(_ghost(*_drawn(starts, earlier, is_sampled, ()), unit, span))
    x, y = _broken(*_drawn(starts, values, is_sampled, breaks), anew, step)
    figure.add_trace(
        go.Scatter(
            x=[span.at(moment) for moment in x],
            y=y,
            name="this period",
            mode="lines+markers" if len(x) < 80 or _is_sparse(y) else "lines",
            marker={"size": 4, "color": colour},
            line={"color": colour, "width": 1.6},
            connectgaps=False,
            hovertemplate="%{y:,.6~g} " + unit + "<extra></extra>",
        )
    )
    for moment in anew:
        if span.start <= moment <= span.end:
            mark(figure, span.at(moment), theme.OVERLAP, "dash")
    known = [value for value in values if value is not None]
    if not known:
        note(figure, "Nothing is known of this range")
    alt = _alt(title, unit, known, earlier, breaks, marks)
    return Chart(figure, alt, _table(starts, values, earlier, unit, span))


def _drawn(
    starts: Sequence[datetime],
    values: Sequence[float | None],
    is_sampled: bool,
    breaks: Sequence[HistoryBreak],
) -> tuple[list[datetime], list[float | None]]:
    """Stretches and values of a line: of a sampled one those that have a value, and holes where gaps are."""
    if not is_sampled:
        return list(starts), list(values)
    holes = {each.start: None for each in breaks if each.kind is BreakKind.GAP}
    points = {start: value for start, value in zip(starts, values, strict=True) if value is not None}
    both = sorted((holes | points).items())
    return [moment for moment, _ in both], [value for _, value in both]


def _is_sparse(values: Sequence[float | None]) -> bool:
    """Whether points stand alone: a line through nothing would not show them."""
    padded = [None, *values, None]
    return any(
        value is not None and padded[index] is None and padded[index + 2] is None
        for index, value in enumerate(values)
    )


def _ghost(
    starts: Sequence[datetime], earlier: Sequence[float | None], unit: str, span: TimeRange
) -> go.Scatter:
    """The earlier period."""
    return go.Scatter(
        x=[span.at(moment) for moment in starts],
        y=list(earlier),
        name="earlier period",
        mode="lines",
        line={"color": theme.NEUTRAL, "width": 1.2, "dash": "dot"},
        connectgaps=False,
        hovertemplate="earlier %{y:,.6~g} " + unit + "<extra></extra>",
    )


def _broken(
    starts: Sequence[datetime], values: Sequence[float | None], anew: Sequence[datetime], step: timedelta
) -> tuple[list[datetime], list[float | None]]:
    """The line with a hole before each stretch in which capture or its agent began anew."""
    x: list[datetime] = []
    y: list[float | None] = []
    waiting = deque(anew)
    for start, value in zip(starts, values, strict=True):
        is_anew = False
        while waiting and waiting[0] < start + step:
            waiting.popleft()
            is_anew = True
        if is_anew and x:
            x.append(start)
            y.append(None)
        x.append(start)
        y.append(None if value is None else round(value, 4))
    return x, y


def _alt(
    title: str,
    unit: str,
    known: Sequence[float],
    earlier: Sequence[float | None] | None,
    breaks: Sequence[HistoryBreak],
    marks: Sequence[Mark],
) -> str:
    if not known:
        return f"{title}: nothing is known of this range."
    text = f"{title}: at most {fmt.number(max(known), 2)} {unit}"
    before = [value for value in earlier or () if value is not None]
    if before:
        text += f", {fmt.number(max(before), 2)} {unit} in the earlier period"
    gaps = sum(1 for each in breaks if each.kind is BreakKind.GAP)
    told = [fmt.plural(gaps, "gap"), fmt.plural(len(restarts(breaks)), "restart"), *counts(marks).values()]
    return f"{text}; {', '.join(told)}."


def _table(
    starts: Sequence[datetime],
    values: Sequence[float | None],
    earlier: Sequence[float | None] | None,
    unit: str,
    span: TimeRange,
) -> pd.DataFrame:
    columns: dict[str, object] = {"from": [span.at(start) for start in starts], unit: list(values)}
    if earlier is not None:
        columns["earlier"] = list(earlier)
    return pd.DataFrame(columns)


def heat_map(
    tables: Mapping[str, Sequence[float | None]],
    starts: Sequence[datetime],
    step: int,
    gaps: Sequence[HistoryBreak],
    span: TimeRange,
    is_log: bool = True,
) -> Chart:
    """Rows captured by table and time; on a logarithmic scale, unless not, so that quiet tables show too."""
    names = list(tables)[::-1]
    figure = time_figure(span, max(150, 76 + LANE * len(names)))
    figure.update_layout(
        hovermode="closest", margin={"l": 16 + round(6.6 * max(map(len, names), default=12))}
    )
    figure.update_yaxes(type="category", showgrid=False, nticks=None, rangemode="normal")
    gap_bands(figure, gaps, span)
    middle = timedelta(seconds=step / 2)
    rows = [tables[name] for name in names]
    figure.add_trace(
        go.Heatmap(
            x=[span.at(start + middle) for start in starts],
            y=names,
            z=[[_shade(value, is_log) for value in row] for row in rows],
            zmin=0,
            customdata=[[0 if value is None else value for value in row] for row in rows],
            colorscale=[[0, theme.ACCENT + "33"], [1, theme.ACCENT]],
            showscale=False,
            xgap=0,
            ygap=2,
            hoverongaps=False,
            hovertemplate="<b>%{y}</b> %{x}: %{customdata:,.0f} rows<extra></extra>",
        )
    )
    totals = {name: sum(value or 0 for value in tables[name]) for name in tables}
    if not any(totals.values()):
        note(figure, "No change was captured in this range")
    return Chart(figure, _heat_alt(totals), _heat_table(tables, starts, span))


def _shade(value: float | None, is_log: bool) -> float | None:
    """What a cell's colour goes by: nothing where nothing is known or came."""
    if not value:
        return None
    return log10(value + 1) if is_log else value


def _heat_alt(totals: Mapping[str, float]) -> str:
    busiest = max(totals, key=lambda name: totals[name], default=None)
    if busiest is None or not totals[busiest]:
        return "No change was captured in this range."
    return f"Rows captured by table and time: {busiest} has the most, {fmt.number(totals[busiest])}."


def _heat_table(
    tables: Mapping[str, Sequence[float | None]], starts: Sequence[datetime], span: TimeRange
) -> pd.DataFrame:
    return pd.DataFrame(
        {"from": [span.at(start) for start in starts], **{k: list(v) for k, v in tables.items()}}
    )
