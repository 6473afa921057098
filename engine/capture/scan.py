"""One log scan: read, append, publish, confirm (sys.sp_cdc_scan; ARCHITECTURE.md, One scan cycle)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import structlog

from engine.capture.alterations import sections, with_derived
from engine.capture.change_rows import ChangeRows, change_rows
from engine.capture.crash_points import CrashPoint, CrashPoints
from engine.capture.instances import CapturedInstances
from engine.capture.session_recorder import SessionRecorder
from engine.capture.session_rows import SessionRows
from engine.capture.time_mapping import dummy_row, mapping_rows
from engine.control.database import ControlDatabase
from engine.control.leases import Lease
from engine.control.publication import Publication
from engine.errors import CapturedColumnChanged, CdcError, ChangesNotWritten, LeaseLost, LogBroken
from engine.lake.conversions import ColumnNotConverted
from engine.lake.failures import LakeFailed, jvm_failures
from engine.lake.publisher import Append, Publisher
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA, Lake, change_table_schema
from engine.model.capture_instance import CaptureInstance
from engine.model.change import LEADING_COLUMNS
from engine.model.job import CaptureParameters
from engine.model.lsn import Lsn
from engine.model.scan_report import ScanReport, Told, tell_nobody
from engine.model.scan_session import ScanError, ScanPhase, ScanSession
from engine.sources.base import LogIdentity, LogPiece, LogSource, LogTransaction, LogTransactions, ReadLimit

_log = structlog.get_logger(__name__)

IDLE_PUBLICATION = timedelta(seconds=5)
"""How often an idle scan writes down how far it looked, where nobody waits for it.

The control database may be in the very server that is scanned: without a pause each look would
write into the log that the next one reads.
"""

CONFIRMATION = timedelta(seconds=1)
"""How often, between the cycles of one session, the source hears what it may truncate; it does at its end.

To move a slot on takes PostgreSQL as long as a small cycle is written: it decodes the way there.
"""


@dataclass(frozen=True, slots=True)
class _Met:
    """Whether a transaction had change rows, and enabled or disabled an instance."""

    rows: bool = False
    events: bool = False


@dataclass
class _Cycle:
    """What one cycle has appended and not yet published."""

    whole: LogTransaction | None = None
    """The last transaction that ended."""
    mapped: LogTransaction | None = None
    """The last one with a row of cdc.lsn_time_mapping."""


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """Settings of a scan: bytes of the log in memory, seconds of silence until a dummy mapping row."""

    piece_bytes: int
    idle_tick_seconds: int


class Scan:
    """The log scans of one database, by the one process that holds its lease. Not thread-safe.

    Whatever is cut short, the next `run` goes on from what was published last.
    """

    def __init__(
        self,
        database: str,
        source: LogSource,
        publisher: Publisher,
        lake: Lake,
        control: ControlDatabase,
        lease: Lease,
        engine_start: datetime,
        clock: Callable[[], datetime],
        limits: ScanLimits,
        crash: CrashPoints,
        committed: Callable[[str], None] = lambda path: None,
        told: Told = tell_nobody,
    ) -> None:
        """``committed`` is told the path of each table that got a commit, ``told`` of sessions that ended."""
        self._database = database
        self._source = source
        self._publisher = publisher
        self._lake = lake
        self._control = control
        self._lease = lease
        self._clock = clock
        self._limits = limits
        self._crash = crash
        self._committed = committed
        self._told_of = told
        self._looked_at: Lsn | None = None
        self._published_at: datetime | None = None
        self._confirmed_at: datetime | None = None
        self._identity: LogIdentity | None = None
        self._told = True
        self._instances = CapturedInstances(())
        self._rows = SessionRows(control.sessions, lease, engine_start)
        self._open = _Met()

    def run(
        self, parameters: CaptureParameters, stop: Callable[[], bool], woken: bool = False
    ) -> ScanSession | None:
        """One session: up to ``maxscans`` cycles of at most ``maxtrans``, until the log is drained.

        stop: asked after each cycle. woken: somebody waits to learn that the log was looked at.
        Returns the session's row; None when an empty scan was not worth writing down. Raises the
        CdcError that ended it, after recording it; LeaseLost when another process captures now.
        """
        recorder = SessionRecorder(self._clock)
        with self._rows.running(recorder):
            return self._run(recorder, parameters, stop, woken)

    def _run(
        self, recorder: SessionRecorder, parameters: CaptureParameters, stop: Callable[[], bool], woken: bool
    ) -> ScanSession | None:
        try:
            with jvm_failures(), self._fenced():
                self._prepare()
                recorder.begin_at(self._checkpoint)
                session = self._session(recorder, parameters, stop, woken)
        except LeaseLost:
            # The rows of this database are another's to write now, errors included.
            self._identity = self._looked_at = None
            raise
        except (CdcError, OSError) as error:
            told = None if isinstance(error, LakeFailed | OSError) else error
            failure = told or ChangesNotWritten(_cause(error))
            self._identity = self._looked_at = None
            self._record_failure(failure, recorder)
            if failure is error:
                raise
            raise failure from error
        if recorder.productive:
            self._told_of(self._report(recorder))
        return session

    @contextmanager
    def _fenced(self) -> Iterator[None]:
        """A slot that another agent has moved on is no broken log to who slept. Raises LeaseLost then."""
        try:
            yield
        except LogBroken:
            self._check_lease()
            raise

    def _report(self, recorder: SessionRecorder, error: CdcError | None = None) -> ScanReport:
        number = None if error is None else error.number
        left_out = recorder.phases_left_out
        return ScanReport(self._database, recorder.session, recorder.phases, left_out, number)

    def has_work(self) -> bool:
        """Whether a scan could find anything: cheap enough to ask ten times a second.

        A look that finds the log's end where it was is not counted as an empty scan.
        """
        if self._looked_at is None or self._source.has_grown(self._looked_at):
            return True
        last = self._last_commit_time
        return last is not None and self._clock() - last >= timedelta(seconds=self._limits.idle_tick_seconds)

    # A session

    def _prepare(self) -> None:
        """Continuity, then what the control database says now: others enable and disable meanwhile."""
        if self._identity is None:
            self._check_continuity()
            self._publisher.forget(self._lake.folders(self._database)[0])
            self._publisher.create(self._lake.lsn_time_mapping(self._database), LSN_TIME_MAPPING_SCHEMA)
        self._told = self._source.tells_ddl()
        marks = self._control.watermarks.get(self._database)
        self._checkpoint, self._scanned, self._high = marks.checkpoint, marks.scanned, marks.high
        self._last_commit_time = marks.last_commit_time
        dropped = self._control.instances.dropped(self._database)
        self._instances = CapturedInstances(
            self._control.instances.list(self._database), {table.object_id for table in dropped}
        )

    def _check_continuity(self) -> None:
        """The log must be the one that was read so far. Raises LogBroken."""
        identity = self._source.identity()
        known = self._control.watermarks.identity(self._database)
        if known is not None and known != identity:
            raise LogBroken(self._database, f"the log is {identity}, but {known} was read before")
        marks = self._control.watermarks.get(self._database)
        if marks.scanned is not None:
            self._source.check_goes_on(marks.checkpoint, marks.scanned)
        self._identity = identity

    def _session(
        self, recorder: SessionRecorder, parameters: CaptureParameters, stop: Callable[[], bool], woken: bool
    ) -> ScanSession | None:
        for number in range(1, parameters.maxscans + 1):
            end = self._source.log_end()
            recorder.enter(ScanPhase.FIRST_SCAN)
            cycle = self._read_and_append(recorder, end, parameters.maxtrans)
            drained = self._source.exhausted
            self._looked_at = end if drained else None
            if not recorder.met_records and drained:
                return self._empty_scan(recorder, end, woken)
            recorder.enter(ScanPhase.LAST_SCAN)
            last = drained or number == parameters.maxscans or stop()
            if last:
                self._rows.finish(recorder, self._clock(), end if drained else self._reached(cycle))
            elif recorder.productive:
                self._rows.number(recorder)
            self._publish(cycle, recorder, end if drained else None)
            if last or self._is_due(self._confirmed_at, CONFIRMATION):
                self._confirm(end if drained else self._checkpoint)
            if last:
                break
        return recorder.session

    def _read_and_append(self, recorder: SessionRecorder, end: Lsn, maxtrans: int) -> _Cycle:
        cycle = _Cycle()
        self._open = _Met()
        limit = ReadLimit(maxtrans, self._limits.piece_bytes)
        for piece in self._source.read(self._checkpoint or Lsn.ZERO, end, limit):
            self._crash.reach(CrashPoint.AFTER_READING)
            recorder.read(piece.transactions, piece.record_count)
            self._append(piece, cycle, recorder)
        return cycle

    def _append(self, piece: LogPiece, cycle: _Cycle, recorder: SessionRecorder) -> None:
        known = [captured.instance for captured in self._instances.captured]
        for section in sections(with_derived(piece, known, self._source.column_ids, self._told)):
            self._append_section(section, cycle, recorder)

    def _append_section(self, piece: LogPiece, cycle: _Cycle, recorder: SessionRecorder) -> None:
        recorder.enter(ScanPhase.SCHEMA_VERSIONING if piece.events else ScanPhase.SECOND_SCAN)
        taken = self._instances.take(piece)
        for before, after in taken.altered:
            self._alter_instance(before, after)
        for instance in taken.begun:
            self._begin_instance(instance.capture_instance, change_table_schema(instance))
        recorder.schema_changes(len(piece.events))
        recorder.enter(ScanPhase.BUILDING_ROWS)
        rows = {
            captured.instance.capture_instance: built
            for captured in self._instances.captured
            if (built := change_rows(piece, captured)) is not None
        }
        mapped, cdc = self._whole_with_rows(piece, list(rows.values()), cycle)
        recorder.enter(ScanPhase.WRITING_ROWS)
        self._write(rows, mapping_rows(mapped))
        recorder.captured(cdc, sum(built.command_count for built in rows.values()))

    def _begin_instance(self, capture_instance: str, schema: object) -> None:
        """An empty change table, whatever a namesake or a scan that died left there."""
        path = self._lake.change_table(self._database, capture_instance)
        self._check_lease()
        self._publisher.drop(path)
        self._publisher.create(path, schema)
        _log.info("capture instance recognised", database=self._database, capture_instance=capture_instance)

    def _check_lease(self) -> None:
        """Appends and publications are fenced, a drop is not: who slept may not do it. Raises LeaseLost."""
        if not self._control.leases.renew(self._lease):
            raise LeaseLost(self._database, self._lease.token)

    def _alter_instance(self, before: CaptureInstance, after: CaptureInstance) -> None:
        """A change table follows the types of its captured columns: its rows so far are converted."""
        path = self._lake.change_table(self._database, after.capture_instance)
        name = after.capture_instance
        _log.info("captured table altered", database=self._database, capture_instance=name)
        schema = change_table_schema(after)
        if change_table_schema(before) == schema:
            return
        try:
            self._publisher.alter(path, schema)
        except ColumnNotConverted as error:
            place = schema.names.index(error.column) - len(LEADING_COLUMNS)
            old, new = before.columns[place], after.columns[place]
            raise CapturedColumnChanged(
                old.column_name, name, old.column_type, new.column_type, str(error)
            ) from error

    def _whole_with_rows(
        self, piece: LogPiece, rows: Sequence[ChangeRows], cycle: _Cycle
    ) -> tuple[LogTransactions, LogTransactions]:
        """Transactions that end in this piece: those to be mapped, and those with change rows.

        One that goes on in the next piece is remembered, not returned: its mapping row comes with its end.
        """
        transactions = LogTransactions.of(piece.transactions)
        with_rows = np.zeros(len(transactions), bool)
        for part in rows:
            with_rows[np.searchsorted(transactions.commit, np.unique(part.commits))] = True
        with_events = np.zeros(len(transactions), bool)
        with_events[[event.transaction for event in piece.events]] = True
        with_rows[:1] |= self._open.rows
        with_events[:1] |= self._open.events
        self._open = _Met(bool(with_rows[-1]), bool(with_events[-1])) if piece.open_tail else _Met()
        whole = slice(0, len(transactions) - piece.open_tail)
        ended = transactions[whole]
        mapped = ended.where((with_rows | with_events)[whole])
        if ended:
            cycle.whole = ended[-1]
        if mapped:
            cycle.mapped = mapped[-1]
        return mapped, ended.where(with_rows[whole])

    def _write(self, rows: dict[str, ChangeRows], mapping: ChangeRows | None) -> None:
        appends = [
            Append(self._lake.change_table(self._database, name), built.rows, built.commits, built.commands)
            for name, built in rows.items()
        ]
        if mapping is not None:
            path = self._lake.lsn_time_mapping(self._database)
            appends.append(Append(path, mapping.rows, mapping.commits, mapping.commands))
        if appends:
            self._publisher.append(
                appends, lambda: self._crash.reach(CrashPoint.BETWEEN_CHANGE_TABLE_COMMITS)
            )
            for append in appends:
                self._committed(append.path)

    # Publication

    def _reached(self, cycle: _Cycle) -> Lsn:
        return cycle.whole.commit_lsn if cycle.whole else self._checkpoint or Lsn.ZERO

    def _publish(self, cycle: _Cycle, recorder: SessionRecorder, drained_to: Lsn | None) -> None:
        """Readers see everything appended so far, in one step."""
        if cycle.whole:
            self._checkpoint = cycle.whole.commit_lsn
        if cycle.mapped:
            self._high = cycle.mapped.commit_lsn
            self._last_commit_time = cycle.mapped.commit_time
        scanned = drained_to or self._checkpoint
        if scanned is not None and (self._scanned is None or scanned > self._scanned):
            self._scanned = scanned
        for name in self._instances.ended.values():
            if not self._instances.is_live(name):
                self._check_lease()
                self._publisher.drop(self._lake.change_table(self._database, name))
        self._crash.reach(CrashPoint.BEFORE_PUBLISHING)
        self._send(recorder.session)
        self._crash.reach(CrashPoint.AFTER_PUBLISHING)

    def _send(self, session: ScanSession) -> None:
        assert self._identity is not None
        assert self._scanned is not None
        with self._rows.writing():
            self._control.publish(self._publication(session, self._identity))
        self._instances.published()
        self._published_at = self._clock()

    def _publication(self, session: ScanSession, identity: LogIdentity) -> Publication:
        return Publication(
            database=self._database,
            token=self._lease.token,
            high=self._high,
            checkpoint=self._checkpoint,
            scanned=self._scanned,
            last_commit_time=self._last_commit_time,
            recognised=self._instances.recognised,
            ended=tuple(self._instances.ended),
            altered=self._instances.altered,
            ddl=self._instances.ddl,
            identity=identity,
            session=session if session.session_id else None,
        )

    def _confirm(self, upto: Lsn | None) -> None:
        self._crash.reach(CrashPoint.BEFORE_CONFIRMING)
        if upto is not None:
            self._source.confirm(upto)
            self._confirmed_at = self._clock()

    # Nothing to capture

    def _empty_scan(self, recorder: SessionRecorder, end: Lsn, woken: bool) -> ScanSession | None:
        """Notes how far the log was looked at, now and then a dummy mapping row, and counts the scan."""
        # Where nobody waits it is written down now and then; until it is, the source has to keep its log.
        if not woken and not self._is_due(self._published_at, IDLE_PUBLICATION) and self._rows.skip():
            return None
        now = self._clock()
        self._rows.finish(recorder, now, end)
        self._idle_tick(end, now)
        self._scanned = end if self._scanned is None else max(self._scanned, end)
        self._send(recorder.session)
        self._confirm(end)
        return recorder.session

    def _is_due(self, last: datetime | None, pause: timedelta) -> bool:
        """Whether the pause since the last time is over.

        By this process's clock alone, and at once where that was set back: until it caught up with itself the
        source would have to keep its log.
        """
        return last is None or not timedelta(0) <= self._clock() - last < pause

    def _idle_tick(self, end: Lsn, now: datetime) -> None:
        """Keeps max_lsn moving: a dummy row when nothing was captured for a while."""
        silence = timedelta(seconds=self._limits.idle_tick_seconds)
        last = self._last_commit_time
        if self._high is None or last is None or now - last < silence:
            return
        lsn, mapping = dummy_row(end, now)
        self._write({}, mapping)
        self._high, self._last_commit_time = lsn, now

    # Failure

    def _record_failure(self, error: CdcError, recorder: SessionRecorder) -> None:
        """A row in sys.dm_cdc_errors, and the session's row as failed."""
        phase = recorder.phase
        self._rows.fail(recorder, self._clock())
        session = recorder.session
        self._told_of(self._report(recorder, error))
        self._control.errors.add(
            self._database,
            ScanError(
                session_id=session.session_id,
                phase_number=int(phase),
                entry_time=self._clock(),
                error_number=error.number,
                error_severity=error.severity,
                error_state=error.state,
                error_message=str(error),
                start_lsn=session.start_lsn,
                begin_lsn=session.first_begin_cdc_lsn,
                sequence_value=session.current_lsn,
            ),
        )


def _cause(error: Exception) -> str:
    """What went wrong, in one line."""
    return " ".join(str(error).split()) or type(error).__name__
