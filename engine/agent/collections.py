"""Collection sets of the home: collected when their time has come, or when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

import structlog

from engine.agent.collection_job import CollectionRunner
from engine.collector.collection import Collection
from engine.collector.expiry import is_upkeep_due
from engine.collector.schedules import is_due, is_stale
from engine.control.database import ControlDatabase
from engine.model.collection import CollectionSet
from engine.model.schedule import ScheduleUnreadable, next_run

_log = structlog.get_logger(__name__)


class Collections:
    """Runs the data collector in a thread of its own. zone: whose hours schedules mean.

    What was missed because no agent ran is not made up for by more than one snapshot: there is nothing
    in the views of that time that the one does not have.
    """

    def __init__(
        self,
        control: ControlDatabase,
        collection: Collection,
        clock: Callable[[], datetime],
        zone: tzinfo,
        agent_start: datetime,
    ) -> None:
        self._control = control
        self._collection = collection
        self._clock = clock
        self._zone = zone
        self._agent_start = agent_start
        self._running: CollectionRunner | None = None
        self._looked_after: datetime | None = None

    def reconcile(self, sets: Sequence[CollectionSet]) -> bool:
        """Starts the collector where there is something to do; True when something waits for its end."""
        now = self._clock()
        for each in sets:
            self._plan(each, now)
        due = [each for each in sets if each.wanted or (each.is_running and is_due(each.next_run, now))]
        if self._running is not None and not self._running.alive:
            self._running.join()
            self._running = None
        if self._running is not None:
            return bool(due)
        # Once a day, and at the start, also where no set collects: data expires all the same.
        if due or is_upkeep_due(self._looked_after, now):
            self._looked_after = now
            self._running = CollectionRunner(
                due, self._control, self._collection, self._clock, self._zone, self._agent_start
            )
            self._running.start()
        return False

    def stop(self) -> None:
        """Asks a collection to end soon."""
        if self._running is not None:
            self._running.stop()

    def join(self) -> None:
        """Waits for its end."""
        if self._running is not None:
            self._running.join()

    def _plan(self, collection_set: CollectionSet, now: datetime) -> None:
        """Sees to it that a set that runs has a time, and none that a clock was far ahead for."""
        if collection_set.schedule is None or not collection_set.is_running:
            return
        try:
            following = next_run(collection_set.schedule, now, self._zone)
        except ScheduleUnreadable as error:  # not written by us
            _log.error("schedule of a collection set", collection_set=collection_set.name, error=str(error))
            return
        if is_stale(collection_set.next_run, following):
            self._control.collection_sets.plan(collection_set, following)
