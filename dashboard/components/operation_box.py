"""A background operation on a page: what it does, how far it is, how to stop it."""

from __future__ import annotations

import streamlit as st

from dashboard import format as fmt
from dashboard.components.problem import problem_box
from dashboard.operations import Operation, OperationState


def operation_progress(operation: Operation, key: str) -> None:
    """The line while it runs: step, time, tasks done, Cancel."""
    with st.container(horizontal=True, vertical_alignment="center"):
        step = operation.steps[-1] if operation.steps else "waiting"
        text = f"{operation.title}: {step} · {fmt.duration(round(operation.seconds, 1))}"
        st.progress(min(1.0, operation.fraction or 0.0), text=text, width="stretch")
        st.button("Cancel", icon=":material/close:", key=f"{key}_cancel", on_click=operation.cancel)


def operation_failure(operation: Operation) -> bool:
    """Shows why an operation has no result; False when it has one."""
    if operation.state is OperationState.FAILED and operation.error is not None:
        problem_box(operation.error, operation.title.lower())
        return True
    if operation.state is OperationState.CANCELLED:
        st.info(f"{operation.title} was cancelled.", icon=":material/cancel:")
        return True
    return False
