"""One collection: a snapshot of what a set's items ask for, a Delta commit for each output table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import structlog
from pyspark.sql import SparkSession

from engine.capture.crash_points import CollectionCrashPoint, CrashPoints
from engine.collector.expiry import COMPACT_EVERY, is_forgotten, is_upkeep_due, kept_from
from engine.collector.parameters import output_tables, parse_parameters
from engine.collector.readers import ViewReader
from engine.collector.snapshots import SnapshotTables
from engine.collector.views import table_of
from engine.control import ControlDatabase
from engine.control.collection_runs import Position, PositionKey
from engine.control.collection_sets import Upkeep
from engine.errors import CdcError, ControlUnreachable
from engine.lake.table_sizes import TableSizes
from engine.lake.tables import Lake
from engine.model.collection import CollectionSet
from engine.sources.registry import Sources

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a collection has appended, and how far its items have come by it."""

    rows: int
    positions: dict[PositionKey, Position]


class Collection:
    """Takes snapshots for one agent, which began at ``agent_start``; for one thread."""

    def __init__(
        self,
        control: ControlDatabase,
        sources: Sources,
        spark: SparkSession,
        lake: Lake,
        agent_start: datetime,
        crash: CrashPoints | None = None,
    ) -> None:
        self._control = control
        self._tables = SnapshotTables(spark, lake)
        self._reader = ViewReader(control, sources, lake, TableSizes(spark))
        self._agent_start = agent_start
        self._crash = crash or CrashPoints()

    def take(
        self,
        collection_set: CollectionSet,
        snapshot_id: int,
        taken: datetime,
        interval_seconds: int | None,
        go_on: Callable[[], None] = lambda: None,
    ) -> Taken:
        """Reads all that the set asks for, then appends it, table by table.

        go_on: asked before each commit; it raises where this agent must not write any more. Raises what it
        raises, ControlUnreachable, LakeFailed.
        """
        snapshot = {
            "snapshot_id": snapshot_id,
            "collection_set_id": collection_set.collection_set_id,
            "agent_start": self._agent_start,
            "interval_seconds": interval_seconds,
        }
        output, positions = self._read(collection_set, snapshot, taken.astimezone(UTC))
        rows = 0
        for place, (name, parts) in enumerate(output.items()):
            if place:
                self._crash.reach(CollectionCrashPoint.BETWEEN_OUTPUT_TABLES)
            go_on()
            table = pa.concat_tables(parts)
            self._tables.append(name, table)
            rows += table.num_rows
        self._crash.reach(CollectionCrashPoint.BEFORE_COUNTING)
        return Taken(rows, positions)

    def _read(
        self, collection_set: CollectionSet, snapshot: dict[str, object], taken: datetime
    ) -> tuple[dict[str, list[pa.Table]], dict[PositionKey, Position]]:
        """Rows by output table, of all databases that are enabled."""
        databases = [each for each in self._control.sources.list() if each.is_cdc_enabled]
        starts = self._control.sessions.runs([each.name for each in databases])
        before = self._control.collection_runs.positions()
        output: defaultdict[str, list[pa.Table]] = defaultdict(list)
        positions: dict[PositionKey, Position] = {}
        for item in collection_set.items:
            number = item.collection_item_id
            parameters = parse_parameters(item.parameters)
            asked = [each for each in databases if parameters.takes(each.name)]
            for query in parameters.queries:
                view = query.view
                known = {key[2]: at for key, at in before.items() if key[:2] == (number, view.name)}
                rows, reached = self._reader.read(view, asked, known)
                rows = [{"engine_start": starts.get(row["database_name"])} | row for row in rows]
                table = table_of(view, rows, snapshot | {"collection_item_id": number}, taken)
                output[query.output_table].append(table)
                positions |= {(number, view.name, name): at for name, at in reached.items()}
        return output, positions

    # Upkeep

    def keep_up(self, now: datetime, stop: Callable[[], bool] = lambda: False) -> None:
        """Expires, compacts and clears away what is due, of every set; a set that fails is tried again.

        Raises ControlUnreachable.
        """
        for each in self._control.collection_sets.upkeep():
            if stop():
                return
            try:
                self._keep_up(each, now)
            except ControlUnreachable:
                raise
            except CdcError as error:
                _log.error("upkeep of snapshots", collection_set=each.collection_set_id, error=error.line())

    def _keep_up(self, upkeep: Upkeep, now: datetime) -> None:
        number = upkeep.collection_set_id
        tables = [name for name in output_tables(upkeep.output) if self._tables.is_there(name)]
        if upkeep.last_upkeep is None:
            self._control.collection_sets.kept_up(number, last_upkeep=now)
        elif is_upkeep_due(upkeep.last_upkeep, now):
            first = kept_from(now, upkeep.days_until_expiration)
            for name in tables:
                if first is not None:
                    self._tables.expire(name, number, first)
                self._tables.compact(name, number)
            self._tables.vacuum(tables)
            self._forget(upkeep, now)
            self._control.collection_sets.kept_up(number, last_upkeep=now, uncompacted=0)
        elif upkeep.uncompacted >= COMPACT_EVERY:
            for name in tables:
                self._tables.compact(name, number, now.astimezone(UTC).date())
            self._control.collection_sets.kept_up(number, uncompacted=0)

    def _forget(self, upkeep: Upkeep, now: datetime) -> None:
        """Runs go with their data, a deleted set with the last of it."""
        number = upkeep.collection_set_id
        first = kept_from(now, upkeep.days_until_expiration)
        before = None if first is None else datetime(first.year, first.month, first.day, tzinfo=UTC)
        self._control.collection_runs.prune(number, None if before is None else before - timedelta(days=1))
        if upkeep.dropped is not None and is_forgotten(upkeep.dropped, upkeep.days_until_expiration, now):
            self._control.collection_sets.forget(number)
