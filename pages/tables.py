"""Tables: what is captured, how far back, and enabling and disabling it."""

from __future__ import annotations

import streamlit as st

from dashboard import state
from dashboard.components import first_steps, series
from dashboard.components.enable_wizard import enable_button
from dashboard.components.table_list import instance_drawer, instance_table


def timeline() -> None:
    """Validity intervals, at every tick."""
    now = state.selected()
    if now is not None:
        series.validity_card(now, "t_validity")


view = first_steps.captured()
if view is not None:
    first_steps.refused(view)
    enable_button(view)
    chosen = instance_table(view)
    left, drawer = st.columns([1, 1])
    with left:
        state.live(timeline)
    with drawer:
        instance_drawer(view, chosen)
