"""A Plotly chart that is updated in place.

``st.plotly_chart`` mounts anew whenever its figure changes, so zoom is lost at every tick; this
component calls ``Plotly.react`` and takes its colours from the page's theme.
"""

from __future__ import annotations

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


def live_plot(chart: Chart, key: str) -> None:
    """Draws the chart; the figure's own height, the container's width. ``key`` is unique in the app."""
    base = str(st.get_option("server.baseUrlPath")).strip("/")
    _component()(
        key=key,
        data={
            "figure": chart.figure.to_json(),
            "alt": chart.alt,
            "source": (f"/{base}" if base else "") + PLOTLY_ROUTE,
        },
        height=int(chart.figure.layout.height),
    )
