"""The one dialog that is open: kept in the session, drawn by the app's own run.

A timer's request carries a click as well as the click's own, and a page draws itself while clicks come:
what a click does must not hang on which part of the page happens to run next. So a click only says,
in a callback, what to open or which button it was; callbacks run with whatever request brings the click.
The app draws the dialog in every full run until it is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

import streamlit as st

_OPEN, _DRAWN, _CLICKED = "dialog_open", "dialog_drawn", "dialog_clicked"


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
    st.session_state[_OPEN] = st.session_state[_CLICKED] = None


def mark_of_dialog() -> str:
    """What tells this opening of the open dialog from every other."""
    dialog: Dialog | None = st.session_state.get(_OPEN)
    return "" if dialog is None else dialog.mark


def draw_dialog() -> None:
    """Draws the open dialog. The entry script alone calls this, in every full run."""
    dialog: Dialog | None = st.session_state.get(_OPEN)
    st.session_state[_DRAWN] = dialog
    if dialog is not None:
        dialog.draw(*dialog.arguments)
    st.session_state[_CLICKED] = None  # a step of the dialog without that button has nothing to do


def follow_dialog() -> None:
    """In a fragment: has the app run when a click that came with it is for a dialog."""
    is_drawn = st.session_state.get(_OPEN) is st.session_state.get(_DRAWN)
    if not is_drawn or st.session_state.get(_CLICKED) is not None:
        st.rerun(scope="app")


def dialog_button(
    label: str,
    key: str,
    *,
    primary: bool = True,
    icon: str | None = None,
    disabled: bool = False,
) -> bool:
    """A button inside a dialog; True once for a click of this opening.

    What the other widgets hold then is what the click found: those above are drawn before it. A second
    click of a button that has gone does nothing, even where another has taken its place and key.
    """
    dialog: Dialog | None = st.session_state.get(_OPEN)
    me = (dialog.mark, label) if dialog is not None else None
    look: Literal["primary", "secondary"] = "primary" if primary else "secondary"
    st.button(label, type=look, key=key, icon=icon, disabled=disabled, on_click=_click, args=(me,))
    if me is None or st.session_state.get(_CLICKED) != me:
        return False
    st.session_state[_CLICKED] = None
    return not disabled


def _click(button: tuple[str, str] | None) -> None:
    dialog: Dialog | None = st.session_state.get(_OPEN)
    if dialog is not None and button is not None and button[0] == dialog.mark:
        st.session_state[_CLICKED] = button
