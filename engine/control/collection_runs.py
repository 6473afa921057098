"""Runs of the data collector: claimed, ended, listed; and how far each item has come in each database.

A run's number is its snapshot's. What it appended counts once it has succeeded: a snapshot of which only
some tables were written belongs to a run that has not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from psycopg import OperationalError
from sqlalchemy import Connection, Row, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from engine.control.connections import Connections, words_of
from engine.control.notifications import COLLECTOR, REPORTED, notify
from engine.control.schema import collection_positions, collection_runs, collection_sets, databases
from engine.errors import ControlUnreachable
from engine.model.collection import CollectionRun
from engine.model.job import RunOutcome

INTERRUPTED = "The agent ended while it ran."
RUNS_KEPT = 200_000
"""Runs kept at most of each set, whatever its expiration."""
_LOCK = 0x4857_636F  # "HWco"
_NAMES = tuple(field.name for field in fields(CollectionRun))


@dataclass(frozen=True, slots=True)
class Position:
    """The last row of a view that a database gave: a session of a run of capture, or an error's entry."""

    engine_start: datetime | None
    last_id: int


PositionKey = tuple[int, str, str]
"""Collection item, view, database."""


class CollectorLock:
    """The right to collect, held as long as a connection stands."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def check(self) -> None:
        """Raises ControlUnreachable when the server has let the connection, and the lock, go."""
        try:
            self._connection.execute("SELECT 1")
        except OperationalError as error:
            raise ControlUnreachable(words_of(error)) from error


class CollectionRunRepository:
    """Runs of collection sets."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @contextmanager
    def alone(self) -> Iterator[CollectorLock | None]:
        """The lock that one agent at a time has, for the length of a ``with``; None while another has it.

        The server lets it go at once when the process dies.
        """
        with closing(self._connections.connect(autocommit=True)) as connection:
            [got] = connection.execute("SELECT pg_try_advisory_lock(%s, 0)", (_LOCK,)).fetchone() or (False,)
            yield CollectorLock(connection) if got else None

    def end_interrupted(self) -> None:
        """Says of runs that are still said to run that they are not. For whoever is `alone`."""
        running = collection_runs.c.outcome == RunOutcome.RUNNING
        ended = {"outcome": RunOutcome.INTERRUPTED, "message": INTERRUPTED}
        with self._connections.begin() as connection:
            connection.execute(update(collection_runs).where(running).values(ended))

    def claim(
        self,
        collection_set_id: int,
        now: datetime,
        next_run: datetime | None,
        interval_seconds: int | None,
        agent_start: datetime,
    ) -> int | None:
        """Begins a run where the set is to collect now; the snapshot's id, None where it is not."""
        mine = collection_sets.c.collection_set_id == collection_set_id
        with self._connections.begin() as connection:
            row = connection.execute(select(collection_sets).where(mine).with_for_update()).one_or_none()
            if row is None or row.dropped is not None:
                return None
            is_due = row.is_running and row.next_run is not None and row.next_run <= now
            if not row.wanted and not is_due:
                return None
            connection.execute(update(collection_sets).where(mine).values(wanted=False, next_run=next_run))
            values = {
                "collection_set_id": collection_set_id,
                "snapshot_time": now,
                "outcome": RunOutcome.RUNNING,
                "message": "Running.",
                "rows": 0,
                "interval_seconds": interval_seconds,
                "agent_start": agent_start,
            }
            new = insert(collection_runs).values(values).returning(collection_runs.c.snapshot_id)
            return int(connection.execute(new).scalar_one())

    def succeed(
        self, snapshot_id: int, end: datetime, rows: int, positions: Mapping[PositionKey, Position]
    ) -> None:
        """Publishes a snapshot, and how far its items have come, in one transaction."""
        message = f"Collected {rows:,} row{'' if rows == 1 else 's'}."
        with self._connections.begin() as connection:
            for (item, view, database), position in positions.items():
                _move(connection, item, view, database, position)
            set_id = _end(connection, snapshot_id, end, RunOutcome.SUCCEEDED, message, rows)
            mine = collection_sets.c.collection_set_id == set_id
            more = collection_sets.c.uncompacted + 1
            connection.execute(update(collection_sets).where(mine).values(uncompacted=more))

    def fail(self, snapshot_id: int, end: datetime, message: str) -> None:
        """Ends a run whose snapshot does not count."""
        with self._connections.begin() as connection:
            _end(connection, snapshot_id, end, RunOutcome.FAILED, message, 0)

    def positions(self) -> dict[PositionKey, Position]:
        """How far every item has come in every database."""
        query = select(collection_positions, databases.c.name).join(databases)
        with self._connections.read() as connection:
            rows = connection.execute(query).all()
        return {
            (row.collection_item_id, row.view_name, row.name): Position(row.engine_start, row.last_id)
            for row in rows
        }

    def list(self, collection_set_id: int | None, limit: int) -> list[CollectionRun]:
        """The newest runs of a set, or of all, newest first."""
        query = select(collection_runs).order_by(collection_runs.c.snapshot_id.desc()).limit(limit)
        if collection_set_id is not None:
            query = query.where(collection_runs.c.collection_set_id == collection_set_id)
        with self._connections.read() as connection:
            return [run_of(row) for row in connection.execute(query)]

    def between(self, collection_set_id: int, start: datetime, end: datetime) -> Sequence[CollectionRun]:
        """Runs of [start, end), and the last one that succeeded before them, by time."""
        mine = collection_runs.c.collection_set_id == collection_set_id
        at = collection_runs.c.snapshot_time
        within = select(collection_runs).where(mine, at >= start, at < end)
        before = (
            select(collection_runs)
            .where(mine, at < start, collection_runs.c.outcome == RunOutcome.SUCCEEDED)
            .order_by(at.desc())
            .limit(1)
        )
        with self._connections.read() as connection:
            rows = [*connection.execute(before), *connection.execute(within.order_by(at))]
        return [run_of(row) for row in rows]

    def first_after(self, collection_set_id: int, moment: datetime) -> datetime | None:
        """When a set's first snapshot at or after a moment was taken that counts."""
        query = select(func.min(collection_runs.c.snapshot_time)).where(
            collection_runs.c.collection_set_id == collection_set_id,
            collection_runs.c.snapshot_time >= moment,
            collection_runs.c.outcome == RunOutcome.SUCCEEDED,
        )
        with self._connections.read() as connection:
            found: datetime | None = connection.scalar(query)
        return found

    def not_counted(self, start: datetime | None = None, end: datetime | None = None) -> Sequence[int]:
        """Snapshots whose rows, where there are any, do not count: their runs have not succeeded.

        Of those taken in [start, end); None: without that bound.
        """
        query = select(collection_runs.c.snapshot_id).where(collection_runs.c.outcome != RunOutcome.SUCCEEDED)
        if start is not None:
            query = query.where(collection_runs.c.snapshot_time >= start)
        if end is not None:
            query = query.where(collection_runs.c.snapshot_time < end)
        with self._connections.read() as connection:
            return [int(number) for number in connection.scalars(query)]

    def prune(self, collection_set_id: int, before: datetime | None) -> None:
        """Forgets runs whose data has expired."""
        mine = collection_runs.c.collection_set_id == collection_set_id
        newest = select(collection_runs.c.snapshot_id).where(mine)
        too_many = newest.order_by(collection_runs.c.snapshot_id.desc()).offset(RUNS_KEPT).limit(1)
        with self._connections.begin() as connection:
            if before is not None:
                connection.execute(
                    delete(collection_runs).where(mine, collection_runs.c.snapshot_time < before)
                )
            old = collection_runs.c.snapshot_id <= too_many.scalar_subquery()
            connection.execute(delete(collection_runs).where(mine, old))


def run_of(row: Row[Any], prefix: str = "") -> CollectionRun:
    """A row of runs, its columns under a prefix."""
    values = {name: getattr(row, prefix + name) for name in _NAMES}
    return CollectionRun(**(values | {"outcome": RunOutcome(values["outcome"])}))


def _end(
    connection: Connection, snapshot_id: int, end: datetime, outcome: RunOutcome, message: str, rows: int
) -> int | None:
    values = {"end_time": end, "outcome": outcome, "message": message, "rows": rows}
    mine = collection_runs.c.snapshot_id == snapshot_id
    ended: int | None = connection.scalar(
        update(collection_runs).where(mine).values(values).returning(collection_runs.c.collection_set_id)
    )
    notify(connection, REPORTED, COLLECTOR)
    return ended


def _move(connection: Connection, item: int, view: str, database: str, position: Position) -> None:
    """Nothing for an item or a database that is gone since."""
    key = connection.scalar(select(databases.c.database_id).where(databases.c.name == database))
    if key is None:
        return
    values = {"engine_start": position.engine_start, "last_id": position.last_id}
    new = upsert(collection_positions).values(
        collection_item_id=item, view_name=view, database_id=key, **values
    )
    columns = (
        collection_positions.c.collection_item_id,
        collection_positions.c.view_name,
        collection_positions.c.database_id,
    )
    connection.execute(new.on_conflict_do_update(index_elements=columns, set_=values))
