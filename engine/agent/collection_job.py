"""The data collector's thread: collects the sets whose time has come, then keeps what there is in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

import structlog

from engine.agent.job_thread import JobThread
from engine.collector.collection import Collection
from engine.collector.schedules import interval_seconds
from engine.control.collection_runs import CollectorLock
from engine.control.database import ControlDatabase
from engine.errors import CdcError, ControlUnreachable
from engine.model.collection import CollectionSet
from engine.model.schedule import ScheduleUnreadable, next_run

_log = structlog.get_logger(__name__)


class CollectionRunner(JobThread):
    """Runs once, beside capture and cleanup, where no other agent collects."""

    def __init__(
        self,
        due: Sequence[CollectionSet],
        control: ControlDatabase,
        collection: Collection,
        clock: Callable[[], datetime],
        zone: tzinfo,
        agent_start: datetime,
    ) -> None:
        super().__init__("data collector")
        self._due = due
        self._control = control
        self._collection = collection
        self._clock = clock
        self._zone = zone
        self._agent_start = agent_start

    def stop(self) -> None:
        """Asks it to end after the set, or the table, that it is at."""
        self._stop.set()

    def _run(self) -> None:
        try:
            with self._control.collection_runs.alone() as lock:
                if lock is not None:
                    self._run_alone(lock)
        except ControlUnreachable as error:
            # A run that has not said how it ended, the next holder of the lock says in its place.
            _log.warning("data collector given up", error=str(error))
        except Exception:  # noqa: BLE001 - the supervisor's edge: the run ends, the agent does not
            _log.exception("data collector died")

    def _run_alone(self, lock: CollectorLock) -> None:
        self._control.collection_runs.end_interrupted()
        for each in self._due:
            if self._stop.is_set():
                return
            self._collect(each, lock)
        self._collection.keep_up(self._clock(), self._stop.is_set)

    def _collect(self, collection_set: CollectionSet, lock: CollectorLock) -> None:
        now, runs = self._clock(), self._control.collection_runs
        following, seconds = self._planned(collection_set, now)
        number = collection_set.collection_set_id
        snapshot = runs.claim(number, now, following, seconds, self._agent_start)
        if snapshot is None:
            return
        try:
            taken = self._collection.take(collection_set, snapshot, now, seconds, lock.check)
        except ControlUnreachable:
            raise
        except CdcError as error:
            self._failed(collection_set, snapshot, error.line())
        except Exception as error:  # noqa: BLE001 - the same edge: the history says how the run ended
            _log.exception("collection died", collection_set=collection_set.name)
            self._failed(collection_set, snapshot, f"{type(error).__name__}: {error}")
        else:
            runs.succeed(snapshot, self._clock(), taken.rows, taken.positions)

    def _failed(self, collection_set: CollectionSet, snapshot: int, message: str) -> None:
        _log.error("collection failed", collection_set=collection_set.name, error=message)
        self._control.collection_runs.fail(snapshot, self._clock(), message)

    def _planned(self, collection_set: CollectionSet, now: datetime) -> tuple[datetime | None, int | None]:
        """When the set collects next, and how often it does so; None for one without a schedule."""
        if collection_set.schedule is None or not collection_set.is_running:
            return None, None
        try:
            following = next_run(collection_set.schedule, now, self._zone)
            return following, interval_seconds(collection_set.schedule, now, self._zone)
        except ScheduleUnreadable:  # not written by us
            return None, None
