"""The enable wizard: tables, then columns and net changes for each, then a review with the statements.

What was entered is in the session under ``wizard``, so Back keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import streamlit as st

from dashboard import format as fmt
from dashboard import state, statements
from dashboard.components.operation_box import is_answered, operation_failure
from dashboard.components.permission import permitted, say_missing
from dashboard.components.problem import escaped
from dashboard.components.statement_box import statement_box
from dashboard.dialogs import close_dialog, dialog_button, mark_of_dialog, open_dialog
from dashboard.enabling import (
    Choice,
    Outcome,
    default_choice,
    enable_all,
    impossible,
    name_problem,
    net_indexes,
)
from dashboard.operations import Operation
from dashboard.snapshot import DatabaseView
from engine.sources.base import SourceTable

STEPS = ("Tables", "Columns and net changes", "Review", "Result")


@dataclass(slots=True)
class Wizard:
    """What was entered so far. ``choices`` by ``schema.table``."""

    database: str
    tables: dict[str, SourceTable]
    step: int = 0
    chosen: list[str] = field(default_factory=list)
    choices: dict[str, Choice] = field(default_factory=dict)
    role: str = ""
    operation: str = ""


def enable_button(view: DatabaseView) -> None:
    """Opens the wizard."""
    st.button(
        "Enable tables",
        type="primary",
        icon=":material/add:",
        key="t_enable",
        on_click=open_wizard,
        args=(view.name,),
        **permitted("enable_table"),
    )
    say_missing("enable_table")


def open_wizard(database: str) -> None:
    """A callback: opens the dialog, which starts afresh."""
    st.session_state.pop("wizard", None)
    open_dialog(wizard_dialog, database)


def _wizard(database: str) -> Wizard | None:
    """What was entered so far; None, with the reason, while its tables are not known."""
    wizard: Wizard | None = st.session_state.get("wizard")
    if wizard is not None and wizard.database == database:
        return wizard
    key = f"source_tables:{mark_of_dialog()}"
    operation = state.operations().get(key) or _read_tables(database, key)
    if not is_answered(operation, "wizard_tables_wait"):
        return None
    tables = {f"{table.schema}.{table.name}": table for table in operation.result}
    wizard = st.session_state["wizard"] = Wizard(database, tables)
    return wizard


def _read_tables(database: str, key: str) -> Operation:
    engine = state.engine()

    def work(operation: Operation) -> list[SourceTable]:
        operation.step("asking the source")
        return engine.source_tables(database)

    return state.operations().submit(key, f"Reading the tables of {database}", work)


@st.dialog("Enable tables", width="large", icon=":material/add_circle:", on_dismiss=close_dialog)
def wizard_dialog(database: str) -> None:
    """The dialog; each step draws itself and the buttons below."""
    wizard = _wizard(database)
    if wizard is None:
        return
    st.caption(f"Step {wizard.step + 1} of {len(STEPS)}: **{STEPS[wizard.step]}**")
    (_tables, _columns, _review, _result)[wizard.step](wizard)


def _tables(wizard: Wizard) -> None:
    view = state.snapshot().database(wizard.database)
    reasons = {
        name: impossible(table, view.instances if view else ()) for name, table in wizard.tables.items()
    }
    possible = [name for name, reason in reasons.items() if not reason]
    chosen = st.multiselect(
        "Tables to capture",
        possible,
        default=[name for name in wizard.chosen if name in possible],
        placeholder="Search by schema or name",
        format_func=lambda name: _described(wizard.tables[name]),
        key="wizard_tables",
    )
    if view is not None and not view.instances:
        st.info(
            "This is the first table of this database: the capture job is created and started with it.",
            icon=":material/info:",
        )
    refused = [{"table": name, "reason": reason} for name, reason in reasons.items() if reason]
    if refused:
        with st.expander(f"{fmt.plural(len(refused), 'table')} not offered", type="compact"):
            st.table(refused, border="horizontal", hide_index=True)
    if dialog_button("Next", key="wizard_next", disabled=not chosen, icon=":material/arrow_forward:"):
        wizard.chosen = chosen
        wizard.choices = {
            name: wizard.choices.get(name) or default_choice(wizard.tables[name]) for name in chosen
        }
        _go(wizard, 1)


def _described(table: SourceTable) -> str:
    rows = "" if table.row_estimate < 0 else f", about {fmt.plural(table.row_estimate, 'row')}"
    key = "" if table.primary_key else ", no primary key"
    return f"{table.schema}.{table.name} ({fmt.plural(len(table.columns), 'column')}{rows}{key})"


def _columns(wizard: Wizard) -> None:
    role = wizard.role = st.text_input(
        "Gating role",
        value=wizard.role,
        key="wizard_role",
        placeholder="none: everyone who may read the source columns",
        help="`@role_name`: who is not in this role may not read the changes. Created when it is missing.",
    ).strip()
    problems: list[str] = []
    for name in wizard.chosen:
        table = wizard.tables[name]
        with st.expander(name, expanded=len(wizard.chosen) <= 2):
            wizard.choices[name] = replace(_choice(wizard.choices[name], table), role_name=role or None)
        problem = name_problem(wizard.choices[name].capture_instance, wizard.database, state.snapshot())
        if problem:
            problems.append(f"{name}: {problem}")
    for problem in problems:
        st.error(problem, icon=":material/error:")
    with st.container(horizontal=True):
        if dialog_button("Back", key="wizard_back", primary=False):
            _go(wizard, 0)
        if dialog_button(
            "Review", key="wizard_next", disabled=bool(problems), icon=":material/arrow_forward:"
        ):
            _go(wizard, 2)


def _choice(choice: Choice, table: SourceTable) -> Choice:
    prefix = f"wizard_{table.source_object_id}"
    indexes = net_indexes(table)
    index = choice.index_name
    if len(indexes) > 1 or (indexes and table.primary_key is None):
        options = [i.name for i in indexes]
        before = options.index(index) if index in options else 0
        chosen = st.selectbox(
            "Row identifier", options, index=before, key=f"{prefix}_index", help="`@index_name`"
        )
        index = None if table.primary_key is not None and chosen == table.primary_key.name else chosen
    net = st.checkbox(
        "Net changes",
        value=choice.net and bool(indexes),
        disabled=not indexes,
        key=f"{prefix}_net",
        help="Generates the net changes function: one row for each key over a range.",
    )
    if not indexes:
        st.caption(
            "Net changes are off: the table has neither a primary key nor a unique index without NULLs."
        )
    identifier = next((i.columns for i in indexes if i.name == (index or indexes[0].name)), ())
    optional = [column.name for column in table.columns if column.name not in identifier]
    kept = st.multiselect(
        "Captured columns",
        optional,
        default=[c for c in optional if c in choice.columns],
        key=f"{prefix}_columns",
        format_func=lambda name: _column_label(table, name),
    )
    if identifier:
        st.caption(f"Always captured, since they identify the row: {', '.join(identifier)}")
    instance = st.text_input(
        "Capture instance",
        value=choice.capture_instance,
        max_chars=100,
        key=f"{prefix}_instance",
        help="Unique in the database, at most 100 characters.",
    )
    columns = tuple(c.name for c in table.columns if c.name in identifier or c.name in kept)
    return replace(choice, net=net, index_name=index, columns=columns, capture_instance=instance.strip())


def _column_label(table: SourceTable, name: str) -> str:
    column = next(c for c in table.columns if c.name == name)
    return f"{name} ({column.source_type}{', computed: always NULL' if column.is_computed else ''})"


def _review(wizard: Wizard) -> None:
    view = state.snapshot().database(wizard.database)
    first = view is not None and not view.database.is_cdc_enabled
    rows = []
    for name in wizard.chosen:
        choice = wizard.choices[name]
        functions = f"fn_cdc_get_all_changes_{choice.capture_instance}"
        if choice.net:
            functions += f", fn_cdc_get_net_changes_{choice.capture_instance}"
        rows.append(
            {
                "table": name,
                "change table": f"cdc.{choice.capture_instance}_CT",
                "columns": str(len(choice.columns)),
                "functions": functions,
            }
        )
    if first:
        st.markdown(
            f"The database **{escaped(wizard.database)}** is enabled first: "
            "schema `cdc`, publication and slot."
        )
    st.table(rows, border="horizontal", hide_index=True)
    choices = [wizard.choices[name] for name in wizard.chosen]
    calls = [
        choice.statement(wizard.tables[name]) for name, choice in zip(wizard.chosen, choices, strict=True)
    ]
    statement_box(statements.enable_tables(wizard.database, calls, first))
    with st.container(horizontal=True):
        if dialog_button("Back", key="wizard_back", primary=False):
            _go(wizard, 1)
        if dialog_button("Run", key="wizard_run", icon=":material/play_arrow:"):
            engine = state.engine()
            wizard.operation = f"enable:{wizard.database}:{state.now().isoformat()}"
            state.operations().submit(
                wizard.operation,
                f"Enabling {fmt.plural(len(calls), 'table')}",
                lambda work: enable_all(engine, wizard.database, calls, first, work),
            )
            _go(wizard, 3)


def _result(wizard: Wizard) -> None:
    operation = state.operations().get(wizard.operation)
    if operation is None:
        return

    def body() -> None:
        if operation.is_active:
            with st.status(operation.title, expanded=True):
                st.markdown("\n".join(f"- {escaped(step)}" for step in operation.steps) or "starting")
        elif not operation_failure(operation):
            show_outcomes(operation.result)

    st.fragment(body, run_every=0.4 if operation.is_active else None)()
    if dialog_button("Close", key="wizard_close"):
        state.changed()
        close_dialog()
        st.rerun()


def show_outcomes(outcomes: list[Outcome]) -> None:
    """A line for each table: enabled, or the error and what it says."""
    good = sum(1 for outcome in outcomes if outcome.error is None)
    if good:
        st.success(f"{fmt.plural(good, 'table')} enabled. Changes committed from now on are captured.")
    for outcome in outcomes:
        if outcome.error is not None:
            st.error(f"**{escaped(outcome.table)}**: {escaped(outcome.error)}", icon=":material/error:")
        for note in outcome.notes:
            st.info(f"**{escaped(outcome.table)}**: {escaped(note)}", icon=":material/info:")


def _go(wizard: Wizard, step: int) -> None:
    wizard.step = step
    st.rerun()  # of the app: the click may have come with another part's run
