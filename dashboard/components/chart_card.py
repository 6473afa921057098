"""A chart with its heading, what it means, and its numbers as a table."""

from __future__ import annotations

import streamlit as st

from dashboard.charts.chart import Chart
from dashboard.components.live_plot import OnPoint, OnRange, live_plot
from dashboard.components.scale_switch import ScaleSwitch


def chart_card(
    title: str,
    chart: Chart,
    key: str,
    meaning: str = "",
    on_range: OnRange | None = None,
    on_point: OnPoint | None = None,
    caption: str = "",
    scale: ScaleSwitch | None = None,
) -> None:
    """A bordered card; the table is drawn only while it is open. What it tells: `live_plot`.

    caption: Markdown, a line below the chart of what it can't draw.
    """
    with st.container(border=True, gap="xsmall"):
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            st.markdown(f"**{title}**", help=meaning or None, width="content")
            if scale is not None:
                st.space("stretch")
                scale.draw()
            table = st.popover(
                ":material/table:",
                help="The numbers as a table",
                type="tertiary",
                key=f"{key}_table",
                on_change="rerun",
            )
        live_plot(chart, key, on_range, on_point)
        if caption:
            st.caption(caption)
    if table.open:
        table.dataframe(chart.table, hide_index=True, width=640, height=360)
