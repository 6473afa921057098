"""The data collector's procedures: collection sets, and what they collected (reference/monitoring.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from engine.collector.breaks import SnapshotMark, breaks
from engine.collector.parameters import output_tables, parse_parameters
from engine.collector.ranges import CLOCK_MARGIN, HistoryRange
from engine.collector.schedules import every, schedule_named, schedule_with
from engine.collector.views import DEFAULT_TABLES, SESSIONS_TABLE, view_named
from engine.control import JOBS, REPORTED, ControlDatabase
from engine.control.notifications import COLLECTOR
from engine.errors import (
    AgentNotRunning,
    CachedModeNeedsSchedule,
    CollectionFailed,
    CollectionParametersInvalid,
    CollectionScheduleInvalid,
    CollectionSetActive,
    CollectionSetEmpty,
    CollectionSetNeedsSchedule,
    CollectionSetNotChangeable,
    CollectorNameInvalid,
    CollectorObjectExists,
    CollectorObjectMissing,
    CollectorValueInvalid,
    HistoryRangeInvalid,
    InvalidObjectName,
    ScheduleNotNamedOnce,
    SyncTimeout,
    SystemCollectionSet,
)
from engine.lake.tables import Lake
from engine.model.collection import (
    TSQL_COLLECTOR,
    BreakKind,
    CollectedTable,
    CollectionMode,
    CollectionRun,
    CollectionSet,
    HistoryBreak,
    HistoryPoint,
)
from engine.model.job import RunOutcome
from engine.model.schedule import ScheduleUnreadable, next_run

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from engine.collector.history import History

LONGEST_DAYS = 32767
"""days_until_expiration is a smallint."""
LOWEST_FREQUENCY = 5
"""Seconds, as the page of the item's procedure says."""
POINTS = 2000
"""Points of a database in a series, at most, when no length is asked for."""
MOST_POINTS = 100_000
"""The same when one is."""
COLLECT_SECONDS = 120.0
"""How long a collection that is asked for is waited for."""
_LOOK_AGAIN = 1.0
_LONGEST_NAME = 128


class Collector:
    """Collection sets of one home. ``collection_set``: an id, or a name in any case."""

    def __init__(
        self,
        control: ControlDatabase,
        lake: Lake,
        spark: Callable[[], SparkSession],
        clock: Callable[[], datetime],
    ) -> None:
        self._control = control
        self._lake = lake
        self._spark = spark
        self._clock = clock

    # Sets

    def sets(self) -> Sequence[CollectionSet]:
        """Every set, by id; a run that a dead agent left is interrupted."""
        alive = self._control.agent_is_alive()
        return [
            replace(each, last_run=None if each.last_run is None else _as_seen(each.last_run, alive))
            for each in self._control.collection_sets.list()
        ]

    def get(self, collection_set: int | str) -> CollectionSet:
        """One set. Raises CollectorObjectMissing."""
        found = self._control.collection_sets.get(collection_set)
        if found is None:
            parameter = "@name" if isinstance(collection_set, str) else "@collection_set_id"
            raise CollectorObjectMissing(parameter, collection_set)
        return found

    def create(
        self,
        name: str | None,
        schedule: str | None,
        schedule_uid: UUID | None,
        interval_minutes: int | None,
        collection_mode: int,
        days_until_expiration: int,
        logging_level: int,
        description: str | None,
    ) -> int:
        """sp_syscollector_create_collection_set; the set's id."""
        known = _name("collection set", name)
        mode = _mode(collection_mode)
        cron = _schedule(schedule, schedule_uid, interval_minutes)
        if mode is CollectionMode.CACHED and cron is None:
            raise CachedModeNeedsSchedule
        values = (_days(days_until_expiration), _logging_level(logging_level))
        created = self._control.collection_sets.create(known, description, mode, cron, *values)
        if created is None:
            raise CollectorObjectExists("@name", known)
        return created

    def create_item(
        self,
        collection_set: int | str,
        name: str | None,
        parameters: str | None,
        frequency: int,
        collector_type_uid: UUID,
    ) -> int:
        """sp_syscollector_create_collection_item; the item's id."""
        found = self.get(collection_set)
        known = _name("collection item", name)
        if found.is_system:
            raise SystemCollectionSet
        if found.is_running:
            raise CollectionSetNotChangeable(found.name)
        if collector_type_uid != TSQL_COLLECTOR:
            raise CollectorObjectMissing("@collector_type_uid", str(collector_type_uid).upper())
        if frequency < LOWEST_FREQUENCY:
            raise CollectorValueInvalid("@frequency", f"{LOWEST_FREQUENCY} and more")
        if any(item.name.lower() == known.lower() for item in found.items):
            raise CollectorObjectExists("@name", known)
        self._check_tables(parameters)
        return self._control.collection_sets.add_item(
            found.collection_set_id, known, frequency, parameters or ""
        )

    def start(self, collection_set: int | str) -> None:
        """sp_syscollector_start_collection_set: the first snapshot is taken at once. Raises a warning."""
        found = self.get(collection_set)
        if found.schedule is None:
            raise CollectionSetNeedsSchedule
        if not found.items:
            self._control.collection_sets.change(found.collection_set_id, is_running=True)
            raise CollectionSetEmpty(found.name)
        if not found.is_running:
            self._control.collection_sets.change(
                found.collection_set_id, is_running=True, wanted=True, next_run=None
            )

    def stop(self, collection_set: int | str) -> None:
        """sp_syscollector_stop_collection_set: a collection that is under way ends as it would."""
        found = self.get(collection_set)
        self._control.collection_sets.change(
            found.collection_set_id, is_running=False, wanted=False, next_run=None
        )

    def update(
        self,
        collection_set: int | str,
        new_name: str | None,
        schedule: str | None,
        schedule_uid: UUID | None,
        interval_minutes: int | None,
        collection_mode: int | None,
        days_until_expiration: int | None,
        logging_level: int | None,
        description: str | None,
    ) -> None:
        """sp_syscollector_update_collection_set; None leaves a value as it is."""
        found = self.get(collection_set)
        values: dict[str, Any] = {}
        if new_name is not None:
            values["name"] = _name("collection set", new_name)
        if collection_mode is not None:
            values["collection_mode"] = int(_mode(collection_mode))
        if logging_level is not None:
            values["logging_level"] = _logging_level(logging_level)
        if values and found.is_running:
            raise CollectionSetNotChangeable(found.name)
        if description is not None:
            values["description"] = description
        if values and found.is_system:
            raise SystemCollectionSet
        cron = _schedule(schedule, schedule_uid, interval_minutes)
        if cron is not None:
            values |= {"schedule": cron, "next_run": None}
        mode = values.get("collection_mode", found.collection_mode)
        if mode == CollectionMode.CACHED and (cron or found.schedule) is None:
            raise CachedModeNeedsSchedule
        if days_until_expiration is not None:
            # What has expired by it goes with the next upkeep.
            values |= {"days_until_expiration": _days(days_until_expiration), "last_upkeep": _LONG_AGO}
        if values and not self._control.collection_sets.change(found.collection_set_id, **values):
            raise CollectorObjectExists("@new_name", values["name"])

    def delete(self, collection_set: int | str) -> None:
        """sp_syscollector_delete_collection_set: what it collected stays until it expires."""
        found = self.get(collection_set)
        if found.is_system:
            raise SystemCollectionSet
        if found.is_running:
            raise CollectionSetActive(found.name)
        self._control.collection_sets.drop(found.collection_set_id)

    def collect(self, collection_set: int | str) -> CollectionRun:
        """Takes a snapshot now, whether or not the set runs; returns when it counts.

        Raises AgentNotRunning, CollectionFailed, SyncTimeout.
        """
        found = self.get(collection_set)
        if not self._control.agent_is_alive():
            raise AgentNotRunning("it takes the snapshots")
        number = found.collection_set_id
        before = max((run.snapshot_id for run in self._control.collection_runs.list(number, 1)), default=0)
        deadline = time.monotonic() + COLLECT_SECONDS
        with self._control.listen(REPORTED) as listener:
            self._control.collection_sets.change(number, wanted=True)
            while True:
                newest = self._control.collection_runs.list(number, 1)
                if newest and newest[0].snapshot_id > before and newest[0].outcome is not RunOutcome.RUNNING:
                    return _done(found, newest[0])
                left = deadline - time.monotonic()
                if left <= 0:
                    what = f"Collecting '{found.name}'"
                    raise SyncTimeout(what, COLLECT_SECONDS, "the agent has not taken the snapshot yet")
                if listener.wait(min(left, _LOOK_AGAIN)) is None:
                    self._control.notify(JOBS, COLLECTOR)

    def runs(self, collection_set: int | str | None, limit: int) -> Sequence[CollectionRun]:
        """The newest runs of a set, or of all, newest first."""
        number = None if collection_set is None else self.get(collection_set).collection_set_id
        alive = self._control.agent_is_alive()
        return [_as_seen(run, alive) for run in self._control.collection_runs.list(number, limit)]

    def _check_tables(self, parameters: str | None) -> None:
        """An output table has one view's columns: others' queries of it must be of the same view."""
        views = {query.output_table: query.view for query in parse_parameters(parameters).queries}
        for upkeep in self._control.collection_sets.upkeep():
            for text in upkeep.output:
                for query in parse_parameters(text).queries:
                    if views.get(query.output_table, query.view) is not query.view:
                        raise CollectionParametersInvalid(
                            f"table '{query.output_table}' has the columns of {query.view.name} already"
                        )

    # What was collected

    def sessions(self, start: datetime, end: datetime, database: str | None) -> DataFrame:
        """Scan sessions that began in [start, end), each once."""
        return self._history().sessions(self._range(start, end, database))

    def series(
        self, start: datetime, end: datetime, database: str | None, bucket_seconds: int | None
    ) -> Sequence[HistoryPoint]:
        """Latency and throughput of [start, end) in stretches of so many seconds."""
        asked = self._range(start, end, database)
        seconds = bucket_of(start, end) if bucket_seconds is None else bucket_seconds
        if seconds < 1 or (end - start) / timedelta(seconds=seconds) > MOST_POINTS:
            raise HistoryRangeInvalid(f"it would have more than {MOST_POINTS:,} stretches of {seconds} s")
        return self._history().series(asked, seconds)

    def breaks(
        self, start: datetime, end: datetime, database: str | None, collection_set: int | str
    ) -> Sequence[HistoryBreak]:
        """Gaps of a set's snapshots, agent restarts and engine restarts in [start, end), in order of time.

        A gap that is not over yet has no end. Its reason is what failed meanwhile, where something did.
        """
        asked = self._range(start, end, database)
        found = self.get(collection_set)
        runs = self._control.collection_runs.between(found.collection_set_id, start, end)
        marks = [
            SnapshotMark(run.snapshot_time, run.snapshot_id, run.agent_start, run.interval_seconds)
            for run in runs
            if run.outcome is RunOutcome.SUCCEEDED
        ]
        until = min(end, self._clock())
        known = [_with_reason(each, runs) for each in breaks(marks, until)]
        restarts = self._history().engine_restarts(asked)
        return sorted([*known, *restarts], key=lambda each: (each.start, each.kind, each.database or ""))

    def rows(self, output_table: str, database: str | None) -> DataFrame | None:
        """custom_snapshots.<output_table>; None where nothing was collected into it."""
        from engine.collector.history import collected_rows  # imports pyspark

        not_counted = self._control.collection_runs.not_counted()
        return collected_rows(self._spark(), self._lake, output_table, not_counted, database)

    def taken(
        self, output_table: str, start: datetime, end: datetime, database: str | None
    ) -> pa.Table | None:
        """Rows of snapshots that were taken in [start, end), by Arrow where that can read the table.

        None where nothing was collected into it.
        """
        from engine.collector.history import rows_taken  # imports pyspark

        view = next((name for name, table in DEFAULT_TABLES if table == output_table), None)
        known = None if view is None else view_named(view)
        if known is None:
            raise InvalidObjectName(f"custom_snapshots.{output_table}")
        asked = self._range(start, end, database)
        return rows_taken(self._spark, self._lake, output_table, known, asked)

    def tables(self, collection_set: int | str) -> Sequence[CollectedTable]:
        """Output tables of a set's items with their sizes; what other sets wrote into them counts too."""
        from engine.lake.table_sizes import size_in_log  # imports Arrow

        found = self.get(collection_set)
        names = output_tables([item.parameters for item in found.items])
        sizes = {name: size_in_log(self._lake.custom_snapshots(name)) for name in names}
        return [
            CollectedTable(name, *((0, 0, 0) if size is None else (size.rows, size.files, size.bytes)))
            for name, size in sizes.items()
        ]

    def _history(self) -> History:
        from engine.collector.history import History  # imports pyspark

        return History(self._spark, self._lake)

    def _range(self, start: datetime, end: datetime, database: str | None) -> HistoryRange:
        if start.tzinfo is None or end.tzinfo is None:
            raise HistoryRangeInvalid("its times have no zone")
        if end < start:
            raise HistoryRangeInvalid("it ends before it begins")
        until = self._taken_until(end)
        not_counted = self._control.collection_runs.not_counted(
            _moved(start, -2 * CLOCK_MARGIN), None if until is None else _moved(until, 2 * CLOCK_MARGIN)
        )
        return HistoryRange(start, end, database, until, not_counted)

    def _taken_until(self, end: datetime) -> datetime | None:
        """When every set that takes sessions had taken those that began before ``end``; None: not known.

        Sets may take different databases, so the last of them counts.
        """
        found = [
            self._control.collection_runs.first_after(each.collection_set_id, end)
            for each in self._control.collection_sets.upkeep()
            if SESSIONS_TABLE in output_tables(each.output)
        ]
        known = [moment for moment in found if moment is not None]
        return max(known) if known and len(known) == len(found) else None


_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
"""A day on which upkeep was certainly not done today."""
_EVEN = (60, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)


def bucket_of(start: datetime, end: datetime, points: int = POINTS) -> int:
    """Seconds of a stretch so that a range has at most so many, even on the clock where that goes."""
    least = (end - start).total_seconds() / points
    return next((each for each in _EVEN if each >= least), max(1, -(-int(least) // 86_400)) * 86_400)


def _moved(moment: datetime, by: timedelta) -> datetime | None:
    try:
        return moment + by
    except OverflowError:
        return None


def _name(what: str, name: str | None) -> str:
    """A name without the blanks around it. Raises CollectorNameInvalid."""
    known = (name or "").strip()
    if not known or len(known) > _LONGEST_NAME:
        raise CollectorNameInvalid(what)
    return known


def _mode(mode: int) -> CollectionMode:
    try:
        return CollectionMode(mode)
    except ValueError as error:
        raise CollectorValueInvalid("@collection_mode", "0 (cached), 1 (non-cached)") from error


def _days(days: int) -> int:
    if not 0 <= days <= LONGEST_DAYS:
        raise CollectorValueInvalid("@days_until_expiration", f"0 (never) to {LONGEST_DAYS}")
    return days


def _logging_level(level: int) -> int:
    if level not in (0, 1, 2):
        raise CollectorValueInvalid("@logging_level", "0, 1, 2")
    return level


def _schedule(name: str | None, uid: UUID | None, interval_minutes: int | None) -> str | None:
    """Cron text of what is given: a shipped schedule's name or uid, cron text, or an interval."""
    if name is not None and uid is not None:
        raise ScheduleNotNamedOnce("@schedule_uid", "@schedule_name")
    if interval_minutes is not None:
        if name is not None or uid is not None:
            raise ScheduleNotNamedOnce("an interval", "a schedule")
        if (cron := every(interval_minutes)) is None:
            raise CollectionScheduleInvalid(f"every {interval_minutes} minutes", "no day is made of these")
        return cron
    if uid is not None:
        if (shipped := schedule_with(uid)) is None:
            raise CollectorObjectMissing("@schedule_uid", str(uid).upper())
        return shipped.cron
    if name is None:
        return None
    if (shipped := schedule_named(name)) is not None:
        return shipped.cron
    if len(name.split()) == 1:
        raise CollectorObjectMissing("@schedule_name", name)
    try:
        next_run(name, datetime.now(UTC))
    except ScheduleUnreadable as error:
        raise CollectionScheduleInvalid(name, str(error)) from error
    return " ".join(name.split())


def _as_seen(run: CollectionRun, agent_is_alive: bool) -> CollectionRun:
    """A run as it really is: nothing runs without an agent."""
    if agent_is_alive or run.outcome is not RunOutcome.RUNNING:
        return run
    return replace(run, outcome=RunOutcome.INTERRUPTED, message="The agent ended while it ran.")


def _done(collection_set: CollectionSet, run: CollectionRun) -> CollectionRun:
    if run.outcome is not RunOutcome.SUCCEEDED:
        raise CollectionFailed(collection_set.name, run.message)
    return run


def _with_reason(found: HistoryBreak, runs: Sequence[CollectionRun]) -> HistoryBreak:
    if found.kind is not BreakKind.GAP:
        return found
    failed = [
        run.message
        for run in runs
        if run.outcome is not RunOutcome.SUCCEEDED
        and run.snapshot_time >= found.start
        and (found.end is None or run.snapshot_time <= found.end)
    ]
    return replace(found, reason=failed[-1]) if failed else found
