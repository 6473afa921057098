"""What the page Learn shows: the tour, the demo's workload, the words."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard import state
from dashboard.components.operation_box import follow_operation, operation_failure
from dashboard.components.problem import escaped
from dashboard.components.tour import tour
from dashboard.components.workload import workload
from dashboard.glossary import TERMS
from dashboard.operations import Operation, OperationState

AGAIN = 5.0
"""Seconds after which a database without the demo company is looked into again."""
TABS = ("Tour", "Workload", "Glossary")


def learn_page(database: str) -> None:
    """Three tabs; the first two work in a demo database only."""
    tabs = st.tabs(list(TABS), key="l_tab", on_change="rerun")
    for tab, draw in zip(tabs, (tour, workload), strict=False):
        if tab.open:
            with tab:
                _in_demo(database, draw)
    if tabs[-1].open:
        tabs[-1].table(
            [{"term": term, "meaning": meaning} for term, meaning in sorted(TERMS.items(), key=_by_name)],
            border="horizontal",
            hide_index=True,
        )


def _by_name(term: tuple[str, str]) -> str:
    return term[0].lower()


def _in_demo(database: str, draw: Callable[[str], None]) -> None:
    """Both stop capture, change its parameters and write: not where somebody works."""
    key = f"is_demo:{database}"
    engine, operations = state.engine(), state.operations()
    known = operations.get(key)
    if known is None or _is_old(known):
        known = operations.submit(key, "Looking for the demo company", lambda _: engine.is_demo(database))
    if not known.wait(0.5) and known.is_active:
        st.skeleton(height=240)
        follow_operation(known)
    elif operation_failure(known) or known.state is not OperationState.DONE:
        return
    elif known.result:
        draw(database)
    else:
        _elsewhere(database)


def _is_old(operation: Operation) -> bool:
    """Whether the company may have come meanwhile."""
    if operation.result or operation.finished is None:
        return False
    return (state.now() - operation.finished).total_seconds() > AGAIN


def _elsewhere(database: str) -> None:
    st.info(
        f"**{escaped(database)}** is not a demo database. What is tried out here stops capture, changes its "
        "parameters and deletes changes, so it works only where the demo company is.",
        icon=":material/school:",
    )
    others = [view.name for view in state.snapshot().databases if view.name != database]
    if "demo" in others:
        st.button("Go to database demo", key="l_demo", type="primary", on_click=_choose, args=("demo",))
    else:
        st.code(f"highwater demo -d {database}", language="bash")
        st.caption("puts the demo company into this database: three schemas of its own.")


def _choose(database: str) -> None:
    st.session_state["db"] = database
