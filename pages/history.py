"""History: how was last night, last week, last month, and against the time before?"""

from __future__ import annotations

import streamlit as st

from dashboard import state
from dashboard.components import first_steps
from dashboard.components.history_page import history_page, range_now


def follow() -> None:
    """A relative range moves on with the clock, a stretch at a time: nothing is read in between."""
    if range_now() != drawn:
        st.rerun(scope="app")


view = state.selected()
if view is None:
    first_steps.no_database()
else:
    drawn = range_now()
    state.live(follow)
    history_page(view)
