"""The first minute: no database yet, none enabled, no table yet; each with the one next action."""

from __future__ import annotations

import streamlit as st

from dashboard import format as fmt
from dashboard import state
from dashboard.components.enable_wizard import open_wizard, show_outcomes
from dashboard.components.operation_box import awaited, operation_failure
from dashboard.components.permission import permitted, say_missing
from dashboard.components.problem import attempt, escaped, last_problem
from dashboard.enabling import Outcome, default_choice, enable_all, impossible
from dashboard.operations import Operation
from dashboard.snapshot import DatabaseView


def no_database() -> None:
    """An empty home: how to connect a source, from here or from the command line."""
    st.markdown("## No database is connected yet")
    st.markdown("Highwater captures a PostgreSQL 14 or newer with `wal_level = logical`. Connect one here")
    with st.form("connect", border=True):
        st.text_input(
            "Name", key=_NAME, placeholder="sales", help="How the database is called here.", required=True
        )
        st.text_input(
            "DSN",
            key=_DSN,
            placeholder="postgresql://user:password@host:5432/database",
            type="password",
            required=True,
        )
        st.form_submit_button(
            "Connect", type="primary", icon=":material/link:", on_click=_connect, **permitted("connect")
        )
    say_missing("connect")
    last_problem(_NOT_CONNECTED)
    st.markdown("or on the command line, and this page follows:")
    st.code("highwater connect sales postgresql://user:password@host:5432/database", language="bash")


_NAME, _DSN, _NOT_CONNECTED = "connect_name", "connect_dsn", "connect_failed"


def _connect() -> None:
    name, dsn = (str(st.session_state.get(key) or "").strip() for key in (_NAME, _DSN))
    if name and dsn:
        # What could be better at the source is among the findings, as long as it is so.
        attempt(lambda: state.engine().connect(name, dsn), _NOT_CONNECTED)
        state.changed()


def captured() -> DatabaseView | None:
    """The viewer's database once tables of it are captured; else None, and draws what comes before."""
    view = state.selected()
    if view is None:
        no_database()
    elif is_first(view):
        no_table(view)
    else:
        return view
    return None


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
        st.markdown(f"## No table of {escaped(view.name)} is captured yet", anchors=False)
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
        last_problem(_not_read(view.name))
        if st.session_state.get(_nothing_there(view.name)):
            st.info("This database has no table that could be captured.", icon=":material/info:")
        with st.container(horizontal=True):
            st.button(
                "Capture all tables",
                type="primary",
                icon=":material/rocket_launch:",
                key="enable_all",
                on_click=_capture_all,
                args=(view,),
                **permitted("enable_table"),
            )
            st.button(
                "Choose tables",
                icon=":material/checklist:",
                key="choose_tables",
                on_click=open_wizard,
                args=(view.name,),
                **permitted("enable_table"),
            )
        say_missing("enable_table")


def _not_read(database: str) -> str:
    return f"tables_not_read:{database}"


def _nothing_there(database: str) -> str:
    return f"nothing_to_capture:{database}"


def _capture_all(view: DatabaseView) -> None:
    attempt(lambda: _enable_everything(view), _not_read(view.name))


def _enable_everything(view: DatabaseView) -> None:
    engine, feed = state.engine(), state.feed()
    tables = [t for t in engine.source_tables(view.name) if not impossible(t, view.instances)]
    st.session_state[_nothing_there(view.name)] = not tables
    if not tables:
        return
    calls = [default_choice(table).statement(table) for table in tables]
    first = not view.database.is_cdc_enabled

    def work(operation: Operation) -> list[Outcome]:
        try:
            return enable_all(engine, view.name, calls, first, operation)
        finally:
            feed.refresh()  # whoever sees that it has ended sees what it did

    state.operations().submit(_key(view), f"Enabling {fmt.plural(len(calls), 'table')}", work)
    st.session_state[_asked_here(view.name)] = True


def _asked_here(database: str) -> str:
    return f"enabled_everything_here:{database}"


def refused(view: DatabaseView) -> None:
    """Which tables could not be captured with the rest, and why: until whoever asked for all has seen it."""
    operation = state.operations().get(_key(view))
    if not st.session_state.get(_asked_here(view.name)) or operation is None or not operation.result:
        return
    errors = [outcome for outcome in operation.result if outcome.error is not None]
    if not errors:
        return
    with st.container(border=True, key="refused"):
        st.markdown(f"**{fmt.plural(len(errors), 'table')} of {escaped(view.name)} could not be enabled**")
        show_outcomes(errors)
        st.button("Dismiss", key="refused_seen", on_click=_dismiss, args=(view.name,))


def _dismiss(database: str) -> None:
    st.session_state.pop(_asked_here(database), None)


def _steps(key: str) -> None:
    def body() -> None:
        operation = state.operations().get(key)
        if operation is None or not operation.is_active:
            st.rerun(scope="app")
        with st.status(operation.title, expanded=True):
            st.markdown("\n".join(f"- {escaped(step)}" for step in operation.steps) or "starting")

    awaited(body)
