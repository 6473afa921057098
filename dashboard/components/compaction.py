"""The last compaction of a database, and how to ask for one."""

from __future__ import annotations

import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, state, statements
from dashboard.components.job_card import agent_is_alive
from dashboard.components.operation_box import operation_failure
from dashboard.components.permission import permitted
from dashboard.components.problem import escaped
from dashboard.components.statement_box import statement_popover
from dashboard.operations import Operation
from dashboard.snapshot import DatabaseView
from engine.model.compaction import CompactionRun


@st.cache_resource(ttl=2.0, max_entries=100, show_spinner=False)
def _last(database: str) -> CompactionRun | None:
    return state.engine().last_compaction(database)


def compaction_line(view: DatabaseView) -> None:
    """One line, with its button and its statement."""
    run, operation = _last(view.name), state.operations().get(_key(view.name))
    is_active = (operation is not None and operation.is_active) or (run is not None and run.wanted)
    with st.container(border=True, gap="xsmall", key="l_compaction"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("**Compaction**", help=glossary.COMPACTION, width="content")
            st.caption("under way" if is_active else _words(run), width="content")
            st.space("stretch")
            st.button(
                "Compact now",
                icon=":material/compress:",
                key="l_compact",
                type="tertiary",
                on_click=_ask,
                args=(view.name,),
                **permitted("compact", disabled=is_active or not agent_is_alive()),
            )
            statement_popover(statements.compact(view.name))
        if operation is not None and not operation.is_active:
            operation_failure(operation)


def _words(run: CompactionRun | None) -> str:
    if run is None or run.start_time is None:
        return "not yet: it follows each cleanup"
    when = fmt.moment_and_age(run.start_time, state.now(), state.viewer().axis_zone)
    return f"last {when} **{run.outcome or 'running'}**: {escaped(run.message)}"


def _key(database: str) -> str:
    return f"compaction:{database}"


def _ask(database: str) -> None:
    engine = state.engine()

    def work(operation: Operation) -> CompactionRun:
        operation.step("waiting for the agent")
        return engine.compact(database)

    state.operations().submit(_key(database), "Compaction", work)
