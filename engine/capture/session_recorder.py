"""What a running scan session has done so far (reference/monitoring.md, sys.dm_cdc_log_scan_sessions)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from engine.model.lsn import Lsn
from engine.model.scan_report import PhaseStart
from engine.model.scan_session import ScanPhase, ScanSession
from engine.sources.base import LogTransaction

NO_LSN = Lsn.ZERO.groups

PHASE_NAMES = {
    ScanPhase.READING_CONFIGURATION: "Reading configuration",
    ScanPhase.FIRST_SCAN: "First scan",
    ScanPhase.SECOND_SCAN: "Second scan",
    ScanPhase.BUILDING_ROWS: "Building change rows",
    ScanPhase.WRITING_ROWS: "Writing change tables",
    ScanPhase.SCHEMA_VERSIONING: "Schema versioning",
    ScanPhase.LAST_SCAN: "Last scan",
    ScanPhase.DONE: "Done",
}
"""Phase texts; the pages name the phases but not their text."""


PHASES_KEPT = 200
"""Phases whose times are kept of one session: a huge transaction goes through them thousands of times."""


class SessionRecorder:
    """Counts while a session runs; ``session`` is its row at any moment."""

    def __init__(self, clock: Callable[[], datetime], after: Lsn | None = None) -> None:
        """``after``: where the session goes on in the log; `begin_at` says so when it is known later."""
        self._clock = clock
        self.phase = ScanPhase.READING_CONFIGURATION
        start = (after or Lsn.ZERO).groups
        self.session = ScanSession.begun(0, clock(), PHASE_NAMES[self.phase], start, NO_LSN)
        self.phases = [PhaseStart(self.phase, self.session.start_time)]
        self.phases_left_out = 0

    @property
    def met_records(self) -> bool:
        """Whether the session met transactions or events of ours."""
        return self.session.log_record_count > 0

    @property
    def productive(self) -> bool:
        """Whether the session is no empty scan: it had CDC transactions, or DDL."""
        return self.session.tran_count > 0 or self.session.schema_change_count > 0

    def begin_at(self, after: Lsn | None) -> None:
        """The session goes on at this place of the log."""
        start = (after or Lsn.ZERO).groups
        self.session = replace(self.session, start_lsn=start, current_lsn=start)

    def number(self, session_id: int) -> None:
        """The session has a row, under this number."""
        self.session = self.session.numbered(session_id)

    def resume(self, empty: ScanSession) -> None:
        """An empty scan goes on in the row of the one before."""
        self.session = self.session.continuing(empty)

    def enter(self, phase: ScanPhase) -> None:
        """The scan is in ``phase`` now."""
        if phase is not self.phase:
            if len(self.phases) < PHASES_KEPT or phase is ScanPhase.DONE:
                self.phases.append(PhaseStart(phase, self._clock()))
            else:
                self.phases_left_out += 1
        self.phase = phase
        self.session = replace(self.session, scan_phase=PHASE_NAMES[phase])

    def read(self, transactions: Sequence[LogTransaction], records: int) -> None:
        """Records of these transactions were read; the last may be one that goes on."""
        session = self.session
        session = replace(session, log_record_count=session.log_record_count + records)
        if transactions:
            last = transactions[-1]
            session = replace(
                session,
                current_lsn=last.commit_lsn.groups,
                last_commit_lsn=last.commit_lsn.groups,
                last_commit_time=last.commit_time,
            )
        self.session = session

    def captured(self, transactions: Sequence[LogTransaction], commands: int) -> None:
        """These whole transactions had changes for change tables; ``commands`` were written."""
        session = replace(self.session, command_count=self.session.command_count + commands)
        if transactions:
            first, last = transactions[0], transactions[-1]
            if session.first_begin_cdc_lsn == NO_LSN:
                session = replace(session, first_begin_cdc_lsn=first.begin_lsn.groups)
            session = replace(
                session,
                tran_count=session.tran_count + len(transactions),
                last_commit_cdc_lsn=last.commit_lsn.groups,
                last_commit_cdc_time=last.commit_time,
            )
        self.session = session

    def schema_changes(self, count: int) -> None:
        """DDL operations, enabling and disabling among them, met in the log."""
        self.session = replace(self.session, schema_change_count=self.session.schema_change_count + count)

    def finish(self, now: datetime, end: Lsn) -> None:
        """The session ended at ``end``. Latency and duration are whole seconds, as the original's."""
        self.enter(ScanPhase.DONE)
        session = self.session
        committed = session.last_commit_cdc_time
        self.session = replace(
            session,
            end_time=now,
            end_lsn=end.groups,
            current_lsn=end.groups,
            duration=_seconds(session.start_time, now) if session.tran_count else 0,
            latency=0 if committed is None else _seconds(committed, now),
        )

    def fail(self, now: datetime) -> None:
        """The session ended with an error in its present phase."""
        session = self.session
        self.session = replace(
            session,
            end_time=now,
            end_lsn=session.current_lsn,
            duration=_seconds(session.start_time, now) if session.tran_count else 0,
            error_count=session.error_count + 1,
            failed_sessions_count=1,
        )

    def empty(self, now: datetime, end: Lsn, count: int) -> None:
        """The ``count``-th empty scan in a row ended at ``end``: one row stands for all of them."""
        self.finish(now, end)
        self.session = replace(self.session, empty_scan_count=count)


def _seconds(since: datetime, until: datetime) -> int:
    """Whole seconds; clocks of two machines may differ, a latency is never negative."""
    return max(0, round((until - since).total_seconds()))
