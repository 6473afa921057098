"""Scan sessions with all their columns, newest first; phases and details of the one that is selected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import pandas as pd
import streamlit as st

from dashboard import format as fmt
from dashboard import glossary, state
from dashboard.components.problem import escaped
from dashboard.components.row_table import keep_in_address, row_table
from dashboard.components.session_drawer import session_drawer
from dashboard.format import Zone
from dashboard.snapshot import SESSIONS, DatabaseView
from engine.model.scan_session import ScanError, ScanSession

_TIMES = ("start_time", "end_time", "last_commit_time", "last_commit_cdc_time")
_NUMBERS = ("tran_count", "command_count", "log_record_count", "empty_scan_count", "schema_change_count")


def session_cards(view: DatabaseView) -> None:
    """All sessions of this agent run, phases of the selected or the newest, the selected in full, errors."""
    with st.container(border=True):
        st.markdown(
            "**Scan sessions** of this agent run", help="`sys.dm_cdc_log_scan_sessions`, session 0 first"
        )
        strip = st.container()
        selected = session_table(view)
        with strip:
            _phases(view, selected)
    if selected is not None:
        session_drawer(view, selected)
    if view.errors:
        with st.container(border=True):
            st.markdown("**Errors** of the last 32 sessions", help="`sys.dm_cdc_errors`")
            error_table(view.errors)


def _phases(view: DatabaseView, selected: ScanSession | None) -> None:
    if selected is not None and selected.session_id:
        phase_strip(selected)
        return
    proper = [session for session in view.sessions if session.session_id]
    phase_strip(max(proper, key=lambda session: session.session_id, default=None))


def session_table(view: DatabaseView) -> ScanSession | None:
    """sys.dm_cdc_log_scan_sessions: the aggregate row first, then the newest sessions. The selected one."""
    ordered = sorted(view.sessions, key=lambda s: (s.session_id != 0, -s.session_id))
    ids = [str(session.session_id) for session in ordered]
    wanted = st.query_params.get("k_sid")
    if wanted is not None and wanted not in ids:
        st.info(
            f"Session {escaped(wanted)} is not among the newest {SESSIONS} of this agent run.",
            icon=":material/info:",
        )
    frame = pd.DataFrame(
        [_row(session) for session in ordered], columns=[f.name for f in fields(ScanSession)]
    )
    config = {name: st.column_config.NumberColumn(format="localized") for name in _NUMBERS}
    config["duration"] = st.column_config.NumberColumn(
        "duration (s)", help="0: no CDC transaction, or under 1 s"
    )
    config["latency"] = st.column_config.NumberColumn("latency (s)", help=glossary.LATENCY)
    row = row_table(
        frame,
        "k_sessions",
        "Scan sessions",
        12,
        config,
        ids.index(wanted) if wanted in ids else None,
        [(view.name, session.session_id, session.session_id and session.start_time) for session in ordered],
    )
    keep_in_address("k_sid", None if row is None else ids[row])
    return None if row is None else ordered[row]


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
