"""A background operation on a page: what it does, how far it is, how to stop it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard import format as fmt
from dashboard import state
from dashboard.components.cancel_button import cancel_button
from dashboard.components.problem import problem_box
from dashboard.operations import Operation, OperationState

AT_ONCE = 0.15
"""Seconds a redraw waits for an answer itself, before it shows progress."""


def operation_progress(operation: Operation, key: str) -> None:
    """The line while it runs: step, time, tasks done, Cancel. Draws the page anew once it has ended."""

    def line() -> None:
        if not operation.is_active:
            st.rerun(scope="app")
        with st.container(horizontal=True, vertical_alignment="center"):
            step = operation.steps[-1] if operation.steps else "waiting"
            text = f"{operation.title}: {step} · {fmt.duration(round(operation.seconds, 1))}"
            st.progress(min(1.0, operation.fraction or 0.0), text=text, width="stretch")
            cancel_button(operation, "Cancel", ":material/close:", f"{key}_cancel")

    awaited(line)


def follow_operation(operation: Operation) -> None:
    """Draws the page anew once it has ended: at ticks of its own, the page's may be paused."""

    def look() -> None:
        if not operation.is_active:
            st.rerun(scope="app")

    awaited(look)


def awaited(body: Callable[[], None]) -> None:
    """Draws it now and soon again: by the timer of the part it is in, or by one of its own where none is."""
    if state.look_soon():
        body()
    else:
        st.fragment(state.of_page(body), run_every=state.SOON)()


def is_answered(operation: Operation, key: str) -> bool:
    """Whether there is a result to show. Otherwise draws how far it is, or why there is none."""
    if not operation.wait(AT_ONCE):
        operation_progress(operation, key)
        return False
    return not operation_failure(operation)


def operation_failure(operation: Operation) -> bool:
    """Shows why an operation has no result; False when it has one."""
    if operation.state is OperationState.FAILED and operation.error is not None:
        problem_box(operation.error, operation.title.lower())
        return True
    if operation.state is OperationState.CANCELLED:
        st.info(f"{operation.title} was cancelled.", icon=":material/cancel:")
        return True
    return False
