"""The one dialog that is open: kept in the session, drawn by the app's own run.

A timer's request carries a click as well as the click's own, and a page draws itself while clicks come:
what a click does must not hang on which part of the page happens to run next. So a click only says,
in a callback, what to open or that it confirms; callbacks run with whatever request brings the click.
The app draws the dialog in every full run until it is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import streamlit as st

_OPEN, _DRAWN, _CONFIRMED = "dialog_open", "dialog_drawn", "dialog_confirmed"


@dataclass(frozen=True, slots=True)
class Dialog:
    """What draws the dialog (an ``st.dialog`` function), and with what; each opening has its own ``mark``."""

    draw: Callable[..., None]
    arguments: tuple[Any, ...]
    mark: str = field(default_factory=lambda: uuid4().hex, compare=False)


def open_dialog(draw: Callable[..., None], *arguments: Any) -> None:
    """A callback of buttons: opens this dialog in place of any other. A click that comes twice is one."""
    wanted = Dialog(draw, arguments)
    if st.session_state.get(_OPEN) != wanted:
        st.session_state[_OPEN] = wanted


def close_dialog() -> None:
    """Closes the open dialog: as ``on_dismiss``, or before ``st.rerun()``."""
    st.session_state[_OPEN] = st.session_state[_CONFIRMED] = None


def draw_dialog() -> None:
    """Draws the open dialog. The entry script alone calls this, in every full run."""
    dialog: Dialog | None = st.session_state.get(_OPEN)
    st.session_state[_DRAWN] = dialog
    if dialog is not None:
        dialog.draw(*dialog.arguments)
    st.session_state[_CONFIRMED] = None  # a step of the dialog without that button has nothing to do


def follow_dialog() -> None:
    """In a fragment: has the app run when a click that came with it is for a dialog."""
    is_drawn = st.session_state.get(_OPEN) is st.session_state.get(_DRAWN)
    if not is_drawn or st.session_state.get(_CONFIRMED) is not None:
        st.rerun(scope="app")


def confirm_button(label: str, key: str, *, icon: str | None = None, disabled: bool = False) -> bool:
    """The button inside a dialog that does what it is about; True once for a click of this opening."""
    dialog: Dialog | None = st.session_state.get(_OPEN)
    mark = dialog.mark if dialog is not None else ""
    st.button(label, type="primary", key=key, icon=icon, disabled=disabled, on_click=_confirm, args=(mark,))
    confirmed, st.session_state[_CONFIRMED] = st.session_state.get(_CONFIRMED), None
    return bool(mark) and confirmed == mark and not disabled


def _confirm(mark: str) -> None:
    dialog: Dialog | None = st.session_state.get(_OPEN)
    if dialog is not None and dialog.mark == mark:
        st.session_state[_CONFIRMED] = mark
