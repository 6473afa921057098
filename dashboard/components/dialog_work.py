"""A dialog's button whose work may take long: it runs in the background, the dialog waits and then closes."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard import format as fmt
from dashboard import state
from dashboard.components.operation_box import AT_ONCE, follow_operation, operation_failure
from dashboard.components.problem import escaped
from dashboard.dialogs import close_dialog, dialog_button, mark_of_dialog
from dashboard.operations import Operation, OperationState
from engine.engine import Engine


def dialog_work(
    label: str,
    key: str,
    title: str,
    work: Callable[[Engine], object],
    *,
    icon: str | None = None,
    disabled: bool = False,
) -> None:
    """Draws the button, how the work goes on that it began, or why that failed; closes the dialog after it.

    title: what is done, as Activity lists it. work: what a click begins, by the engine as this viewer has it.
    A dialog that is closed before ends nothing.
    """
    operation = state.dialog_runs().get(_name(key))
    is_active = operation is not None and operation.is_active
    if dialog_button(label, key=key, icon=icon, disabled=disabled or is_active):
        operation = _begin(_name(key), title, work)
        operation.wait(AT_ONCE)
    if operation is None:
        return
    if operation.is_active:
        st.caption(f":material/pending: {escaped(title)}, since {fmt.duration(round(operation.seconds, 1))}")
        follow_operation(operation)
    elif operation.state is OperationState.DONE:
        close_dialog()
        st.rerun()
    else:
        operation_failure(operation)


def _name(key: str) -> str:
    """The operation's: another opening of the dialog begins its own."""
    return f"dialog:{mark_of_dialog()}:{key}"


def _begin(name: str, title: str, work: Callable[[Engine], object]) -> Operation:
    engine, feed = state.engine(), state.feed()

    def act(operation: Operation) -> None:
        operation.step("asking")
        try:
            work(engine)
        finally:
            feed.refresh()  # whoever sees that it has ended sees what it did

    return state.dialog_runs().submit(name, title, act, state.user().name)
