"""One transaction: its changes in engine order, a lane for each capture instance."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from dashboard.changes import Change
from dashboard.charts.chart import Chart

LANE = 30
_NAME = 24
"""Letters of a capture instance that fit beside its lane."""


def transaction_chart(changes: Sequence[Change], shown: int | None = None) -> Chart:
    """changes: in engine order; the x of a point counts them from 1. shown: the place of one to mark."""
    names = list(dict.fromkeys(change.capture_instance for change in changes))
    left = 16 + round(6.4 * max((len(_short(name)) for name in names), default=8))
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=56 + LANE * max(1, len(names)),
        margin={"l": left, "r": 12, "t": 6, "b": 36},
        hovermode="closest",
        dragmode=False,
        showlegend=False,
        uirevision="keep",
        xaxis={
            "title": {"text": "order in the transaction", "font": {"size": 12}},
            "range": [0.4, len(changes) + 0.6],
            "nticks": 8,
            "tickformat": "d",
            "fixedrange": True,
            "zeroline": False,
        },
        yaxis={
            "tickvals": list(range(len(names))),
            "ticktext": [_short(name) for name in names],
            "range": [len(names) - 0.4, -0.6],
            "fixedrange": True,
            "zeroline": False,
        },
    )
    figure.add_scatter(
        x=list(range(1, len(changes) + 1)),
        y=[names.index(change.capture_instance) for change in changes],
        mode="markers",
        marker={
            "color": [change.look.colour for change in changes],
            "size": 13,
            "symbol": [_SYMBOLS.get(change.look.code, "square") for change in changes],
            "line": {"width": [3 if place == shown else 0 for place in range(len(changes))]},
        },
        customdata=[
            f"<b>{change.look.label}</b> {change.capture_instance}<br>{change.summary(tuple(change.values))}"
            for change in changes
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
    return Chart(figure, _alt(changes, names), _table(changes))


_SYMBOLS = {"D": "x", "I": "cross", "U": "triangle-right", "M": "star"}
"""By the short code of an operation: never told apart by colour alone."""


def _short(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def _alt(changes: Sequence[Change], names: Sequence[str]) -> str:
    parts = [f"{sum(change.capture_instance == name for change in changes)} of {name}" for name in names[:6]]
    return f"A transaction of {len(changes)} changes in engine order: {', '.join(parts)}."


def _table(changes: Sequence[Change]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "order": range(1, len(changes) + 1),
            "operation": [change.look.word for change in changes],
            "capture instance": [change.capture_instance for change in changes],
            "change": [change.summary(tuple(change.values)) for change in changes],
        }
    )
