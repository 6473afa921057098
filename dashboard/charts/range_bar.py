"""The validity bar of the explorer: the asked range against what the functions accept."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from dashboard import theme
from dashboard.charts.chart import Chart


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An end of a range: where on the axis (any monotonic number), and its text."""

    at: float
    label: str


def range_bar(low: Endpoint, high: Endpoint, start: Endpoint, end: Endpoint) -> Chart:
    """The validity interval as a band, the asked range below it; what is outside is hatched red."""
    span = max(high.at - low.at, end.at - start.at, 1.0)
    left = max(min(low.at, start.at), low.at - span * 0.35)
    right = min(max(high.at, end.at), high.at + span * 0.35)
    pad = max((right - left) * 0.02, 1e-9)
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=84,
        barmode="overlay",
        margin={"l": 70, "r": 70, "t": 6, "b": 22},
        showlegend=False,
        hovermode="closest",
        dragmode=False,
        uirevision="keep",
        xaxis={
            "range": [left - pad, right + pad],
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
            "tickvals": [low.at, high.at],
            "ticktext": ["low watermark", "high watermark"],
            "ticks": "",
            "automargin": False,
        },
        yaxis={
            "range": [0, 2],
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
            "showline": False,
            "tickvals": [0.55, 1.5],
            "ticktext": ["asked", "valid"],
            "ticks": "",
        },
    )
    _block(figure, low.at, high.at, 1.1, 1.9, theme.ACCENT, f"valid from {low.label}<br>to {high.label}")
    begin, stop = max(start.at, left), min(end.at, right)
    if begin <= stop < begin + pad / 4:
        stop = begin + pad / 4  # a single transaction is a range too
    asked = f"asked from {start.label}<br>to {end.label}"
    _block(
        figure, max(begin, low.at), min(stop, max(high.at, begin + pad / 4)), 0.2, 0.9, theme.HEALTHY, asked
    )
    _block(
        figure, begin, min(stop, low.at), 0.2, 0.9, theme.FAILING, "below the low watermark: error 313", "x"
    )
    _block(
        figure, max(begin, high.at), stop, 0.2, 0.9, theme.FAILING, "above the high watermark: error 313", "x"
    )
    table = pd.DataFrame(
        {"end": ["low", "high", "from", "to"], "at": [e.label for e in (low, high, start, end)]}
    )
    inside = low.at <= start.at <= end.at <= high.at
    verdict = "inside" if inside else "not inside"
    return Chart(figure, f"The asked range is {verdict} the validity interval.", table)


def _block(
    figure: go.Figure, x0: float, x1: float, y0: float, y1: float, colour: str, hover: str, pattern: str = ""
) -> None:
    if x1 <= x0:
        return
    figure.add_trace(
        go.Bar(
            x=[x1 - x0],
            base=[x0],
            y=[(y0 + y1) / 2],
            width=[y1 - y0],
            orientation="h",
            marker={
                "color": colour,
                "line": {"width": 0},
                "pattern": {
                    "shape": pattern,
                    "fillmode": "overlay",
                    "fgcolor": "#FFFFFF",
                    "solidity": 0.15,
                    "size": 6,
                }
                if pattern
                else {},
            },
            hovertemplate=hover + "<extra></extra>",
        )
    )
