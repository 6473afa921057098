"""What a run of a page leaves to Python: when garbage is collected."""

from __future__ import annotations

import streamlit as st


def test_no_run_of_a_page_has_all_objects_looked_through():
    """Streamlit does so after each, unless it is told not to: it holds up every other tab meanwhile."""
    assert st.get_option("runner.postScriptGC") is False
