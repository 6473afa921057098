"""The bar over every page: its name, database, range, zone, live or paused, and the age of the picture."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import format as fmt
from dashboard import state
from dashboard.components.go_to import go_to_button
from dashboard.components.permission import who_is_here
from dashboard.components.problem import age_of, escaped, outage_banner
from dashboard.format import Zone
from dashboard.navigation import OF_ALL_DATABASES, RANGED, TIMED


def header(title: str, page: str) -> None:
    """Draws the page's name and the controls that mean something there.

    Each of these is in the URL, so a link shows the same view; what a page leaves out keeps its value.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="header"):
        st.title(title, anchor=False, width="content")  # before anything is asked for that may take a while
        names = _databases()
        if names and page not in OF_ALL_DATABASES:
            st.selectbox(
                "Database", names, key="db", bind="query-params", width=150, label_visibility="collapsed"
            )
        if page in RANGED:
            state.RANGE.draw("Range", "collapsed")
        if page in TIMED:
            _choice("Times", list(Zone), state.snapshot().settings.zone, "tz", 108)
        _choice("Refresh interval", list(state.INTERVALS), state.DEFAULT_INTERVAL, "live", 100)
        is_paused = state.viewer().interval is None
        st.button(
            "Live" if is_paused else "Pause",
            icon=":material/play_arrow:" if is_paused else ":material/pause:",
            shortcut="P",
            on_click=_toggle_live,
            key="pause",
        )
        st.button(
            ":material/refresh:", key="refresh", type="tertiary", on_click=state.changed, help="Refresh now"
        )
        go_to_button()
        st.space("stretch")
        age = st.container(width="content")
        who_is_here()
    if page in RANGED and state.RANGE.is_own:
        _say_what_is_no_range()
    outage, drawn = st.empty(), _outline()

    def follow() -> None:
        if _outline() != drawn:
            st.rerun(scope="app")
        _age(outage)

    with age:
        state.live(follow)


def _outline() -> object:
    """What the parts of a page that no timer redraws depend on: others may connect and enable too."""
    view, role = state.selected(), state.user().role
    if view is None:
        return role
    names = [database.name for database in state.snapshot().databases]
    exports = state.snapshot().settings.exports
    instances = [(i.object_id, i.start_lsn) for i in view.instances]
    return role, names, exports, instances, view.watermarks.high is None


def _databases() -> list[str]:
    """Names to choose from. A link to a database connected a moment ago may be ahead of the picture."""
    names = [view.name for view in state.snapshot().databases]
    if st.query_params.get("db", names[0] if names else None) in names:
        return names
    state.changed()
    return [view.name for view in state.snapshot().databases]


def _choice(label: str, options: list[str], default: str, key: str, width: int) -> None:
    st.selectbox(
        label,
        options,
        index=options.index(default),
        key=key,
        bind="query-params",
        width=width,
        label_visibility="collapsed",
    )


def _say_what_is_no_range() -> None:
    try:
        state.own_range(state.viewer().axis_zone)
    except ValueError as problem:
        st.error(
            f"{escaped(str(problem))}. Charts show the last {state.DEFAULT_RANGE}.", icon=":material/error:"
        )


def _toggle_live() -> None:
    paused = st.session_state.get("live") == "paused"
    st.session_state["live"] = state.DEFAULT_INTERVAL if paused else "paused"


def _age(outage: DeltaGenerator) -> None:
    """How old the picture is; why no newer one can be had goes below the header, in full width."""
    snapshot = state.snapshot()
    age = fmt.ago(snapshot.taken, state.now())
    word = "Paused, data" if state.viewer().interval is None else "Data"
    st.caption(f"{word} of {age}", width="content", help=fmt.moment(snapshot.taken))
    if snapshot.failure is not None:
        with outage.container():
            outage_banner(snapshot, age_of(snapshot))
    else:
        outage.empty()
