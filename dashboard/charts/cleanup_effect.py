"""What cleanup does to each table: how its low watermark moves, and how many rows go."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

import pandas as pd
import plotly.graph_objects as go

from dashboard import format as fmt
from dashboard import theme
from dashboard.charts.chart import Chart, TimeRange
from engine.model.job import TableCleanup

LANE = 30
MOST = 20
"""Lanes drawn, those with the most rows; the table has all."""
EPOCH = datetime.fromtimestamp(0, UTC)
MAPPING = "cdc.lsn_time_mapping"
_AXIS, _BARS = [0.0, 0.6], [0.64, 0.97]


def name_of(table: TableCleanup) -> str:
    """The capture instance, or the mapping."""
    return table.capture_instance or MAPPING


def cleanup_chart(tables: Sequence[TableCleanup], zone: tzinfo = UTC) -> Chart:
    """A lane for each table: low watermark before → after, and beside it a bar of the rows that go.

    A lane that waits for a client says so; a table that kept rows in spite of it is marked failed.
    """
    shown = sorted(tables, key=lambda each: (-each.rows, name_of(each)))[:MOST]
    shown.sort(key=lambda each: (each.capture_instance is None, each.capture_instance), reverse=True)
    names = [name_of(each) for each in shown]
    figure = go.Figure()
    left = 16 + round(6.6 * max((len(name) for name in names), default=12))
    _frame(figure, names, left)
    _dumbbells(figure, shown, zone)
    _rows(figure, shown)
    return Chart(figure, _alt(tables), _table(tables, zone))


def _frame(figure: go.Figure, names: Sequence[str], left: int) -> None:
    figure.update_layout(
        template="none",
        height=max(150, 76 + LANE * len(names)),
        margin={"l": left, "r": 12, "t": 28, "b": 32},
        hovermode="closest",
        dragmode=False,
        showlegend=True,
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1.0,
            "yanchor": "bottom",
            "xanchor": "left",
            "font": {"size": 12},
        },
        bargap=0.45,
        uirevision="keep",
        xaxis={
            "type": "date",
            "domain": _AXIS,
            "nticks": 4,
            "tickangle": 0,
            "fixedrange": True,
            "zeroline": False,
        },
        xaxis2={
            "domain": _BARS,
            "anchor": "y",
            "nticks": 4,
            "fixedrange": True,
            "zeroline": False,
        },
        yaxis={
            "type": "category",
            "categoryorder": "array",
            "categoryarray": list(names),
            "range": [-0.6, max(1, len(names)) - 0.4],
            "tickmode": "array",
            "tickvals": list(range(len(names))),
            "ticktext": list(names),
            "showgrid": False,
            "fixedrange": True,
        },
    )


def _dumbbells(figure: go.Figure, tables: Sequence[TableCleanup], zone: tzinfo) -> None:
    span = TimeRange(EPOCH, EPOCH, zone)  # only its zone counts: the axis takes what is there
    known = [each for each in tables if each.capture_instance is not None and each.time_after is not None]
    for each in known:
        if each.time_before is not None and each.time_before != each.time_after:
            figure.add_trace(
                go.Scatter(
                    x=[span.at(each.time_before), span.at(each.time_after)],  # type: ignore[arg-type]
                    y=[name_of(each)] * 2,
                    mode="lines",
                    line={"color": theme.ACCENT, "width": 3},
                    hoverinfo="skip",
                    showlegend=False,
                )
            )
    before = [each for each in known if each.time_before is not None]
    for group, name, symbol in ((before, "low watermark before", "circle-open"), (known, "after", "circle")):
        is_after = name == "after"
        times = [each.time_after if is_after else each.time_before for each in group]
        figure.add_trace(
            go.Scatter(
                x=[span.at(time) for time in times if time],
                y=[name_of(each) for each in group],
                mode="markers",
                name=name,
                marker={
                    "symbol": symbol,
                    "size": 10,
                    "color": [_colour(each) if is_after else theme.NEUTRAL for each in group],
                    "line": {"width": 2},
                },
                customdata=[_hover(each, is_after, span) for each in group],
                hovertemplate="%{customdata}<extra></extra>",
            )
        )
    for each in known:
        if each.waits_for is not None:
            figure.add_annotation(
                x=span.at(each.time_after),  # type: ignore[arg-type]
                y=name_of(each),
                text=f"waits for {each.waits_for}",
                showarrow=False,
                yshift=13,
                font={"size": 11, "color": theme.ATTENTION},
            )


def _colour(table: TableCleanup) -> str:
    return theme.ATTENTION if table.waits_for is not None else theme.ACCENT


def _hover(table: TableCleanup, is_after: bool, span: TimeRange) -> str:
    lsn, time = (table.low_after, table.time_after) if is_after else (table.low_before, table.time_before)
    word = "after" if is_after else "before"
    return f"<b>{name_of(table)}</b> {word}<br>{fmt.moment(time, span.zone)}<br>{fmt.lsn_long(lsn)}"


def _rows(figure: go.Figure, tables: Sequence[TableCleanup]) -> None:
    figure.add_trace(
        go.Bar(
            x=[each.rows for each in tables],
            y=[name_of(each) for each in tables],
            orientation="h",
            xaxis="x2",
            name="rows deleted",
            marker={"color": [theme.FAILING if each.failed else theme.NEUTRAL for each in tables]},
            text=[_label(each) for each in tables],
            textposition="outside",
            textfont={"size": 12},
            cliponaxis=False,
            customdata=[[each.statements, " · some rows were left" * each.failed] for each in tables],
            hovertemplate="<b>%{y}</b>: %{x:,} rows in %{customdata[0]:,} statements"
            "%{customdata[1]}<extra></extra>",
        )
    )

    most = max((each.rows for each in tables), default=0)
    figure.update_layout(xaxis2={"range": [0, max(1, most) * 1.25]})


def _label(table: TableCleanup) -> str:
    return f"{fmt.number(table.rows)}" + (" ✕ rows left" if table.failed else "")


def _alt(tables: Sequence[TableCleanup]) -> str:
    rows = sum(each.rows for each in tables)
    moved = sum(1 for each in tables if each.low_before != each.low_after and each.capture_instance)
    text = f"{fmt.plural(moved, 'low watermark')} moved, {fmt.plural(rows, 'row')} deleted"
    waiting = [f"{each.capture_instance} waits for {each.waits_for}" for each in tables if each.waits_for]
    failed = [f"{name_of(each)} failed" for each in tables if each.failed]
    return "; ".join([text, *waiting[:5], *failed[:5]]) + "."


def _table(tables: Sequence[TableCleanup], zone: tzinfo) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "table": [name_of(each) for each in tables],
            "low watermark before": [fmt.moment(each.time_before, zone) for each in tables],
            "after": [fmt.moment(each.time_after, zone) for each in tables],
            "rows": [each.rows for each in tables],
            "statements": [each.statements for each in tables],
            "waits for": [each.waits_for or "" for each in tables],
            "result": ["some rows left" if each.failed else "" for each in tables],
            "LSN before": [fmt.lsn_long(each.low_before) if each.low_before else "" for each in tables],
            "LSN after": [fmt.lsn_long(each.low_after) if each.low_after else "" for each in tables],
        }
    )
