"""What the page Console shows: the editor, snippets, and what the last run gave."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import state
from dashboard.components.operation_box import operation_failure
from dashboard.components.problem import problem_box
from dashboard.components.sql_editor import sql_editor
from dashboard.console import KEPT, SHOWN, ResultSet, Run, TabConsole
from dashboard.operations import Operation
from dashboard.theme import table_height
from engine.errors import CdcError
from engine.model.user import NOBODY

_EDITOR, _TEXT, _INSERT, _SNIPPET = "q_editor", "q_text", "q_insert", "q_snippet"
_RAN = "q_ran"
FIRST = """EXEC sys.sp_cdc_help_change_data_capture;
SELECT sys.fn_cdc_get_max_lsn() AS max_lsn;
"""
LINES = 18


def console_page(database: str) -> None:
    """The console of this tab and database."""
    try:
        console = state.console(database)
    except CdcError as error:
        problem_box(error, "opening the console")
        return
    _tools(console)
    operation = _operation(console)
    _editor(console, operation, database)
    if operation is not None:
        _follow(console, operation)


_NO_PRINCIPAL = (
    "You have no role of the source, so statements reach CDC's procedures, functions and views alone."
)


def _key(console: TabConsole) -> str:
    return f"console:{console.token}"


def _operation(console: TabConsole) -> Operation | None:
    return state.console_runs().get(_key(console))


def _tools(console: TabConsole) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.selectbox(
            "Insert a call",
            sorted(console.snippets()),
            index=None,
            placeholder="Insert a procedure call",
            key=_SNIPPET,
            on_change=_insert,
            args=(console,),
            width=330,
            label_visibility="collapsed",
        )
        st.caption(
            f"Statements mean database **{console.database}**. A transaction that is begun stays open "
            "until it is ended, or this tab is closed or loaded anew.",
            width="content",
        )
        if state.user().reads_as == NOBODY:
            st.caption(_NO_PRINCIPAL, width="content")


def _insert(console: TabConsole) -> None:
    name = st.session_state.get(_SNIPPET)
    if name:
        st.session_state[_INSERT] = {"mark": uuid4().hex, "text": console.snippets()[name]}
        st.session_state[_SNIPPET] = None


def into_editor(text: str) -> None:
    """Before the page is opened: the editor has this text, after what was typed there."""
    typed = st.session_state.get(_TEXT, FIRST)
    st.session_state[_TEXT] = text if typed == FIRST else f"{typed.rstrip()}\nGO\n{text}"


def _editor(console: TabConsole, drawn: Operation | None, database: str) -> None:
    """A part of its own: what is typed is kept without drawing the rest of the page anew.

    ``drawn``: the run that the rest of the page shows. A redraw that is asked for once may be lost to the
    timer's, so it is asked for until that is the newest run; the editor, too, asks until it was heard.
    ``database``: the header's; the session's own follows its USE.
    """
    names = _names(console)

    def body() -> None:
        _run(console)
        if console.is_closed or _operation(console) is not drawn:
            st.rerun(scope="app")
        sql_editor(
            _EDITOR,
            text=st.session_state.setdefault(_TEXT, FIRST),
            words=names.result or [],
            insert=st.session_state.get(_INSERT),
            is_busy=drawn is not None and drawn.is_active,
            ran=st.session_state.get(_RAN),
            database=database,
            session=console.token,
            on_run=partial(_run, console),
            on_text=_keep,
        )
        if are_awaited and not names.is_active:
            st.rerun(scope="app")

    are_awaited = names.is_active
    st.fragment(body, run_every=0.5 if are_awaited else None)()


def _names(console: TabConsole) -> Operation:
    """What can be completed, as it was read when the console was opened, or `USE` changed its database."""
    key = f"words:{console.token}:{console.database}"
    return state.operations().get(key) or state.operations().submit(
        key, "Reading names", lambda work: console.words()
    )


def _typed() -> dict[str, Any]:
    return dict(st.session_state.get(_EDITOR) or {})


def _keep() -> None:
    text = _typed().get("text")
    if isinstance(text, str):
        st.session_state[_TEXT] = text


def _run(console: TabConsole) -> None:
    """Runs what the editor asks for, once, whichever request brings the wish.

    A browser whose connection was lost for long says its last wish again, to a server that knows nothing of
    it: a wish holds for the session it was made in, and never runs in another.
    """
    wanted = _typed().get("run")
    if not isinstance(wanted, dict) or wanted["mark"] == st.session_state.get(_RAN):
        return
    if wanted["session"] != console.token or console.is_closed:
        return
    runs, owner = state.console_runs(), state.user().name
    script, line = str(wanted["text"]), int(wanted["line"])
    st.session_state[_TEXT] = wanted["all"]
    # Nothing between these two: Streamlit may end a run wherever it is called.
    st.session_state[_RAN] = wanted["mark"]
    runs.submit(_key(console), "Console", lambda operation: console.execute(script, line, operation), owner)


def _follow(console: TabConsole, operation: Operation) -> None:
    """Messages and results while they come; the whole page again when it is over: the editor may run."""
    was_active = operation.is_active

    def body() -> None:
        if was_active and not operation.is_active:
            st.rerun(scope="app")
        if operation.is_active:
            _progress(console, operation)
        elif operation_failure(operation):
            return
        run_outcome(console, console.run, operation)

    st.fragment(body, run_every=0.4 if was_active else None)()


def _progress(console: TabConsole, operation: Operation) -> None:
    run = console.run
    rows = sum(result.count for result in run.results)
    said = "waiting for others" if not operation.steps else f"{fmt.plural(rows, 'row')} so far"
    with st.container(horizontal=True, vertical_alignment="center", key="q_progress"):
        st.markdown(
            f":material/hourglass_top: Running for {fmt.duration(round(operation.seconds, 1))}, {said}",
            width="content",
        )
        st.button(
            "Cancel",
            icon=":material/stop:",
            key="q_cancel",
            shortcut="Esc",
            on_click=operation.cancel,
        )


def run_outcome(console: TabConsole, run: Run, operation: Operation) -> None:
    """Results and messages of a run, also while they come."""
    results = [result for result in run.results if result.columns]
    names = [f"Result {number}" for number in range(1, len(results) + 1)]
    messages = f"Messages ({len(run.messages)})"
    default = messages if run.has_failed or not names else names[0]
    tabs = st.tabs(
        [*names, messages], default=default, key=f"q_tabs_{run.mark}_{len(names)}_{run.has_failed}"
    )
    for number, (tab, result) in enumerate(zip(tabs, results, strict=False)):
        with tab:
            _result(console, run, number, result)
    with tabs[-1]:
        _messages(run, operation)


def _messages(run: Run, operation: Operation) -> None:
    for said in run.messages:
        if said.is_error:
            st.error(_verbatim(said.text), icon=":material/error:")
    text = "\n".join(said.text for said in run.messages)
    if text:
        is_long = text.count("\n") > LINES
        st.code(text, language=None, wrap_lines=True, height=420 if is_long else "content")
    if not operation.is_active:
        took = fmt.duration(round(operation.seconds, 2))
        st.caption(f"{'Completed with errors' if run.has_failed else 'Completed'} in {took}.")


def _verbatim(text: str) -> str:
    return "  \n".join(f"`{line.replace('`', chr(39))}`" if line else "" for line in text.splitlines())


def _result(console: TabConsole, run: Run, number: int, result: ResultSet) -> None:
    labels = _labels(result.columns)
    frame = pd.DataFrame(result.rows, columns=labels, dtype=object)
    st.dataframe(
        frame,
        hide_index=True,
        height=table_height(len(frame), 12),
        key=f"q_result_{run.mark}_{number}",
        alt=f"Result {number + 1}",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(_size(result), width="content")
        st.space("stretch")
        if result.is_done and state.snapshot().settings.exports:
            for form, label in (("csv", "CSV"), ("jsonl", "JSON lines")):
                st.link_button(
                    label,
                    _address(console, run, number, form),
                    icon=":material/download:",
                    help="The whole result, not only the rows above.",
                )


def _size(result: ResultSet) -> str:
    shown = f"; the first {fmt.number(SHOWN)} are shown" if result.count > SHOWN else ""
    if result.is_cut:
        why = f"at most {fmt.number(KEPT)} are read" if result.count == KEPT else "it was canceled"
        return f"{fmt.plural(result.count, 'row')} and more: {why}{shown}"
    return fmt.plural(result.count, "row") + shown + ("" if result.is_done else " so far")


def _labels(columns: tuple[str, ...]) -> list[str]:
    """Headings of a table must be there and differ; a result's need not."""
    labels: list[str] = []
    for name in (column or "(No column name)" for column in columns):
        again = sum(1 for label in labels if label.rstrip("\u200b") == name)
        labels.append(name + "\u200b" * again)
    return labels


def _address(console: TabConsole, run: Run, number: int, form: str) -> str:
    base = str(st.get_option("server.baseUrlPath")).strip("/")
    place = run.results.index([each for each in run.results if each.columns][number])
    return (f"/{base}" if base else "") + f"/api/console/{console.token}/{run.mark}/{place}.{form}"
