"""The entry script: page frame, navigation, header; then the page. Pages are in ``pages/``."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard import state
from dashboard.components.go_to import follow
from dashboard.components.header import header
from dashboard.components.permission import login_page, refused_page
from dashboard.components.problem import outage_page
from dashboard.dialogs import draw_dialog
from dashboard.identity import is_logged_in
from dashboard.navigation import SECTIONS
from dashboard.snapshot import Snapshot
from dashboard.state import live, snapshot
from engine.errors import ControlUnreachable


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


RETRY = 2.0  # seconds between two looks for the control database, where nobody can say who may enter


def _nobody_can_tell() -> None:
    """Roles can't be asked for: says so until they can."""
    try:
        state.look_up_user()
    except ControlUnreachable as error:
        outage_page(Snapshot(state.now(), None, (), error))
        return
    st.rerun(scope="app")


def _may_enter() -> bool:
    """Whether this viewer has a role; says so where they have none, or nobody can tell."""
    try:
        user = state.look_up_user()
    except ControlUnreachable:
        st.fragment(_nobody_can_tell, run_every=RETRY)()
        return False
    if user.role is None:
        refused_page(user.name)
    return user.role is not None


def _follow_exports(are_on: bool) -> None:
    """Streamlit's own buttons on tables, too: an option of the process, which browsers hear of with a run."""
    if st.get_option("client.disableDataExport") == are_on:
        st.set_option("client.disableDataExport", not are_on)
        st.rerun()


def main() -> None:
    """Runs at every interaction of a viewer."""
    st.set_page_config(
        page_title="Highwater", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide"
    )
    if not is_logged_in():
        login_page()
        return
    if not _may_enter():
        return
    sections = {
        section: {name: _page(name, *look) for name, look in pages.items()}
        for section, pages in SECTIONS.items()
    }
    st.session_state["pages"] = {name: page for pages in sections.values() for name, page in pages.items()}
    page = st.navigation({name: list(pages.values()) for name, pages in sections.items()}, position="top")
    state.begin_page(page.url_path)
    follow()
    draw_dialog()
    header(page.title, page.url_path or "overview")
    picture = snapshot()
    _follow_exports(picture.settings.exports)
    if picture.failure is not None and not picture.databases:
        live(outage)
    else:
        page.run()


main()
