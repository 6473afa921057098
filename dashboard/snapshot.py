"""What every page shows at a glance: one immutable picture for each tick, shared by all viewers.

It comes from the control database (and one short look at each source's slot), never from Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import structlog

from dashboard.sessions import longest_rest
from engine.engine import Engine
from engine.errors import CdcError, ControlUnreachable
from engine.model.alert import AlertThresholds
from engine.model.capture_instance import CaptureInstance
from engine.model.client import Client
from engine.model.dashboard import DashboardSettings
from engine.model.job import AnyJob, CleanupJob, Job, JobRun, JobType, is_capture, is_cleanup
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanError, ScanPauses, ScanSession
from engine.model.source_database import SourceDatabase
from engine.model.watermark import Watermarks
from engine.monitoring.status import DatabaseStatus, EngineStatus
from engine.sources.base import SlotState

_log = structlog.get_logger(__name__)

TICK = 2.0
"""Seconds between two snapshots."""

ATTENTION = timedelta(seconds=40)
"""How long after the last look snapshots go on (longer than the slowest refresh interval)."""

RUNS = 100
"""Newest runs of the capture job: they tell the ceilings of charts."""

SESSIONS = 200
"""Newest sessions of the present agent run that a page lists."""

HISTORY = timedelta(hours=24)
"""How far back sessions are kept for charts."""

PAUSES = timedelta(days=30)
"""How far back pauses of capture are asked for: sessions are kept no longer."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class DatabaseView:
    """One database. ``sessions``: of the current agent run, with session 0; ``history``: across runs.

    Both have what `SnapshotFeed.look_at` read, and so have ``commit_times``, of low watermarks and of what
    clients acknowledged, ``capture_runs``, the newest first, and ``pauses``; a database that nobody looks at
    has none. ``history`` is in order of time and without session 0.
    """

    database: SourceDatabase
    watermarks: Watermarks
    instances: tuple[CaptureInstance, ...]
    jobs: tuple[AnyJob, ...]
    errors: tuple[ScanError, ...]
    slot: SlotState | None
    clients: tuple[Client, ...] = ()
    sessions: tuple[ScanSession, ...] = ()
    history: tuple[ScanSession, ...] = ()
    has_sessions: bool = False
    commit_times: Mapping[Lsn, datetime] = field(default_factory=dict)
    capture_runs: tuple[JobRun, ...] = ()
    pauses: ScanPauses = field(default_factory=ScanPauses)

    @property
    def name(self) -> str:
        """The database's name."""
        return self.database.name

    @property
    def capture_job(self) -> Job | None:
        """The capture job, once a first table is enabled."""
        return next((job for job in self.jobs if is_capture(job)), None)

    @property
    def cleanup_job(self) -> CleanupJob | None:
        """The cleanup job, likewise."""
        return next((job for job in self.jobs if is_cleanup(job)), None)

    def low_time(self, instance: CaptureInstance) -> datetime | None:
        """When the low watermark of an instance was committed, when it was enabled until that is known; None
        where it has none.
        """
        if instance.start_lsn is None:
            return None
        return self.commit_times.get(instance.start_lsn, instance.create_date)

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
    settings: DashboardSettings = field(default_factory=DashboardSettings)
    thresholds: AlertThresholds | None = None

    def database(self, name: str | None) -> DatabaseView | None:
        """The view of that database; the first one for an unknown name."""
        known = next((view for view in self.databases if view.name == name), None)
        return known or next(iter(self.databases), None)


@dataclass(slots=True)
class _Sessions:
    """Session history of one database, read on from where it ended."""

    rows: dict[tuple[datetime, int], ScanSession] = field(default_factory=dict)
    history: tuple[ScanSession, ...] = ()

    def read_on(self, engine: Engine, database: str, now: datetime) -> tuple[ScanSession, ...]:
        """The history in order; the same object as before where nothing has changed."""
        since = max((self.history[-1].start_time if self.history else now - HISTORY), now - HISTORY)
        read = {
            (session.start_time, session.session_id): session
            for session in engine.session_history(database, since)
            if session.session_id
        }
        is_new = any(self.rows.get(key) != session for key, session in read.items())
        if is_new or (self.history and self.history[0].start_time < now - HISTORY):
            kept = (self.rows | read).items()
            self.rows = {key: session for key, session in sorted(kept, key=_key) if key[0] >= now - HISTORY}
            self.history = tuple(self.rows.values())
        return self.history


class _CommitTimes:
    """When the low watermarks of one database, and what its clients acknowledged, were committed.

    Each is looked up once. One that lies between two commits has the time of the earlier.
    """

    def __init__(self) -> None:
        self._known: dict[Lsn, datetime | None] = {}

    def of(self, engine: Engine, view: DatabaseView) -> Mapping[Lsn, datetime]:
        """By LSN, those that have a row. Where the lake can't be read now, those that are known."""
        asked = {each.start_lsn for each in view.instances} | {each.acknowledged_lsn for each in view.clients}
        lsns = {lsn for lsn in asked if lsn is not None}
        new = lsns - self._known.keys()
        if new and view.watermarks.high is not None:
            try:
                found = engine.map_lsns_to_times(view.name, new, rounded=True)
            except (CdcError, OSError) as error:
                _log.warning("commit_times_not_read", database=view.name, error=repr(error))
            else:
                self._known = {lsn: found.get(lsn, self._known.get(lsn)) for lsn in lsns}
        return {lsn: time for lsn, time in self._known.items() if time is not None}


class _Pauses:
    """When no scan read the log of one database, read on from where it was known."""

    def __init__(self) -> None:
        self._known = ScanPauses()
        self._read_at: datetime | None = None
        self._seen: tuple[ScanSession | None, datetime | None] | None = None

    def read_on(
        self, engine: Engine, view: DatabaseView, newest: ScanSession | None, now: datetime
    ) -> ScanPauses:
        """All that are known; asked for again where a scan has ended since, or the job changed its state."""
        job = view.capture_job
        seen = (newest, None if job is None else job.since)
        if seen == self._seen:
            return self._known
        rest = longest_rest(0 if job is None else job.configured.pollinginterval)
        since = now - PAUSES if self._read_at is None else self._read_at - _OVERLAP
        found = engine.scan_pauses(view.name, since, rest)
        kept = {pause.start: pause for pause in (*self._known.pauses, *found.pauses)}
        pauses = tuple(kept[start] for start in sorted(kept) if start >= now - PAUSES)
        self._known = ScanPauses(self._known.known_since or found.known_since, pauses)
        self._read_at, self._seen = now, seen
        return self._known


_OVERLAP = timedelta(hours=1)
"""Of what was read before, what is read again: a session or a run may be written after its time."""


def _key(row: tuple[tuple[datetime, int], ScanSession]) -> tuple[datetime, int]:
    return row[0]


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
        self._commit_times: dict[str, _CommitTimes] = {}
        self._pauses: dict[str, _Pauses] = {}
        self._looked_at: dict[str, datetime] = {}
        self._reading = threading.Lock()
        self._swapping = threading.Lock()
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

    def look_at(self, database: str | None) -> DatabaseView | None:
        """A database in the newest snapshot, the first one for an unknown name, with its sessions.

        Those are as many as there were scans in a day, so that a snapshot has them of databases alone that
        somebody has looked at a moment ago.
        """
        view = self.current().database(database)
        if view is None or not view.database.is_cdc_enabled:
            return view
        self._looked_at[view.name] = self._clock()
        if view.has_sessions:
            return view
        try:
            whole = self._with_sessions(self._connect(), view, self._clock())
        except ControlUnreachable:
            return view  # the next snapshot says so
        with self._swapping:
            newest = self._snapshot
            if newest is not None:
                views = tuple(whole if each is view else each for each in newest.databases)
                self._snapshot = replace(newest, databases=views)
        return whole

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
                taken = self._take()
            except Exception as error:  # noqa: BLE001 - shown as a banner over the last good picture
                _log.warning("snapshot_failed", error=repr(error))
                taken = self._failed(error)
            with self._swapping:
                self._snapshot = taken
            return taken

    def _failed(self, error: Exception) -> Snapshot:
        last = self._snapshot
        if last is None:
            return Snapshot(self._clock(), None, (), error)
        return replace(last, failure=error)

    def _take(self) -> Snapshot:
        engine = self._connect()
        status = engine.status()
        views = tuple(self._view(engine, database, status.taken) for database in status.databases)
        settings, thresholds = engine.dashboard_settings(), engine.alert_thresholds()
        return Snapshot(status.taken, status, views, settings=settings, thresholds=thresholds)

    def _view(self, engine: Engine, status: DatabaseStatus, now: datetime) -> DatabaseView:
        facts = status.facts
        if not facts.database.is_cdc_enabled:
            return DatabaseView(facts.database, facts.watermarks, (), (), (), None)
        view = DatabaseView(
            database=facts.database,
            watermarks=facts.watermarks,
            instances=tuple(facts.instances),
            jobs=status.jobs,
            errors=tuple(facts.errors),
            slot=facts.slot,
            clients=tuple(facts.clients),
        )
        looked_at = self._looked_at.get(view.name)
        if looked_at is None or self._clock() - looked_at >= ATTENTION:
            return view
        return self._with_sessions(engine, view, now)

    def _with_sessions(self, engine: Engine, view: DatabaseView, now: datetime) -> DatabaseView:
        with self._reading:
            kept = self._sessions.setdefault(view.name, _Sessions())
            history = kept.read_on(engine, view.name, now)
            sessions = tuple(engine.scan_sessions(view.name, limit=SESSIONS))
            times = self._commit_times.setdefault(view.name, _CommitTimes()).of(engine, view)
            runs = tuple(_runs(engine, view.name))
            newest = history[-1] if history else None
            pauses = self._pauses.setdefault(view.name, _Pauses()).read_on(engine, view, newest, now)
        return replace(
            view,
            sessions=sessions,
            history=history,
            has_sessions=True,
            commit_times=times,
            capture_runs=runs,
            pauses=pauses,
        )


def _runs(engine: Engine, database: str) -> Sequence[JobRun]:
    """None of a database that was disabled a moment ago."""
    try:
        return engine.job_history(database, JobType.CAPTURE, RUNS)
    except ControlUnreachable:
        raise
    except CdcError:
        return ()
