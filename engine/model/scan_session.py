"""One log scan session: a row of sys.dm_cdc_log_scan_sessions (reference/monitoring.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum


class ScanPhase(IntEnum):
    """Phases of a scan as sys.dm_cdc_errors numbers them."""

    READING_CONFIGURATION = 1
    FIRST_SCAN = 2
    SECOND_SCAN = 3
    BUILDING_ROWS = 4
    WRITING_ROWS = 5
    SCHEMA_VERSIONING = 6
    LAST_SCAN = 7
    DONE = 8


@dataclass(frozen=True, slots=True)
class ScanSession:
    """The 21 columns, in order. Times are UTC; LSNs are text ``8:8:4``, '0' where the page says 0.

    ``scan_phase`` is 'Aggregate' in session 0, otherwise the phase as text ('Done' when finished).
    """

    session_id: int
    start_time: datetime
    end_time: datetime | None
    duration: int
    scan_phase: str
    error_count: int
    start_lsn: str
    current_lsn: str
    end_lsn: str | None
    tran_count: int
    last_commit_lsn: str
    last_commit_time: datetime | None
    log_record_count: int
    schema_change_count: int
    command_count: int
    first_begin_cdc_lsn: str
    last_commit_cdc_lsn: str
    last_commit_cdc_time: datetime | None
    latency: int
    empty_scan_count: int
    failed_sessions_count: int

    @classmethod
    def begun(
        cls, session_id: int, start_time: datetime, scan_phase: str, start_lsn: str, no_lsn: str
    ) -> ScanSession:
        """A session that has counted nothing yet; ``no_lsn`` stands where it has met none."""
        return cls(
            session_id=session_id,
            start_time=start_time,
            end_time=None,
            duration=0,
            scan_phase=scan_phase,
            error_count=0,
            start_lsn=start_lsn,
            current_lsn=start_lsn,
            end_lsn=None,
            tran_count=0,
            last_commit_lsn=no_lsn,
            last_commit_time=None,
            log_record_count=0,
            schema_change_count=0,
            command_count=0,
            first_begin_cdc_lsn=no_lsn,
            last_commit_cdc_lsn=no_lsn,
            last_commit_cdc_time=None,
            latency=0,
            empty_scan_count=0,
            failed_sessions_count=0,
        )

    def numbered(self, session_id: int) -> ScanSession:
        """The same session under this id."""
        return replace(self, session_id=session_id)

    def continuing(self, empty: ScanSession) -> ScanSession:
        """An empty scan as it goes on in the row of the one before, whose records it adds its own to."""
        is_first = self.last_commit_time is None
        return replace(
            self,
            session_id=empty.session_id,
            start_time=empty.start_time,
            start_lsn=empty.start_lsn,
            log_record_count=empty.log_record_count + self.log_record_count,
            last_commit_lsn=empty.last_commit_lsn if is_first else self.last_commit_lsn,
            last_commit_time=empty.last_commit_time if is_first else self.last_commit_time,
            empty_scan_count=empty.empty_scan_count,
        )


@dataclass(frozen=True, slots=True)
class ScanPause:
    """A time in which no scan read the log, UTC: what was committed in it was captured after it."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class ScanPauses:
    """Pauses that are over, oldest first. Before ``known_since`` nothing is known; None: at all."""

    known_since: datetime | None = None
    pauses: tuple[ScanPause, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanError:
    """A row of sys.dm_cdc_errors; LSN texts as in ScanSession."""

    session_id: int
    phase_number: int
    entry_time: datetime
    error_number: int
    error_severity: int
    error_state: int
    error_message: str
    start_lsn: str
    begin_lsn: str
    sequence_value: str
