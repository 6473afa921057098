"""Which rows of sys.dm_cdc_log_scan_sessions a scan's sessions get, and when they are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import Event, RLock, Thread

import structlog

from engine.capture.session_recorder import SessionRecorder
from engine.control.leases import Lease
from engine.control.sessions import SessionRepository
from engine.errors import ControlUnreachable, LeaseLost
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanSession

_log = structlog.get_logger(__name__)

SHOW_EVERY = 0.5
"""Seconds after which a session that still runs is shown with its phase, and how often from then on.

Most sessions are shorter: they cost one write, that of their publication.
"""


class SessionRows:
    """Numbers the sessions of one `Scan` and shows one that takes long while it runs.

    Sessions that captured nothing share a row, which counts them; any other, and one that fails, has its own.
    """

    def __init__(
        self,
        sessions: SessionRepository,
        lease: Lease,
        engine_start: datetime,
        show_every: float = SHOW_EVERY,
    ) -> None:
        self._sessions = sessions
        self._lease = lease
        self._engine_start = engine_start
        self._show_every = show_every
        self._number = 0
        self._empty: ScanSession | None = None
        self._empty_scans = 0
        self._took_up = False
        self._writing = RLock()
        self._shown: ScanSession | None = None
        self._over = Event()

    @contextmanager
    def running(self, recorder: SessionRecorder) -> Iterator[None]:
        """Shows the session, should it take long."""
        self._take_up()
        self._number, self._shown, self._over = 0, None, Event()
        name = f"{self._lease.database} session"
        thread = Thread(target=self._show, args=(recorder, self._over), name=name, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Within, nobody else writes the row: what was so a moment ago must not follow what is so now."""
        with self._writing:
            yield

    def number(self, recorder: SessionRecorder) -> None:
        """The session has a row of its own from now on."""
        with self._writing:
            if recorder.session.session_id:
                return
            if self._empty is not None and self._shown is not None:
                self._save(self._empty)  # it was shown in that row until it met something
            recorder.number(self._number or self._begin())
            self._empty, self._empty_scans = None, 0

    def finish(self, recorder: SessionRecorder, now: datetime, end: Lsn) -> None:
        """The session ended at ``end``: in its own row, or as one more empty scan."""
        with self._writing:
            if recorder.productive:
                self.number(recorder)
                recorder.finish(now, end)
                return
            if self._empty is None:
                recorder.number(self._number or self._begin())
            else:
                recorder.resume(self._empty)
            self._empty_scans += 1
            recorder.empty(now, end, self._empty_scans)
            self._empty = recorder.session

    def skip(self) -> bool:
        """Counts an empty scan that is not worth a write; False where its row was shown and must be ended."""
        with self._writing:
            if self._shown is not None:
                return False
            self._over.set()
            self._empty_scans += 1
            return True

    def fail(self, recorder: SessionRecorder, now: datetime) -> None:
        """The session ended with an error; its row says so."""
        with self._writing:
            self.number(recorder)
            recorder.fail(now)
            self._save(recorder.session)

    def _take_up(self) -> None:
        """Goes on counting in the row of the newest session of this run, if that was an empty scan.

        Jobs that drain once and scripts that call sp_cdc_scan open a `Scan` for each of their sessions.
        """
        if self._took_up:
            return
        newest = self._sessions.list(self._lease.database, 1, self._engine_start)
        if newest and newest[0].empty_scan_count and newest[0].end_time is not None:
            [self._empty] = newest
            self._empty_scans = newest[0].empty_scan_count
        self._took_up = True

    # While it runs

    def _show(self, recorder: SessionRecorder, over: Event) -> None:
        while not over.wait(self._show_every):
            with self._writing:
                session = recorder.session
                if over.is_set() or session.end_time is not None or session == self._shown:
                    continue
                try:
                    self._save(self._placed(session))
                    self._shown = session
                except ControlUnreachable:
                    _log.warning("session not shown", database=self._lease.database)
                except LeaseLost:
                    return  # the scan will hear of it when it publishes

    def _placed(self, session: ScanSession) -> ScanSession:
        """Under the number that it has, or will have if it ends as it stands."""
        if session.session_id:
            return session
        if self._empty is not None:
            return session.continuing(self._empty)
        self._number = self._number or self._begin()
        return session.numbered(self._number)

    def _begin(self) -> int:
        return self._sessions.begin(self._lease.database, self._engine_start, self._lease.token)

    def _save(self, session: ScanSession) -> None:
        self._sessions.save(self._lease.database, session, self._lease.token)
