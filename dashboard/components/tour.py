"""The tour on the page Learn: nine lessons, each run on live data and checked."""

from __future__ import annotations

from typing import cast

import streamlit as st

from dashboard import format as fmt
from dashboard import state
from dashboard.components.console_page import run_outcome
from dashboard.components.operation_box import AT_ONCE, follow_operation, operation_failure
from dashboard.components.problem import escaped, problem_box
from dashboard.console import TabConsole
from dashboard.operations import Operation, OperationState
from dashboard.snapshot import DatabaseView
from dashboard.tour import LESSONS, RESET, Lesson, Part, Place, place
from dashboard.tour_facts import Facts, is_ours
from dashboard.tour_reading import read_facts
from engine.errors import CdcError

_SHOWN, _RAN, _KEPT = "l_lesson", "l_ran", "l_facts"
_RESET = "reset"
REREAD = 3.0
"""Seconds after which the change tables are looked at again though no metadata have changed."""


def tour(database: str) -> None:
    """Draws it anew at each tick: a lesson is done when the data show it."""
    lacking = state.lacking("enable_table")
    if lacking is not None:
        st.info(f"The tour enables a table and changes jobs. {lacking}", icon=":material/lock:")
        return
    try:
        console = state.lesson_console(database)
    except CdcError as error:
        problem_box(error, "opening a session for the tour")
        return

    def body() -> None:
        view = state.snapshot().database(database)
        if view is not None:
            _tour(view, console)

    run = _operation(console)
    state.live(body, at_once=run is not None and run.is_active)


def _tour(view: DatabaseView, console: TabConsole) -> None:
    known = _facts(view)
    if known is None:
        st.skeleton(height=320)
        return
    at = place(known)
    shown = st.session_state.get(_SHOWN)
    number = min(at.lesson, len(LESSONS) - 1) if shown is None else int(shown)
    left, right = st.columns([2, 5], gap="large")
    with left:
        _contents(at, number)
        _start_over(view, console)
    with right, st.container(key="lesson"):
        if at.lesson == len(LESSONS) and number + 1 == len(LESSONS):
            st.success("The tour is complete: all nine lessons have been seen.", icon=":material/school:")
        _lesson(LESSONS[number], number, at, console)


def _facts(view: DatabaseView) -> Facts | None:
    """What checks go by, read anew when metadata have changed, and now and then: cleanup deletes later."""
    instances = [each for each in view.instances if is_ours(each)]
    job = view.capture_job
    mark = (view.watermarks.high, job, tuple(instances))
    key = f"tour:{view.name}"
    operation = state.operations().get(key)
    if operation is None or _is_stale(operation, mark):
        engine = state.engine()

        def work(running: Operation) -> tuple[object, Facts]:
            high, jobs = view.watermarks.high, view.jobs
            return mark, read_facts(engine, view.name, view.instances, high, jobs, running)

        operation = state.operations().submit(key, "Reading what the tour has shown", work)
        operation.wait(AT_ONCE)
    if operation.state is OperationState.DONE:
        st.session_state[_KEPT] = view.name, operation.result[1]
    elif operation.state is OperationState.FAILED:
        operation_failure(operation)
    name, known = st.session_state.get(_KEPT, (None, None))
    if name == view.name:
        return cast(Facts, known)
    if operation.is_active:
        follow_operation(operation)
    return None


def _is_stale(operation: Operation, mark: object) -> bool:
    if operation.is_active or operation.finished is None:
        return False
    is_of_now = operation.state is OperationState.DONE and operation.result[0] == mark
    return not is_of_now or (state.now() - operation.finished).total_seconds() > REREAD


def _contents(at: Place, shown: int) -> None:
    for number, lesson in enumerate(LESSONS):
        icon = "check_circle" if number < at.lesson else "play_circle" if number == at.lesson else "circle"
        st.button(
            f"**{lesson.title}**" if number == shown else lesson.title,
            icon=f":material/{icon}:",
            type="tertiary",
            key=f"l_lesson_{number}",
            help="Done" if number < at.lesson else None,
            on_click=_show,
            args=(number,),
        )


def _show(number: int | None) -> None:
    st.session_state[_SHOWN] = number


def _lesson(lesson: Lesson, number: int, at: Place, console: TabConsole) -> None:
    st.markdown(f"### {number + 1} of {len(LESSONS)}: {lesson.title}")
    st.markdown(lesson.text)
    for index, part in enumerate(lesson.parts):
        _part(part, Place(number, index), at, console)
    page, what = lesson.look
    st.page_link(
        st.session_state["pages"][page], label=f"See on {page.title()}: {what}", icon=":material/visibility:"
    )
    if number < at.lesson and number + 1 < len(LESSONS):
        st.button(
            f"Next: {LESSONS[number + 1].title}",
            type="primary",
            icon=":material/arrow_forward:",
            key="l_next",
            on_click=_show,
            args=(None if number + 1 == at.lesson else number + 1,),
        )


def _part(part: Part, here: Place, at: Place, console: TabConsole) -> None:
    is_done = (here.lesson, here.part) < (at.lesson, at.part)
    is_next = here == at
    run = _operation(console)
    is_running = run is not None and run.is_active
    ran_here = st.session_state.get(_RAN) == (here.lesson, here.part)
    with st.container(border=True, key=f"l_part_{here.lesson}_{here.part}"):
        if is_done or ran_here or not is_next:  # the button says it otherwise
            _check(part, is_done, is_next)
        # What ran last stays open beside its result: closing by itself it would pull the next button away
        # from under the pointer.
        with st.expander("T-SQL", expanded=not is_done or ran_here, icon=":material/code:", type="compact"):
            st.code(part.script, language="sql", wrap_lines=True)
        if is_next:
            st.button(
                part.action,
                type="primary",
                icon=":material/play_arrow:",
                key=f"l_run_{here.lesson}_{here.part}",
                disabled=is_running,
                on_click=_run,
                args=(console, part.script, (here.lesson, here.part)),
            )
        if run is not None and ran_here:
            _told(console, run)


def _check(part: Part, is_done: bool, is_awaited: bool) -> None:
    if is_done:
        st.markdown(f":material/check_circle: **{part.action}**  \n{part.check}")
    elif is_awaited:
        st.markdown(f":material/hourglass_top: **{part.action}**  \nWaits until this is seen: {part.check}")
    else:
        st.markdown(f"**{part.action}**")


def _told(console: TabConsole, run: Operation) -> None:
    if run.is_active:
        st.caption(f":material/hourglass_top: Running for {fmt.duration(round(run.seconds, 1))}")
    if not operation_failure(run):
        run_outcome(console, console.run, run)


def _operation(console: TabConsole) -> Operation | None:
    return state.console_runs().get(f"lesson:{console.token}")


def _run(console: TabConsole, script: str, mark: object) -> None:
    st.session_state[_RAN] = mark
    st.session_state[_SHOWN] = mark[0] if isinstance(mark, tuple) else None
    state.console_runs().submit(
        f"lesson:{console.token}",
        "Lesson of the tour",
        lambda operation: _executed(console, script, operation),
        state.user().name,
    )


def _executed(console: TabConsole, script: str, operation: Operation) -> object:
    try:
        return console.execute(script, 1, operation)
    finally:
        state.feed().refresh()  # whoever sees that it has ended sees what it did


def _start_over(view: DatabaseView, console: TabConsole) -> None:
    mine = [escaped(each.capture_instance) for each in view.instances if is_ours(each)]
    run = _operation(console)
    if not mine and st.session_state.get(_RAN) != _RESET:
        return
    with st.expander("Start over", icon=":material/restart_alt:", type="compact"):
        st.code(RESET, language="sql", wrap_lines=True)
        st.button(
            "Take back what the tour made",
            key="l_reset",
            disabled=not mine or (run is not None and run.is_active),
            on_click=_run,
            args=(console, RESET, _RESET),
        )
        if run is not None and st.session_state.get(_RAN) == _RESET:
            _told(console, run)
