"""Tables: what is captured, how far back, and enabling and disabling it."""

from __future__ import annotations

import streamlit as st

from dashboard import state
from dashboard.components import first_steps
from dashboard.components.enable_wizard import enable_button
from dashboard.components.table_list import follow, instance_drawer, instance_table
from dashboard.components.validity_card import validity_card


def tables() -> None:
    """All of it at every tick: endpoints move, and others enable and disable tables too."""
    follow()
    now = state.selected()
    if now is None or not now.instances:
        return
    chosen = instance_table(now)
    left, drawer = st.columns([1, 1])
    with left:
        validity_card(now, "t_validity")
    with drawer:
        instance_drawer(now, chosen)


view = first_steps.captured()
if view is not None:
    first_steps.refused(view)
    enable_button(view)
    state.live(tables)
