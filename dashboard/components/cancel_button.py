"""The button that cancels background work, for those who may: whoever presses it is asked for anew."""

from __future__ import annotations

import streamlit as st
import structlog

from dashboard import state
from dashboard.cancelling import missing_role
from dashboard.operations import Operation
from engine.errors import ControlUnreachable

_log = structlog.get_logger(__name__)


def cancel_button(operation: Operation, label: str, icon: str, key: str) -> None:
    """Off, with the role that is missing, for others; and once it was pressed, until the work has ended."""
    missing = missing_role(state.user(), operation.owner)
    st.button(
        "Cancelling" if operation.is_ending else label,
        icon=icon,
        key=key,
        disabled=missing is not None or operation.is_ending,
        help=missing,
        on_click=_cancel,
        args=(operation,),
    )


def _cancel(operation: Operation) -> None:
    """A page may have been drawn before a role was taken: who may is asked for when it is pressed."""
    try:
        user = state.look_up_user()
    except ControlUnreachable:
        return  # nobody can tell who may; the page says why
    if missing_role(user, operation.owner) is not None:
        return
    _log.info("operation_cancelled", operation=operation.title, owner=operation.owner, user=user.name)
    operation.cancel()
