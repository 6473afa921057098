"""The wizard for a second capture instance: six steps, of which the metadata says which is next.

Nothing of it is kept but the metadata: who reloads the page, or opens it days later, goes on there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from dashboard import format as fmt
from dashboard import state, statements
from dashboard.components.ddl_list import as_row
from dashboard.components.disable_dialog import disable_dialog
from dashboard.components.operation_box import operation_failure, operation_progress
from dashboard.components.permission import permitted
from dashboard.components.problem import escaped
from dashboard.components.statement_box import statement_box
from dashboard.dialogs import open_dialog
from dashboard.enabling import enable_all, name_problem
from dashboard.migration import (
    STEPS,
    Migration,
    Step,
    clients_of,
    free_name,
    has_reached,
    second,
    wanted_columns,
)
from dashboard.operations import OperationState
from dashboard.snapshot import DatabaseView
from dashboard.statements import EnableTable
from engine.model.capture_instance import CaptureInstance
from engine.model.client import Client
from engine.model.ddl_history import SchemaChange
from engine.model.lsn import Lsn


def migration_wizard(view: DatabaseView, at: Migration, changes: Sequence[SchemaChange]) -> None:
    """The steps of one table, the next one open."""
    table = f"{at.old.source_schema}.{at.old.source_table}"
    with st.container(border=True, gap="small", key="s_wizard"):
        st.markdown(f"## Second capture instance of {escaped(table)}", anchors=False, help=_WHY)
        _strip(_current(at))
        if at.new is None:
            _before(view, at, changes)
        elif at.is_crowded:
            _crowded(view, at, at.new)
        elif at.step is Step.OVERLAP:
            _overlap(view, at.new)
        else:
            _change_over(view, at.old, at.new)


_WHY = (
    "A capture instance keeps the columns that it was enabled with. To capture new ones without losing a "
    "change, a second instance runs beside the first until every consumer reads from it."
)


def _current(at: Migration) -> Step:
    if at.is_crowded:
        return Step.SECOND
    return Step.DROP if at.new is not None and st.session_state.get(_switched(at.old, at.new)) else at.step


def _switched(old: CaptureInstance, new: CaptureInstance) -> str:
    return f"s_switched_{old.object_id}_{new.object_id}"


def _strip(current: Step) -> None:
    with st.container(horizontal=True, gap="xsmall"):
        for step, text in STEPS.items():
            colour = "green" if step < current else "blue" if step == current else "gray"
            icon = ":material/check:" if step < current else None
            st.badge(f"{step} {text}", color=colour, icon=icon)  # type: ignore[arg-type]


# 1 and 2: what changed, and the second instance


def _before(view: DatabaseView, at: Migration, changes: Sequence[SchemaChange]) -> None:
    name = escaped(at.old.capture_instance)
    if not at.is_needed:
        st.success(
            f"Nothing to do: **{name}** is the only instance, and captures the table as it is.",
            icon=":material/check_circle:",
        )
        with st.expander("Make a second instance all the same", type="compact", key="s_anyway"):
            _second(view, at.old, changes)
        return
    st.markdown(f"**{name}** is not as the source is now:")
    st.table([as_row(each) for each in at.differences], border="horizontal", hide_index=True)
    _second(view, at.old, changes)


def _second(view: DatabaseView, old: CaptureInstance, changes: Sequence[SchemaChange]) -> None:
    prefix = f"s_{old.object_id}"
    operation = state.operations().get(_key(view, old))
    if operation is not None and operation.is_active:
        operation_progress(operation, "s_enable")
        return
    _outcome(view, old)
    left, right = st.columns([1, 2])
    name = left.text_input(
        "Its name", value=free_name(old, view.instances), max_chars=100, key=f"{prefix}_name", live=True
    ).strip()
    options = [column.name for column in old.source_columns] or list(old.column_names)
    wanted = wanted_columns(old, changes)
    # A key of its own for each proposal: one that was drawn before a column came would leave it out.
    key = f"{prefix}_columns_{'/'.join(map(repr, wanted))}"
    chosen = right.multiselect("Its columns", options, default=wanted, key=key)
    chosen = [column for column in options if column in chosen]
    if problem := name_problem(name, view.name, state.snapshot()):
        st.error(f"{problem[0].upper()}{problem[1:]}.", icon=":material/error:")
    call = second(old, name, chosen)
    with st.expander("Statement", type="compact", icon=":material/code:"):
        statement_box(statements.enable_tables(view.name, [call], False))
    st.button(
        "Create the second instance",
        type="primary",
        icon=":material/add:",
        key="s_create",
        on_click=partial(_create, view.name, old, call),
        **permitted("enable_table", disabled=bool(problem) or not chosen),
    )


def _key(view: DatabaseView, old: CaptureInstance) -> str:
    return f"second:{view.name}:{old.object_id}"


def _create(database: str, old: CaptureInstance, call: EnableTable) -> None:
    engine = state.engine()

    def work(operation: object) -> object:
        outcomes = enable_all(engine, database, [call], False, operation)  # type: ignore[arg-type]
        state.changed()
        return outcomes

    state.operations().submit(f"second:{database}:{old.object_id}", "Enabling", work)


def _outcome(view: DatabaseView, old: CaptureInstance) -> None:
    """Why the last try made no second instance."""
    operation = state.operations().get(_key(view, old))
    if operation is None or operation_failure(operation) or operation.state is not OperationState.DONE:
        return
    for outcome in operation.result:
        if outcome.error is not None:
            st.error(escaped(outcome.error), icon=":material/error:")


def _crowded(view: DatabaseView, at: Migration, new: CaptureInstance) -> None:
    st.warning(
        "A table has at most two capture instances, and neither of these is as the source is now. Drop the "
        "one that no consumer reads any more; then the next one can be made.",
        icon=":material/warning:",
    )
    st.table([as_row(each) for each in at.differences], border="horizontal", hide_index=True)
    with st.container(horizontal=True):
        for instance in (at.old, new):
            _drop_button(view, instance, disabled=False)


# 3: the overlap


def _overlap(view: DatabaseView, new: CaptureInstance) -> None:
    name = escaped(new.capture_instance)
    job = view.capture_job
    st.info(
        f"**{name}** is enabled. It can be read from once capture has met it in the log: this page goes on "
        "by itself.",
        icon=":material/hourglass_top:",
    )
    if job is None or not job.wanted:
        st.warning("The capture job does not run, so that will not come.", icon=":material/warning:")
        st.page_link(st.session_state["pages"]["capture"], label="Go to Capture", icon=":material/speed:")


# 4 to 6: consumers, switch, drop


def _change_over(view: DatabaseView, old: CaptureInstance, new: CaptureInstance) -> None:
    before, after = escaped(old.capture_instance), escaped(new.capture_instance)
    place = max(lsn for lsn in (old.start_lsn, new.start_lsn) if lsn is not None)
    since = fmt.moment_and_age(new.create_date, state.now(), state.viewer().axis_zone)
    st.markdown(
        f"Both can be asked from `{place}` on; {after} was made {since}. Each consumer reads "
        f"**{before}** at least up to there, then goes on in **{after}** with the LSN after its last."
    )
    with st.expander("Statements for a consumer", type="compact", icon=":material/code:", key="s_switch"):
        statement_box(statements.switch_instance(view.name, old.capture_instance, new.capture_instance))
    registered = clients_of(view.clients, old)
    _registered(registered, place)
    is_over = st.checkbox(
        f"Every consumer{' that is not registered' if registered else ''} has read {old.capture_instance} "
        f"up to {place} or later, and reads {new.capture_instance} now",
        key=_switched(old, new),
    )
    is_over = is_over and all(has_reached(client, place) for client in registered)
    _drop_button(view, old, disabled=not is_over)


def _registered(clients: Sequence[Client], place: Lsn) -> None:
    """The consumers that the registry knows, and which of them are not far enough to change over."""
    if not clients:
        return
    rows = [
        {
            "client": escaped(client.name),
            "acknowledged": str(client.acknowledged_lsn or "nothing yet"),
            "": "may change over" if has_reached(client, place) else "reads on in the old instance",
        }
        for client in clients
    ]
    st.table(rows, border="horizontal", hide_index=True)


def _drop_button(view: DatabaseView, instance: CaptureInstance, disabled: bool) -> None:
    st.button(
        f"Drop {instance.capture_instance}",
        icon=":material/delete:",
        key=f"s_drop_{instance.object_id}",
        on_click=open_dialog,
        **permitted("disable_table", disabled=disabled),
        args=(disable_dialog, instance),
    )
