"""The bar over every page: its name, database, range, zone, live or paused, and the age of the picture."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import format as fmt
from dashboard import state
from dashboard.components.problem import age_of, outage_banner
from dashboard.format import Zone


def header(title: str) -> None:
    """Draws the page's name and the controls; each of these is in the URL, so a link shows the same view."""
    names = _databases()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="header"):
        st.title(title, anchor=False, width="content")
        if names:
            st.selectbox(
                "Database", names, key="db", bind="query-params", width=160, label_visibility="collapsed"
            )
        _choice("Range", list(state.RANGES), state.DEFAULT_RANGE, "range")
        _choice("Times", list(Zone), Zone.UTC, "tz")
        st.selectbox(
            "Refresh interval",
            list(state.INTERVALS),
            index=list(state.INTERVALS).index(state.DEFAULT_INTERVAL),
            key="live",
            bind="query-params",
            width=112,
            label_visibility="collapsed",
        )
        is_paused = state.viewer().interval is None
        st.button(
            "Live" if is_paused else "Pause",
            icon=":material/play_arrow:" if is_paused else ":material/pause:",
            shortcut="P",
            on_click=_toggle_live,
            key="pause",
        )
        st.button(
            "Refresh", icon=":material/refresh:", key="refresh", type="tertiary", on_click=state.changed
        )
        st.space("stretch")
        age = st.container(width="content")
    outage, drawn = st.empty(), _outline()

    def follow() -> None:
        if _outline() != drawn:
            st.rerun(scope="app")
        _age(outage)

    with age:
        state.live(follow)


def _outline() -> object:
    """What the parts of a page that no timer redraws depend on: others may connect and enable too."""
    view = state.selected()
    if view is None:
        return None
    names = [database.name for database in state.snapshot().databases]
    return names, [(i.object_id, i.start_lsn) for i in view.instances], view.watermarks.high is None


def _databases() -> list[str]:
    """Names to choose from. A link to a database connected a moment ago may be ahead of the picture."""
    names = [view.name for view in state.snapshot().databases]
    if st.query_params.get("db", names[0] if names else None) in names:
        return names
    state.changed()
    return [view.name for view in state.snapshot().databases]


def _choice(label: str, options: list[str], default: str, key: str) -> None:
    st.segmented_control(
        label,
        options,
        default=default,
        required=True,
        key=key,
        bind="query-params",
        label_visibility="collapsed",
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
