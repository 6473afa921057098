"""What every page shows at a glance: one immutable picture for each tick, shared by all viewers.

It comes from the control database (and one short look at each source's slot), never from Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import structlog

from engine.engine import Engine
from engine.model.capture_instance import CaptureInstance
from engine.model.client import Client
from engine.model.job import AnyJob, Job, is_capture
from engine.model.scan_session import ScanError, ScanSession
from engine.model.source_database import SourceDatabase
from engine.model.watermark import Watermarks
from engine.monitoring.status import DatabaseStatus, EngineStatus
from engine.sources.base import SlotState

_log = structlog.get_logger(__name__)

TICK = 2.0
"""Seconds between two snapshots."""

ATTENTION = timedelta(seconds=40)
"""How long after the last look snapshots go on (longer than the slowest refresh interval)."""

SESSIONS = 200
"""Newest sessions of the present agent run that a page lists."""

HISTORY = timedelta(hours=24)
"""How far back sessions are kept for charts."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class DatabaseView:
    """One database. ``sessions``: of the current agent run, with session 0; ``history``: across runs."""

    database: SourceDatabase
    watermarks: Watermarks
    instances: tuple[CaptureInstance, ...]
    jobs: tuple[AnyJob, ...]
    sessions: tuple[ScanSession, ...]
    history: tuple[ScanSession, ...]
    errors: tuple[ScanError, ...]
    slot: SlotState | None
    clients: tuple[Client, ...] = ()

    @property
    def name(self) -> str:
        """The database's name."""
        return self.database.name

    @property
    def capture_job(self) -> Job | None:
        """The capture job, once a first table is enabled."""
        return next((job for job in self.jobs if is_capture(job)), None)

    def instance(self, capture_instance: str | None) -> CaptureInstance | None:
        """The instance of that name."""
        return next((i for i in self.instances if i.capture_instance == capture_instance), None)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The picture taken at ``taken``; ``failure`` says why no newer one could be taken."""

    taken: datetime
    status: EngineStatus | None
    databases: tuple[DatabaseView, ...] = ()
    failure: Exception | None = None

    def database(self, name: str | None) -> DatabaseView | None:
        """The view of that database; the first one for an unknown name."""
        known = next((view for view in self.databases if view.name == name), None)
        return known or next(iter(self.databases), None)


@dataclass(slots=True)
class _Sessions:
    """Session history of one database, read on from where it ended."""

    rows: dict[tuple[datetime, int], ScanSession] = field(default_factory=dict)

    def read_on(self, engine: Engine, database: str, now: datetime) -> tuple[ScanSession, ...]:
        since = max((start for start, _ in self.rows), default=now - HISTORY)
        for session in engine.session_history(database, since):
            if session.session_id:
                self.rows[session.start_time, session.session_id] = session
        for key in [key for key in self.rows if key[0] < now - HISTORY]:
            del self.rows[key]
        return tuple(self.rows.values())


class SnapshotFeed:
    """Takes a snapshot each tick while somebody looks; nobody waits but for the very first."""

    def __init__(self, engine: Callable[[], Engine], clock: Callable[[], datetime] = _utc_now) -> None:
        self._connect = engine
        self._clock = clock
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._asked = clock()
        self._ticker: threading.Thread | None = None
        self._sessions: dict[str, _Sessions] = {}
        self._closed = threading.Event()

    def current(self) -> Snapshot:
        """The newest snapshot at hand; a new one when nobody has looked for a while."""
        before, self._asked = self._asked, self._clock()
        snapshot = self._snapshot
        if snapshot is None or self._asked - before >= ATTENTION:
            snapshot = self.refresh()
        if self._ticker is None or not self._ticker.is_alive():
            self._ticker = threading.Thread(target=self._tick, name="snapshots", daemon=True)
            self._ticker.start()
        return snapshot

    def _tick(self) -> None:
        while not self._closed.wait(TICK) and self._clock() - self._asked < ATTENTION:
            self.refresh()

    def close(self) -> None:
        """No more snapshots by themselves; returns when the last has been taken."""
        self._closed.set()
        if self._ticker is not None:
            self._ticker.join()

    def refresh(self) -> Snapshot:
        """Takes a snapshot now: after an action, or because someone asked."""
        with self._lock:
            try:
                self._snapshot = self._take()
            except Exception as error:  # noqa: BLE001 - shown as a banner over the last good picture
                _log.warning("snapshot_failed", error=repr(error))
                self._snapshot = self._failed(error)
            return self._snapshot

    def _failed(self, error: Exception) -> Snapshot:
        last = self._snapshot
        if last is None:
            return Snapshot(self._clock(), None, (), error)
        return Snapshot(last.taken, last.status, last.databases, error)

    def _take(self) -> Snapshot:
        engine = self._connect()
        status = engine.status()
        views = tuple(self._view(engine, database, status.taken) for database in status.databases)
        return Snapshot(status.taken, status, views)

    def _view(self, engine: Engine, status: DatabaseStatus, now: datetime) -> DatabaseView:
        facts, name = status.facts, status.name
        if not facts.database.is_cdc_enabled:
            return DatabaseView(facts.database, facts.watermarks, (), (), (), (), (), None)
        return DatabaseView(
            database=facts.database,
            watermarks=facts.watermarks,
            instances=tuple(facts.instances),
            jobs=status.jobs,
            sessions=tuple(engine.scan_sessions(name, limit=SESSIONS)),
            history=self._sessions.setdefault(name, _Sessions()).read_on(engine, name, now),
            errors=tuple(facts.errors),
            slot=facts.slot,
            clients=tuple(facts.clients),
        )
