"""One scan session in full: its phases, what it counted, where in the log it was, how far behind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import streamlit as st

from dashboard import format as fmt
from dashboard import sessions, state
from dashboard.change_links import RANGE
from dashboard.components.problem import escaped
from dashboard.error_groups import lsn_of, phase_text
from dashboard.snapshot import DatabaseView
from engine.model.scan_session import ScanError, ScanSession

_Facts = list[tuple[str, str]]


def session_drawer(view: DatabaseView, session: ScanSession) -> None:
    """Under the names of `sys.dm_cdc_log_scan_sessions`, with the errors that the session met."""
    with st.container(border=True, gap="small", key="k_drawer"):
        with st.container(horizontal=True, vertical_alignment="center"):
            name = f"Session {session.session_id}" if session.session_id else "All sessions: the aggregate"
            st.markdown(f"## {name}", anchors=False, width="content")
            _badge(session)
        for column, facts in zip(
            st.columns(3), (_times(session), _counts(session), _places(session)), strict=True
        ):
            with column:
                st.table(
                    [{"": f"`{key}`", " ": value} for key, value in facts],
                    border=False,
                    hide_index=True,
                    hide_header=True,
                )
        _errors(errors_of(session, view.errors))
        _link(view, session)


def _badge(session: ScanSession) -> None:
    if not session.session_id:
        return
    if session.end_time is None:
        st.badge(f"active: {session.scan_phase}", icon=":material/pending:", color="blue")
    elif session.error_count or session.failed_sessions_count:
        st.badge("with errors", icon=":material/error:", color="red")
    elif session.empty_scan_count:
        scans = fmt.plural(session.empty_scan_count, "empty scan")
        st.badge(f"{scans} in a row", icon=":material/hourglass_empty:", color="gray")
    else:
        st.badge("done", icon=":material/check_circle:", color="green")


def _times(session: ScanSession) -> _Facts:
    rate = commands_per_second(session)
    seconds = sessions.seconds_of(session) if session.session_id else None
    exact = "" if seconds is None else f" ({fmt.duration(seconds)})"
    return [
        ("start_time", _when(session.start_time)),
        ("end_time", "NULL: active" if session.end_time is None else _when(session.end_time)),
        ("duration", f"{fmt.number(session.duration)} s{exact}"),
        ("scan_phase", escaped(session.scan_phase)),
        ("latency", _latency(session)),
        ("command_count / duration", fmt.DASH if rate is None else fmt.rate(rate, "cmd/s")),
    ]


def commands_per_second(session: ScanSession) -> float | None:
    """Of the aggregate by its duration, the sum over sessions with changes; None for no measurable time."""
    if session.session_id:
        return sessions.commands_per_second(session)
    return session.command_count / session.duration if session.duration else None


def _latency(session: ScanSession) -> str:
    exact = sessions.latency_of(session) if session.session_id else None
    return f"{fmt.number(session.latency)} s" + ("" if exact is None else f" ({fmt.duration(exact)})")


def _counts(session: ScanSession) -> _Facts:
    names = (
        "tran_count",
        "command_count",
        "log_record_count",
        "schema_change_count",
        "empty_scan_count",
        "error_count",
        "failed_sessions_count",
    )
    return [(name, fmt.number(getattr(session, name))) for name in names]


def _places(session: ScanSession) -> _Facts:
    return [
        ("start_lsn", _lsn(session.start_lsn)),
        ("current_lsn", _lsn(session.current_lsn)),
        ("end_lsn", "NULL: active" if session.end_lsn is None else _lsn(session.end_lsn)),
        ("first_begin_cdc_lsn", _lsn(session.first_begin_cdc_lsn)),
        ("last_commit_cdc_lsn", _lsn(session.last_commit_cdc_lsn)),
        ("last_commit_cdc_time", _when(session.last_commit_cdc_time)),
        ("last_commit_lsn", _lsn(session.last_commit_lsn)),
        ("last_commit_time", _when(session.last_commit_time)),
    ]


def _lsn(text: str) -> str:
    lsn = lsn_of(text)
    return "0, none" if lsn is None else f"`{lsn}`"


def _when(time: datetime | None) -> str:
    """Without its age: three columns of it have no room, and a session that has ended stands still."""
    return fmt.moment(time, state.viewer().axis_zone)


def errors_of(session: ScanSession, errors: Sequence[ScanError]) -> list[ScanError]:
    """Those that the session met: its id may be another's too, of a run of the agent before."""
    return [
        error
        for error in errors
        if session.session_id
        and error.session_id == session.session_id
        and error.entry_time >= session.start_time
        and (session.end_time is None or error.entry_time <= session.end_time)
    ]


def _errors(errors: Sequence[ScanError]) -> None:
    for error in errors:
        st.markdown(
            f":red[:material/error:] **Msg {error.error_number}** in phase "
            f"{phase_text(error.phase_number)}, {_when(error.entry_time)}: {escaped(error.error_message)}"
        )
    if errors:
        st.page_link(st.session_state["pages"]["errors"], label="All errors", icon=":material/error:")


def _link(view: DatabaseView, session: ScanSession) -> None:
    first, last = lsn_of(session.first_begin_cdc_lsn), lsn_of(session.last_commit_cdc_lsn)
    if not session.session_id or not session.command_count or first is None or last is None:
        return
    st.page_link(
        st.session_state["pages"]["changes"],
        label="Changes of this session",
        icon=":material/history:",
        query_params={"db": view.name, "c_by": RANGE, "c_from": str(first), "c_to": str(last)},
        help="Of one capture instance; another is chosen there.",
    )
