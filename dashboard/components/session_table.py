"""Scan sessions with all their columns, newest first, and the phase strip of the newest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, state
from dashboard.format import Zone
from dashboard.snapshot import DatabaseView
from dashboard.theme import table_height
from engine.model.scan_session import ScanError, ScanSession

_TIMES = ("start_time", "end_time", "last_commit_time", "last_commit_cdc_time")
_NUMBERS = ("tran_count", "command_count", "log_record_count", "empty_scan_count", "schema_change_count")


def session_cards(view: DatabaseView) -> None:
    """Phases of the newest session, all sessions of this agent run, and errors where there are any."""
    proper = [session for session in view.sessions if session.session_id]
    with st.container(border=True):
        st.markdown(
            "**Scan sessions** of this agent run", help="`sys.dm_cdc_log_scan_sessions`, session 0 first"
        )
        phase_strip(max(proper, key=lambda session: session.session_id, default=None))
        session_table(view.sessions)
    if view.errors:
        with st.container(border=True):
            st.markdown("**Errors** of the last 32 sessions", help="`sys.dm_cdc_errors`")
            error_table(view.errors)


def session_table(sessions: Sequence[ScanSession]) -> None:
    """sys.dm_cdc_log_scan_sessions: the aggregate row first, then the newest sessions."""
    ordered = sorted(sessions, key=lambda s: (s.session_id != 0, -s.session_id))
    frame = pd.DataFrame(
        [_row(session) for session in ordered], columns=[f.name for f in fields(ScanSession)]
    )
    config = {name: st.column_config.NumberColumn(format="localized") for name in _NUMBERS}
    config["duration"] = st.column_config.NumberColumn(
        "duration (s)", help="0: no CDC transaction, or under 1 s"
    )
    config["latency"] = st.column_config.NumberColumn("latency (s)", help=glossary.LATENCY)
    st.dataframe(
        frame,
        hide_index=True,
        column_config=config,
        key="k_sessions",
        height=table_height(len(frame), 12),
        alt="Scan sessions",
    )


def _row(session: ScanSession) -> dict[str, object]:
    viewer, now = state.viewer(), state.now()
    zone = Zone.UTC if viewer.zone is Zone.RELATIVE else viewer.zone
    row: dict[str, object] = {f.name: getattr(session, f.name) for f in fields(ScanSession)}
    for name in _TIMES:
        row[name] = fmt.clock(getattr(session, name), now, zone, viewer.local)
    if session.end_time is None and session.session_id:
        row["end_time"] = "active"
    row["end_lsn"] = session.end_lsn or fmt.NULL
    return row


def phase_strip(session: ScanSession | None) -> None:
    """The eight phases of a scan; the one the newest session is in is marked."""
    current = _phase(session)
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        for number, text in glossary.PHASES.items():
            is_current = number == current
            done = current is not None and (number < current or current == 8)
            icon = ":material/radio_button_checked:" if is_current else None
            label = f"{number} {text}"
            if is_current and current != 8:
                st.badge(label, icon=icon, color="blue")
            else:
                st.badge(label, icon=icon, color="green" if done else "gray")


def _phase(session: ScanSession | None) -> int | None:
    if session is None:
        return None
    phase = session.scan_phase.strip().lower()
    if phase.startswith("done") or session.end_time is not None:
        return 8
    for number, text in glossary.PHASES.items():
        if phase == str(number) or phase.startswith(text[:8]):
            return number
    return None


def error_table(errors: Sequence[ScanError]) -> None:
    """sys.dm_cdc_errors, newest first."""
    ordered = sorted(errors, key=lambda error: error.entry_time, reverse=True)
    rows = [{f.name: getattr(error, f.name) for f in fields(ScanError)} for error in ordered]
    for row, error in zip(rows, ordered, strict=True):
        row["entry_time"] = fmt.moment(error.entry_time)
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="k_errors", alt="Errors of scan sessions")
