"""The entry script: page frame, navigation, header; then the page. Pages are in ``pages/``."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard.components.header import header
from dashboard.components.problem import outage_page
from dashboard.dialogs import draw_dialog
from dashboard.state import live, snapshot

# Pages by section: the file in pages/, which is the path too, then title and icon. Those that monitor stand
# in the bar by themselves, one click away; the other sections are menus.
SECTIONS = {
    "": {
        "overview": ("Overview", "monitor_heart"),
        "tables": ("Tables", "table_chart"),
        "changes": ("Changes", "history"),
        "capture": ("Capture", "speed"),
        "schema": ("Schema", "schema"),
        "errors": ("Errors", "error"),
    },
    "Operate": {"console": ("Console", "terminal")},
}


def _page(name: str, title: str, icon: str) -> st.Page:
    is_home = name == "overview"
    return st.Page(
        f"../pages/{name}.py",
        title=title,
        icon=f":material/{icon}:",
        url_path=None if is_home else name,
        default=is_home,
    )


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
    sections = {
        section: {name: _page(name, *look) for name, look in pages.items()}
        for section, pages in SECTIONS.items()
    }
    st.session_state["pages"] = {name: page for pages in sections.values() for name, page in pages.items()}
    page = st.navigation({name: list(pages.values()) for name, pages in sections.items()}, position="top")
    draw_dialog()
    header(page.title)
    picture = snapshot()
    if picture.failure is not None and not picture.databases:
        live(outage)
    else:
        page.run()


main()
