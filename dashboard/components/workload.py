"""The demo's workload on the page Learn: transactions of the demo company, at a pace and for a time."""

from __future__ import annotations

import streamlit as st

from dashboard import format as fmt
from dashboard import state
from dashboard.components.cancel_button import cancel_button
from dashboard.components.operation_box import operation_failure
from dashboard.operations import Operation, OperationState

_RATE, _SECONDS, _SEED = "l_rate", "l_seconds", "l_seed"
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
    rate, seconds = int(st.session_state[_RATE]), LENGTHS[st.session_state[_SECONDS]]
    seed = int(st.session_state[_SEED])
    call = f"EXEC highwater.demo @rate = {rate}, @seconds = {seconds}, @seed = {seed};"
    st.code(f"USE [{database.replace(']', ']]')}];\n{call}", language="sql")

    def body() -> None:
        _at_work(database, rate, seconds, seed)

    operation = _operation(database)
    state.live(body, at_once=operation is not None and operation.is_active)


def _operation(database: str) -> Operation | None:
    return state.workloads().get(_key(database))


def _key(database: str) -> str:
    return f"workload:{database}"


def _at_work(database: str, rate: int, seconds: int, seed: int) -> None:
    operation, lacking = _operation(database), state.lacking("run_demo")
    is_active = operation is not None and operation.is_active
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Start",
            type="primary",
            icon=":material/play_arrow:",
            key="l_start",
            disabled=is_active or lacking is not None,
            help=lacking,
            on_click=_start,
            args=(database, rate, seconds, seed),
        )
        if operation is not None and is_active:
            cancel_button(operation, "Stop", ":material/stop:", "l_stop")
            st.markdown(f"{operation.title}, for {fmt.duration(round(operation.seconds))}", width="content")
    if operation is not None and not is_active:
        _outcome(operation)


def _outcome(operation: Operation) -> None:
    if not operation_failure(operation) and operation.state is OperationState.DONE:
        st.success(operation.result.line(), icon=":material/done:")


def _start(database: str, rate: int, seconds: int, seed: int) -> None:
    engine = state.engine()

    def work(operation: Operation) -> object:
        return engine.run_demo(database, rate, seconds, seed, operation.is_cancelled_within)

    title = f"{fmt.plural(rate, 'transaction')} a second for {fmt.duration(seconds)}"
    state.workloads().submit(_key(database), title, work, state.user().name)
