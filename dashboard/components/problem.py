"""Errors and outages on a page: number, message, fix; never a traceback."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard import format as fmt
from dashboard import state
from dashboard.problems import problem_of
from dashboard.snapshot import Snapshot
from engine.errors import CdcError, ControlUnreachable

START = "highwater start"


def problem_box(error: BaseException, doing: str = "") -> None:
    """One error with what to do about it."""
    problem = problem_of(error)
    text = f"**{problem.title}**" + (f" while {doing}" if doing else "") + f"\n\n{escaped(problem.text)}"
    st.error(text + (f"\n\n{problem.fix}" if problem.fix else ""), icon=":material/error:")


def attempt(action: Callable[[], object], key: str) -> bool:
    """In a callback: whether ``action`` worked. Why not is for `last_problem` of this key to show."""
    try:
        action()
    except CdcError as error:
        st.session_state[key] = error
        return False
    st.session_state.pop(key, None)
    return True


def last_problem(key: str) -> None:
    """Why the last `attempt` of this key failed; nothing when it worked, or there was none."""
    error: CdcError | None = st.session_state.get(key)
    if error is not None:
        problem_box(error)


def outage_banner(snapshot: Snapshot, now_text: str) -> None:
    """Says that the picture is old, why, and how old; nothing when it is new."""
    if snapshot.failure is None:
        return
    problem = problem_of(snapshot.failure)
    is_away = isinstance(snapshot.failure, ControlUnreachable)
    what = "The control database does not answer." if is_away else "The state of this home can't be read."
    shown = f"Shown is the state of {now_text}." if snapshot.databases else "There is nothing older to show."
    text = f"**{what}** {shown}\n\n{problem.title}: {escaped(problem.text)}"
    st.error(text + (f"\n\n{problem.fix}" if problem.fix else ""), icon=":material/cloud_off:")
    if is_away:
        st.code(START, language="bash")


def outage_page(snapshot: Snapshot) -> None:
    """The whole page while nothing is known: what does not answer and how to start it."""
    st.markdown("## Highwater does not answer yet")
    st.markdown(
        "The dashboard runs, but the home's control database can't be read. Start the home with "
        f"`{START}` and wait a moment: this page goes on by itself."
    )
    st.button("Try again", icon=":material/refresh:", type="primary", key="again", on_click=state.changed)


def escaped(text: str) -> str:
    """Text of others as it is, where Markdown would read signs in it."""
    for sign in "\\`*_{}[]<>#$~|":
        text = text.replace(sign, "\\" + sign)
    return text


def age_of(snapshot: Snapshot) -> str:
    """When the picture was taken, with its age."""
    return fmt.moment_and_age(snapshot.taken, state.now())
