"""The demo's workload on the page Learn: transactions of the demo company, at a pace and for a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from dashboard import format as fmt
from dashboard import state, statements
from dashboard.components.cancel_button import cancel_button
from dashboard.components.operation_box import operation_failure
from dashboard.operations import Operation, OperationState
from engine.errors import WorkloadMixInvalid
from engine.model.workload_mix import HIGHEST_PART, MOST_AT_ONCE, SCHEMAS, Mix

_RATE, _SECONDS, _SEED = "l_rate", "l_seconds", "l_seed"


@dataclass(frozen=True, slots=True)
class Asked:
    """A workload as the form has it."""

    rate: int
    seconds: int
    seed: int
    mix: Mix


LENGTHS = {"30 s": 30, "1 min": 60, "5 min": 300, "15 min": 900, "1 h": 3600}


def workload(database: str) -> None:
    """A form, and what runs or ran last in this database, whoever started it."""
    st.markdown(
        "Orders, stock, prices, hires, deletes and rollbacks in the demo company, so that there is something "
        "to look at. It ends by itself."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input(
            "Transactions a second",
            1,
            500,
            20,
            key=_RATE,
            width=180,
            help="At most; the source may be slower.",
        )
        st.segmented_control("For", list(LENGTHS), default="1 min", required=True, key=_SECONDS)
        st.number_input(
            "Seed", 1, 1_000_000, 1, key=_SEED, width=140, help="The same seed on a new demo does the same."
        )
    asked = Asked(
        int(st.session_state[_RATE]),
        LENGTHS[st.session_state[_SECONDS]],
        int(st.session_state[_SEED]),
        _mix(),
    )
    if (problem := asked.mix.problem()) is not None:
        st.error(str(WorkloadMixInvalid(problem)), icon=":material/error:")
    statement = statements.run_demo(database, asked.rate, asked.seconds, asked.seed, asked.mix)
    st.code(statement.tsql, language="sql")

    def body() -> None:
        _at_work(database, asked)

    operation = _operation(database)
    state.live(body, at_once=operation is not None and operation.is_active)


def _mix() -> Mix:
    """Of what it is made: closed, since the company's own mix is a good one to begin with."""
    with st.expander("Mix", icon=":material/tune:", type="compact", key="l_mix"):
        grid = st.grid(3, min_column_width=200)
        with grid.cell():
            chosen = st.pills(
                "Tables of",
                SCHEMAS,
                selection_mode="multi",
                key="l_schemas",
                help="Only tables of these schemas are changed; none chosen: all.",
            )
        given = {name: _number(grid, *field) for name, field in _FIELDS.items()}
    return Mix(schemas=",".join(chosen), **given)


def _number(grid: Any, label: str, least: int, most: int, explained: str) -> int:
    with grid.cell():
        return int(st.number_input(label, least, most, least, key=f"l_{label.lower()}", help=explained))


_PART = "Its part beside the other two, in any unit. All three 0: as the company does."
_FIELDS = {
    "inserts": ("Inserts", 0, HIGHEST_PART, _PART),
    "updates": ("Updates", 0, HIGHEST_PART, _PART),
    "deletes": ("Deletes", 0, HIGHEST_PART, _PART),
    "rows": ("Rows", 1, MOST_AT_ONCE, "Statements of a transaction, at least; mostly one changes a row."),
    "burst": ("Burst", 1, MOST_AT_ONCE, "So many transactions come at once, at the same rate on average."),
}


def _operation(database: str) -> Operation | None:
    return state.workloads().get(_key(database))


def _key(database: str) -> str:
    return f"workload:{database}"


def _at_work(database: str, asked: Asked) -> None:
    operation, lacking = _operation(database), state.lacking("run_demo")
    is_active = operation is not None and operation.is_active
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Start",
            type="primary",
            icon=":material/play_arrow:",
            key="l_start",
            disabled=is_active or lacking is not None or asked.mix.problem() is not None,
            help=lacking,
            on_click=_start,
            args=(database, asked),
        )
        if operation is not None and is_active:
            cancel_button(operation, "Stop", ":material/stop:", "l_stop")
            st.markdown(f"{operation.title}, for {fmt.duration(round(operation.seconds))}", width="content")
    if operation is not None and not is_active:
        _outcome(operation)


def _outcome(operation: Operation) -> None:
    if not operation_failure(operation) and operation.state is OperationState.DONE:
        st.success(operation.result.line(), icon=":material/done:")


def _start(database: str, asked: Asked) -> None:
    engine = state.engine()

    def work(operation: Operation) -> object:
        stopped = operation.is_cancelled_within
        return engine.run_demo(database, asked.rate, asked.seconds, asked.seed, stopped, asked.mix)

    title = f"{fmt.plural(asked.rate, 'transaction')} a second for {fmt.duration(asked.seconds)}"
    state.workloads().submit(_key(database), title, work, state.user().name)
