"""A Plotly chart that is updated in place.

``st.plotly_chart`` mounts anew whenever its figure changes, so zoom is lost at every tick; this
component calls ``Plotly.react`` and takes its colours from the page's theme. It tells what was dragged
and clicked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import plotly
import streamlit as st

from dashboard.charts.chart import Chart

PLOTLY_ROUTE = f"/api/plotly-{plotly.__version__}.min.js"


@cache
def _component() -> Any:
    script = Path(__file__).with_name("live_plot.js").read_text(encoding="utf-8")
    return st.components.v2.component("highwater_live_plot", js=script, isolate_styles=False)


OnRange = Callable[[tuple[str, str] | None], None]
"""Hears of a range of the time axis, as the axis writes it (`TimeRange.read`); None after a double click."""
OnPoint = Callable[[str, str], None]
"""Hears of a point that was clicked: its x and its y; of a name on the y axis no x and its place."""


def live_plot(
    chart: Chart, key: str, on_range: OnRange | None = None, on_point: OnPoint | None = None
) -> None:
    """Draws the chart; the figure's own height, the container's width. ``key`` is unique in the app.

    Without ``on_range`` what is dragged is zoomed in the browser alone. Both are called as callbacks are,
    before the page is drawn again.
    """
    base = str(st.get_option("server.baseUrlPath")).strip("/")

    def ranged() -> None:
        told = st.session_state[key]["range"]
        if on_range is not None and told is not None:
            on_range((str(told[0]), str(told[1])) if told else None)

    def pointed() -> None:
        told = st.session_state[key]["point"]
        if on_point is not None and told is not None:
            on_point(str(told[0]), str(told[1]))

    _component()(
        key=key,
        data={
            "figure": chart.figure.to_json(),
            "alt": chart.alt,
            "source": (f"/{base}" if base else "") + PLOTLY_ROUTE,
            "ranges": on_range is not None,
            "points": on_point is not None,
        },
        on_range_change=ranged,
        on_point_change=pointed,
        height=int(chart.figure.layout.height),
    )
