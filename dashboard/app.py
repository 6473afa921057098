"""The entry script: page frame, navigation, header; then the page. Pages are in ``pages/``."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard.components.header import header
from dashboard.components.problem import outage_page
from dashboard.dialogs import draw_dialog
from dashboard.state import live, snapshot


def outage() -> None:
    """Nothing is known yet: says so until something is."""
    picture = snapshot()
    if picture.failure is None:
        st.rerun(scope="app")
    outage_page(picture)


def main() -> None:
    """Runs at every interaction of a viewer."""
    st.set_page_config(
        page_title="Highwater", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide"
    )
    pages = {
        "overview": st.Page(
            "../pages/overview.py", title="Overview", icon=":material/monitor_heart:", default=True
        ),
        "tables": st.Page(
            "../pages/tables.py", title="Tables", icon=":material/table_chart:", url_path="tables"
        ),
        "changes": st.Page(
            "../pages/changes.py", title="Changes", icon=":material/history:", url_path="changes"
        ),
        "capture": st.Page(
            "../pages/capture.py", title="Capture", icon=":material/speed:", url_path="capture"
        ),
    }
    st.session_state["pages"] = pages
    page = st.navigation(list(pages.values()), position="top")
    draw_dialog()
    header()
    picture = snapshot()
    if picture.failure is not None and not picture.databases:
        live(outage)
    else:
        page.run()


main()
