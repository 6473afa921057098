"""Which columns changes set, at a glance: a row for each change, a column for each bit of the mask."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, tzinfo

import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.changes import Change
from dashboard.charts.chart import Chart, note

MOST = 60
"""Changes drawn, the newest."""
_ROW = 17
_SHARES, _HEAD, _NAMES = 64, 12, 108


def mask_matrix(changes: Sequence[Change], columns: Sequence[str], zone: tzinfo = UTC) -> Chart:
    """Filled: the bit is set; hollow: an insert or a delete, where all bits are set by rule.

    changes: newest first, MOST of them are drawn; columns: all captured ones, by ordinal. The bars above
    say how large a share of the updates set each column, of all changes that were given. The y of a point
    is the change's place in ``changes``.
    """
    shown = [(place, change) for place, change in enumerate(changes[:MOST]) if change.mask is not None]
    figure = go.Figure()
    shares = _shares(changes, columns)
    _frame(figure, columns, shown, zone)
    if not shown:
        note(figure, "This query returns no mask (NULL)")
        return Chart(figure, "This query returns no mask.", _table(shares))
    known = [name for name, share in shares.items() if share is not None]
    figure.add_bar(
        x=[columns.index(name) + 1 for name in known],
        y=[shares[name] for name in known],
        yaxis="y2",
        marker={"color": theme.UPDATE.colour},
        hovertemplate="%{y:.0%} of the updates set this bit<extra></extra>",
    )
    for change_set, symbol in ((True, "square"), (False, "square-open")):
        _add_bits(figure, [each for each in shown if each[1].is_update is change_set], columns, symbol)
    return Chart(figure, _alt(len(shown), shares), _table(shares))


def _shares(changes: Sequence[Change], columns: Sequence[str]) -> dict[str, float | None]:
    """Share of the updates that set each column; None without an update."""
    updates = [change for change in changes if change.is_update and change.mask is not None]
    return {
        name: sum(name in change.changed for change in updates) / len(updates) if updates else None
        for name in columns
    }


def _frame(
    figure: go.Figure, columns: Sequence[str], shown: Sequence[tuple[int, Change]], zone: tzinfo
) -> None:
    plot = max(4, len(shown)) * _ROW
    height = _SHARES + _HEAD + plot + _NAMES
    texts = [f"{change.look.glyph} {_clock(change, zone)}" for _, change in shown]
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 124, "r": 72, "t": _NAMES, "b": 8},
        hovermode="closest",
        dragmode=False,
        showlegend=False,
        uirevision="keep",
        bargap=0.35,
        xaxis={
            "tickvals": list(range(1, len(columns) + 1)),
            "ticktext": [f"{ordinal} {name}" for ordinal, name in enumerate(columns, 1)],
            "range": [0.4, len(columns) + 0.6],
            "fixedrange": True,
            "zeroline": False,
            "anchor": "y2",
            "side": "top",
            "tickangle": -40,
        },
        yaxis={
            "domain": [0, plot / (height - _NAMES - 8)],
            "range": [max((place for place, _ in shown), default=3) + 0.6, -0.6],
            "tickvals": [place for place, _ in shown],
            "ticktext": texts,
            "tickfont": {"size": 11},
            "showgrid": False,
            "fixedrange": True,
            "zeroline": False,
        },
        yaxis2={
            "domain": [1 - (_SHARES - 8) / (height - _NAMES - 8), 1],
            "range": [0, 1],
            "tickvals": [0, 1],
            "tickformat": ".0%",
            "fixedrange": True,
            "zeroline": False,
            "anchor": "x",
        },
    )


def _clock(change: Change, zone: tzinfo) -> str:
    if change.commit_time is None:
        return change.look.word
    return change.commit_time.astimezone(zone).strftime("%H:%M:%S.%f")[:-3]


def _add_bits(
    figure: go.Figure, changes: Sequence[tuple[int, Change]], columns: Sequence[str], symbol: str
) -> None:
    points = [
        (columns.index(name) + 1, place, change, name)
        for place, change in changes
        for name in change.changed
        if name in columns
    ]
    figure.add_scatter(
        x=[x for x, _, _, _ in points],
        y=[y for _, y, _, _ in points],
        mode="markers",
        marker={
            "symbol": symbol,
            "size": 10,
            "color": [change.look.colour for _, _, change, _ in points],
        },
        customdata=[f"{change.look.label}: {name} {change.cell(name)}" for _, _, change, name in points],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _alt(count: int, shares: dict[str, float | None]) -> str:
    named = sorted(((share, name) for name, share in shares.items() if share), reverse=True)
    if not named:
        return f"Masks of {count} changes, none of them an update."
    most = ", ".join(f"{name} {share:.0%}" for share, name in named[:5])
    return f"Masks of {count} changes; of the updates set: {most}."


def _table(shares: dict[str, float | None]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "ordinal": range(1, len(shares) + 1),
            "column": list(shares),
            "share of updates": [None if share is None else round(share, 4) for share in shares.values()],
        }
    )
