"""Who did what: what runs now, the actions that were written down, and one of them with its T-SQL."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import state
from dashboard.components.cancel_button import cancel_button
from dashboard.components.console_page import into_editor
from dashboard.components.problem import escaped, problem_box
from dashboard.components.row_table import row_table
from dashboard.operations import Operation
from engine.errors import CdcError
from engine.model.activity import Action, Outcome

SHOWN = 500
"""The newest actions that the page lists."""
EVERYBODY, EVERY_DATABASE, EVERY_RESULT = "everybody", "every database", "every result"
LOOKS = {
    Outcome.OK: ("green", ":material/check_circle:"),
    Outcome.RUNNING: ("blue", ":material/pending:"),
    Outcome.REFUSED: ("orange", ":material/block:"),
    Outcome.FAILED: ("red", ":material/error:"),
}
KEPT = (
    "Everything that changes something is written down before it begins and when it has ended, from pages, "
    "command line and programs alike; of SQL the batches too. Secrets are `***`."
)


def activity_list() -> None:
    """What runs, then the list and the action that is selected, or the newest."""
    _leave()
    _running()
    try:
        actions = state.engine().activity(SHOWN)
    except CdcError as error:
        problem_box(error, "reading what was done")
        return
    if not actions:
        st.info("Nothing was done yet: no action has been written down.", icon=":material/history:")
        st.caption(KEPT)
        return
    shown = _filtered(actions)
    with st.container(border=True, gap="xsmall"):
        chosen = _table(shown)
        st.caption(KEPT)
    if chosen is not None:
        _drawer(chosen)


# What runs


def _running() -> None:
    """Background operations of this dashboard: whose they are, since when, and a way to end them."""
    pools = (state.all_operations(), state.dialog_runs(), state.console_runs(), state.workloads())
    active = [operation for pool in pools for operation in pool.active()]
    if not active:
        return
    with st.container(border=True, gap="xsmall", key="a_running"):
        st.markdown("## Running now", anchors=False)
        for operation in sorted(active, key=lambda each: each.submitted):
            _one_running(operation)


def _one_running(operation: Operation) -> None:
    since = fmt.moment_and_age(operation.submitted, state.now(), state.viewer().axis_zone)
    step = operation.steps[-1] if operation.steps else str(operation.state)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"**{escaped(operation.title)}**: {escaped(step)} · {escaped(operation.owner)} · since {since}",
            width="stretch",
        )
        cancel_button(operation, "Cancel", ":material/close:", f"a_cancel_{operation.tag}")


# What was done


def _filtered(actions: Sequence[Action]) -> list[Action]:
    with st.container(horizontal=True, vertical_alignment="center"):
        user = _filter("User", EVERYBODY, sorted({each.user_name for each in actions}), "a_user")
        databases = sorted({each.database for each in actions if each.database})
        database = _filter("Database", EVERY_DATABASE, databases, "a_db")
        outcome = _filter("Result", EVERY_RESULT, [str(each) for each in Outcome], "a_result")
    return [
        each
        for each in actions
        if user in (EVERYBODY, each.user_name)
        and database in (EVERY_DATABASE, each.database)
        and outcome in (EVERY_RESULT, str(each.outcome))
    ]


def _filter(label: str, every: str, options: Sequence[str], key: str) -> str:
    """A choice in the address; one that is not there any more is every."""
    known = [every, *options]
    if (st.session_state.get(key) or st.query_params.get(key)) not in (None, *known):
        st.session_state.pop(key, None)
        st.query_params.pop(key, None)
    return st.selectbox(label, known, key=key, bind="query-params", width=220, label_visibility="collapsed")


def _table(actions: Sequence[Action]) -> Action | None:
    if not actions:
        st.caption("No action is like that.")
        return None
    viewer, now = state.viewer(), state.now()
    frame = pd.DataFrame(
        {
            "time": [fmt.clock(each.started, now, viewer.zone, viewer.local) for each in actions],
            "user": [each.user_name for each in actions],
            "role": [each.role or "none" for each in actions],
            "database": [each.database or "" for each in actions],
            "action": [each.command for each in actions],
            "result": [_result(each) for each in actions],
            "T-SQL": [_one_line(each.statement) for each in actions],
        }
    )
    widths = {"time": 115, "user": 130, "role": 70, "database": 90, "action": 120, "result": 110}
    columns = {name: st.column_config.Column(width=width) for name, width in widths.items()}
    rows = [each.activity_id for each in actions]
    return actions[row_table(frame, "a_rows", "What was done, the newest first", 12, columns, rows=rows) or 0]


def _result(action: Action) -> str:
    number = f" {action.error_number}" if action.error_number else ""
    return f"{action.outcome}{number}"


def _one_line(statement: str) -> str:
    """Without the database, which has a column of its own."""
    lines = [line.strip() for line in statement.splitlines()]
    return " ".join(line for line in lines if line and not line.startswith("USE [") and line != "GO")


def _drawer(action: Action) -> None:
    """One action in full."""
    colour, icon = LOOKS[action.outcome]
    with st.container(border=True, gap="small", key="a_drawer"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"## {escaped(action.command)}", anchors=False, width="content")
            st.badge(_result(action), icon=icon, color=colour)  # type: ignore[arg-type]
        st.markdown(
            f"**{escaped(action.user_name)}** ({action.role or 'no role'}) · {_when(action)}"
            + (f" · database {escaped(action.database)}" if action.database else "")
        )
        if action.error_text:
            number = f"Msg {action.error_number}: " if action.error_number else ""
            st.code(f"{number}{action.error_text}", language=None, wrap_lines=True)
        is_long = action.statement.count("\n") > LINES
        st.code(action.statement, language="sql", wrap_lines=True, height=320 if is_long else "content")
        st.button(
            "Open in the console",
            icon=":material/terminal:",
            key="a_console",
            help="The statement goes into the editor; it runs when you run it.",
            on_click=_into_console,
            args=(action.statement,),
        )


LINES = 14
"""A longer statement scrolls."""


def _when(action: Action) -> str:
    begun = fmt.moment_and_age(action.started, state.now(), state.viewer().axis_zone)
    if action.ended is None:
        return f"{begun}, not ended: it runs, or was cut off"
    took = (action.ended - action.started).total_seconds()
    return f"{begun}, took {fmt.duration(round(took, 3))}"


def _into_console(statement: str) -> None:
    into_editor(f"{statement}\n")
    st.session_state[_LEAVING] = True


_LEAVING = "a_to_console"


def _leave() -> None:
    """Goes to the console where a click asked for it: a page can't be left in a callback."""
    if st.session_state.pop(_LEAVING, False):
        state.go_to("console", {})
