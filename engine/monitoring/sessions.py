"""The aggregate of scan sessions: row 0 of sys.dm_cdc_log_scan_sessions (reference/monitoring.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.model.scan_session import ScanSession

AGGREGATE_ID = 0
NO_LSN = "0"


def aggregate(sessions: Iterable[ScanSession]) -> ScanSession | None:
    """Session 0 of sessions in ascending order; None of none."""
    total: ScanSession | None = None
    for session in sessions:
        total = fold(total, session)
    return total


def fold(total: ScanSession | None, session: ScanSession, before: ScanSession | None = None) -> ScanSession:
    """Session 0 with one more session, the newest, taken in.

    ``before`` is what ``total`` has of that same session already: a session is taken in when it begins,
    when it ends, and again when an empty scan raises its empty_scan_count.

    The page leaves the aggregate of empty_scan_count and failed_sessions_count open: both are sums.
    """
    if total is None:
        total = _start(session)
    empty = session.tran_count == 0

    def summed(name: str) -> int:
        return int(getattr(total, name) + getattr(session, name) - (getattr(before, name) if before else 0))

    return replace(
        total,
        end_time=session.end_time or total.end_time,
        duration=total.duration + _productive_duration(session) - _productive_duration(before),
        error_count=summed("error_count"),
        start_lsn=session.start_lsn,
        end_lsn=session.end_lsn,
        tran_count=summed("tran_count"),
        last_commit_lsn=_last(session.last_commit_lsn, total.last_commit_lsn),
        last_commit_time=session.last_commit_time or total.last_commit_time,
        log_record_count=summed("log_record_count"),
        schema_change_count=summed("schema_change_count"),
        command_count=summed("command_count"),
        first_begin_cdc_lsn=_last(total.first_begin_cdc_lsn, session.first_begin_cdc_lsn),
        last_commit_cdc_lsn=_last(session.last_commit_cdc_lsn, total.last_commit_cdc_lsn),
        last_commit_cdc_time=session.last_commit_cdc_time or total.last_commit_cdc_time,
        latency=total.latency if empty or session.latency == 0 else session.latency,
        empty_scan_count=summed("empty_scan_count"),
        failed_sessions_count=summed("failed_sessions_count"),
    )


def _start(first: ScanSession) -> ScanSession:
    """The aggregate before its first session; aggregation begins with that session."""
    return ScanSession.begun(AGGREGATE_ID, first.start_time, "Aggregate", NO_LSN, NO_LSN)


def _productive_duration(session: ScanSession | None) -> int:
    """Durations count over sessions with CDC transactions only."""
    return session.duration if session is not None and session.tran_count > 0 else 0


def _last(preferred: str, otherwise: str) -> str:
    return preferred if _is_lsn(preferred) else otherwise


def _is_lsn(text: str) -> bool:
    """Whether a text is a position: neither ``0`` nor zero written in full."""
    return bool(text.strip("0:"))
