"""Scan sessions for tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from engine.model.scan_session import ScanSession

START = datetime(2026, 11, 21, 9, tzinfo=UTC)


def a_session(session_id: int = 1, **values: object) -> ScanSession:
    """A finished session a second after the one before; empty unless ``values`` say otherwise."""
    start = START + timedelta(seconds=session_id)
    session = ScanSession(
        session_id=session_id,
        start_time=start,
        end_time=start + timedelta(seconds=1),
        duration=1,
        scan_phase="Done",
        error_count=0,
        start_lsn="00000000:00000010:0000",
        current_lsn="00000000:00000020:0000",
        end_lsn="00000000:00000020:0000",
        tran_count=0,
        last_commit_lsn="0",
        last_commit_time=None,
        log_record_count=0,
        schema_change_count=0,
        command_count=0,
        first_begin_cdc_lsn="0",
        last_commit_cdc_lsn="0",
        last_commit_cdc_time=None,
        latency=0,
        empty_scan_count=0,
        failed_sessions_count=0,
    )
    return replace(session, **values)
