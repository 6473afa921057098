"""The dialog "Go to": one box for pages, tables, capture instances, LSNs and error numbers."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard import going, state
from dashboard.components.first_focus import first_focus
from dashboard.dialogs import close_dialog, open_dialog
from dashboard.going import Target

_TYPED, _WHICH, _ARRIVALS = "g_typed", "g_which", "g_arrivals"


def go_to_button() -> None:
    """In the header of every page."""
    st.button(
        ":material/search:",
        type="tertiary",
        shortcut="Mod+K",
        key="go_to",
        help="Go to a page, a table, an LSN or an error number",
        on_click=_open,
    )


def _open() -> None:
    """Empty, whatever was typed before: Streamlit keeps it when the same page is drawn again."""
    st.session_state[_TYPED] = st.session_state[_WHICH] = None
    open_dialog(go_to_dialog)


@st.dialog("Go to", icon=":material/search:", on_dismiss=close_dialog)
def go_to_dialog() -> None:
    """What is chosen or typed leads away at once; an LSN of several capture instances asks which one."""
    if state.LEAVING in st.session_state:
        st.rerun(scope="app")
    known = _known()
    with st.container(gap=None):
        st.selectbox(
            "Page, table, capture instance, LSN or error number",
            [target.label for target in known],
            index=None,
            key=_TYPED,
            accept_new_options=True,
            filter_mode="contains",
            placeholder="Department, 0x000000000190E0380000, 22976",
            on_change=partial(_choose, _TYPED),
        )
        first_focus(_TYPED)
    text = st.session_state.get(_TYPED)
    found = _found(text)
    if found:
        labels = [target.label for target in found]
        with st.container(gap=None):
            st.selectbox("Which", labels, index=None, key=_WHICH, on_change=partial(_choose, _WHICH))
            first_focus(_WHICH, str(text))
    elif text:
        st.info(going.why_nothing(text, state.selected()), icon=":material/search_off:")


def follow() -> None:
    """Goes where a choice leads: a page can't be left in a callback. The entry script alone calls this."""
    target: Target | None = st.session_state.pop(state.LEAVING, None)
    if target is not None:
        st.session_state[_ARRIVALS] = arrivals() + 1
        state.go_to(target.page, target.address)


def leave_for(target: Target) -> None:
    """A callback's way to a page, be it the one that is open: the app's next run follows it."""
    if target.database is not None:
        st.session_state["db"] = target.database
    for name, value in target.parameters.items():
        st.session_state[name] = value  # a page that is already open goes by its widgets
    st.session_state[state.LEAVING] = target
    close_dialog()


def arrivals() -> int:
    """How often this tab came to a page by `leave_for`: a widget with this in its key begins anew then."""
    return int(st.session_state.get(_ARRIVALS, 0))


def _known() -> list[Target]:
    return going.targets(state.snapshot().databases, state.viewer().database)


def _found(text: str | None) -> list[Target]:
    return going.found(text or "", _known(), state.selected(), st.session_state.get("c_ci"))


def _choose(key: str) -> None:
    """The value may be a label that the picture no longer has, or had twice: it is looked for anew."""
    text = st.session_state.get(key)
    found = _found(text) if key == _TYPED else _of_label(text)
    if len(found) == 1:
        leave_for(found[0])


def _of_label(label: str | None) -> list[Target]:
    return [target for target in _found(st.session_state.get(_TYPED)) if target.label == label]
