"""Marks of what happened, over a chart in time: a line, a glyph at its top, and words on hovering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

import plotly.graph_objects as go

from dashboard import theme
from dashboard.charts.chart import TimeRange
from dashboard.history_marks import Mark, MarkKind, together

WIDTH = 44
"""Characters of a line of what hovering tells."""


@dataclass(frozen=True, slots=True)
class MarkLook:
    """How a kind of mark looks in charts and in text; ``height``: where, so that none hides another."""

    symbol: str
    glyph: str
    colour: str
    height: float


LOOKS = {
    MarkKind.CONFIGURATION: MarkLook("diamond", "◆", theme.CATEGORICAL[5], 0.95),
    MarkKind.DDL: MarkLook("triangle-down", "▼", theme.CATEGORICAL[6], 0.82),
    MarkKind.CLEANUP: MarkLook("square", "■", theme.CLEANUP, 0.69),
}


def add_marks(figure: go.Figure, marks: Sequence[Mark], span: TimeRange, step: int) -> None:
    """Below what the chart is of; those of one kind and stretch of ``step`` seconds share a mark."""
    drawn = {kind: together(marks, kind, step) for kind in LOOKS}
    if not any(drawn.values()):
        return
    figure.update_layout(
        yaxis2={
            "overlaying": "y",
            "range": [0, 1],
            "visible": False,
            "fixedrange": True,
            "rangemode": "normal",
        }
    )
    for kind, found in drawn.items():
        if found:
            figure.add_traces(_traces(kind, found, span))


def _traces(kind: MarkKind, marks: Sequence[Mark], span: TimeRange) -> list[go.Scatter]:
    look, at = LOOKS[kind], [span.at(each.at) for each in marks]
    lines = go.Scatter(
        x=[x for each in at for x in (each, each, None)],
        y=[0, 1, None] * len(at),
        mode="lines",
        line={"color": look.colour, "width": 1, "dash": "dot"},
    )
    glyphs = go.Scatter(
        x=at,
        y=[look.height] * len(at),
        mode="markers",
        marker={"symbol": look.symbol, "size": 8, "color": look.colour},
        customdata=[_lines(each.text) for each in marks],
        hovertemplate=f"{kind}: %{{customdata}}<extra></extra>",
    )
    lines.update(hoverinfo="skip")
    for trace in (lines, glyphs):
        trace.update(name=str(kind), yaxis="y2", showlegend=False)
    return [lines, glyphs]


def _lines(text: str) -> str:
    """No wider than a small chart: a label that is gets cut at both its ends."""
    return "<br>".join(escape(line, quote=False) for line in wrap(text, WIDTH, max_lines=3, placeholder=" …"))
