"""The first minute: no database yet, none enabled, no table yet; each with the one next action."""

from __future__ import annotations

import streamlit as st

from dashboard import format as fmt
from dashboard import state
from dashboard.components.enable_wizard import open_wizard, show_outcomes
from dashboard.components.operation_box import operation_failure
from dashboard.components.problem import escaped, problem_box
from dashboard.enabling import default_choice, enable_all, impossible
from dashboard.snapshot import DatabaseView
from engine.errors import CdcError


def no_database() -> None:
    """An empty home: how to connect a source, from here or from the command line."""
    st.markdown("### No database is connected yet")
    st.markdown("Highwater captures a PostgreSQL 14 or newer with `wal_level = logical`. Connect one here")
    with st.form("connect", border=True):
        name = st.text_input("Name", placeholder="sales", help="How the database is called here.")
        dsn = st.text_input(
            "DSN", placeholder="postgresql://user:password@host:5432/database", type="password"
        )
        submitted = st.form_submit_button("Connect", type="primary", icon=":material/link:")
    if submitted and name and dsn:
        _connect(name.strip(), dsn.strip())
    st.markdown("or on the command line, and this page follows:")
    st.code("highwater connect sales postgresql://user:password@host:5432/database", language="bash")


def _connect(name: str, dsn: str) -> None:
    try:
        problems = state.engine().connect(name, dsn)
    except CdcError as error:
        problem_box(error)
        return
    for problem in problems:
        st.warning(f"**{escaped(problem.subject)}**: {escaped(problem.problem)}\n\n`{problem.fix}`")
    state.changed()
    st.rerun()


def is_first(view: DatabaseView) -> bool:
    """Whether nothing of this database is captured yet, or the first tables are just being enabled."""
    operation = state.operations().get(_key(view))
    return not view.instances or (operation is not None and operation.is_active)


def _key(view: DatabaseView) -> str:
    return f"enable_everything:{view.name}"


def no_table(view: DatabaseView) -> None:
    """A connected database without capture instances: capture everything, or choose."""
    key = _key(view)
    operation = state.operations().get(key)
    with st.container(border=True):
        st.markdown(f"### No table of {escaped(view.name)} is captured yet", anchors=False)
        if operation is not None and operation.is_active:
            _steps(key)
            return
        if operation is not None and not operation_failure(operation):
            show_outcomes(operation.result)
        st.markdown(
            "Highwater reads the transaction log of this database and keeps every change of the tables "
            "you choose: what was before, what is after, in which transaction. Enabling takes a second "
            "and leaves the tables as they are."
        )
        with st.container(horizontal=True):
            if st.button(
                "Capture all tables", type="primary", icon=":material/rocket_launch:", key="enable_all"
            ):
                _capture_all(view, key)
            st.button(
                "Choose tables",
                icon=":material/checklist:",
                key="choose_tables",
                on_click=open_wizard,
                args=(view.name,),
            )


def _capture_all(view: DatabaseView, key: str) -> None:
    try:
        tables = [t for t in state.engine().source_tables(view.name) if not impossible(t, view.instances)]
    except CdcError as error:
        problem_box(error)
        return
    if not tables:
        st.info("This database has no tables yet.", icon=":material/info:")
        return
    calls = [default_choice(table).statement(table) for table in tables]
    first = not view.database.is_cdc_enabled
    state.operations().submit(
        key,
        f"Enabling {fmt.plural(len(calls), 'table')}",
        lambda work: enable_all(state.engine(), view.name, calls, first, work),
    )
    st.rerun()


def _steps(key: str) -> None:
    def body() -> None:
        operation = state.operations().get(key)
        if operation is None or not operation.is_active:
            state.changed()
            st.rerun()
        with st.status(operation.title, expanded=True):
            st.markdown("\n".join(f"- {escaped(step)}" for step in operation.steps) or "starting")

    st.fragment(body, run_every=0.4)()
