"""Collection sets and items, as msdb's syscollector_* views have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row, delete, func, select, true, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from engine.control.collection_runs import run_of
from engine.control.connections import Connections
from engine.control.notifications import COLLECTOR, JOBS, REPORTED, notify
from engine.control.schema import collection_items, collection_runs, collection_sets
from engine.model.collection import TSQL_COLLECTOR, CollectionItem, CollectionMode, CollectionSet


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What is known of the upkeep of a set's data, also of one that was deleted."""

    collection_set_id: int
    days_until_expiration: int
    last_upkeep: datetime | None
    uncompacted: int
    dropped: datetime | None
    output: tuple[str, ...]
    """Parameter XML of its items."""


class CollectionSetRepository:
    """Sets as rows: whoever may write here starts, stops or tunes one, and the agent obeys.

    A set that was deleted stays, unseen, until what it collected has expired.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def list(self) -> list[CollectionSet]:
        """Every set, by id, with its items and its newest run."""
        newest = (
            select(collection_runs)
            .where(collection_runs.c.collection_set_id == collection_sets.c.collection_set_id)
            .order_by(collection_runs.c.snapshot_id.desc())
            .limit(1)
            .lateral("newest")
        )
        runs = [column.label(f"run_{column.name}") for column in newest.c]
        query = (
            select(collection_sets, *runs)
            .outerjoin(newest, true())
            .where(collection_sets.c.dropped.is_(None))
            .order_by(collection_sets.c.collection_set_id)
        )
        with self._connections.read() as connection:
            rows = connection.execute(query).all()
            items = connection.execute(
                select(collection_items).order_by(collection_items.c.collection_item_id)
            ).all()
        return [
            _set(row, [each for each in items if each.collection_set_id == row.collection_set_id])
            for row in rows
        ]

    def get(self, collection_set: int | str) -> CollectionSet | None:
        """One set, by its id or by its name in any case."""
        for each in self.list():
            if isinstance(collection_set, str):
                if each.name.lower() == collection_set.strip().lower():
                    return each
            elif each.collection_set_id == collection_set:
                return each
        return None

    def create(
        self,
        name: str,
        description: str | None,
        mode: CollectionMode,
        schedule: str | None,
        days_until_expiration: int,
        logging_level: int,
    ) -> int | None:
        """A set that is not running; its id, or None where there is one of that name."""
        values = {
            "collection_set_uid": uuid4(),
            "name": name,
            "description": description,
            "is_system": False,
            "is_running": False,
            "collection_mode": int(mode),
            "schedule": schedule,
            "days_until_expiration": days_until_expiration,
            "logging_level": logging_level,
        }
        new = insert(collection_sets).values(values).on_conflict_do_nothing()
        with self._connections.begin() as connection:
            found: int | None = connection.scalar(new.returning(collection_sets.c.collection_set_id))
        return found

    def add_item(self, collection_set_id: int, name: str, frequency: int, parameters: str) -> int:
        """An item of a set; its id."""
        values = {
            "collection_set_id": collection_set_id,
            "collection_item_uid": uuid4(),
            "collector_type_uid": TSQL_COLLECTOR,
            "name": name,
            "frequency": frequency,
            "parameters": parameters,
        }
        new = insert(collection_items).values(values).returning(collection_items.c.collection_item_id)
        with self._connections.begin() as connection:
            return int(connection.execute(new).scalar_one())

    def change(self, collection_set_id: int, **values: Any) -> bool:
        """Sets columns; False where another set has the name that is given."""
        try:
            self._set(collection_set_id, **values)
        except IntegrityError:
            return False
        return True

    def plan(self, collection_set: CollectionSet, next_run: datetime) -> None:
        """When the set collects next by the schedule that it had; nothing where that was changed since."""
        mine = (
            collection_sets.c.collection_set_id == collection_set.collection_set_id,
            collection_sets.c.schedule == collection_set.schedule,
        )
        with self._connections.begin() as connection:
            connection.execute(update(collection_sets).where(*mine).values(next_run=next_run))

    def drop(self, collection_set_id: int) -> None:
        """Deletes a set; its data is kept as long as it was to be."""
        self._set(collection_set_id, dropped=func.clock_timestamp(), is_running=False, wanted=False)

    def forget(self, collection_set_id: int) -> None:
        """Takes a deleted set's rows away, once nothing of its data is left."""
        with self._connections.begin() as connection:
            connection.execute(
                delete(collection_sets).where(
                    collection_sets.c.collection_set_id == collection_set_id,
                    collection_sets.c.dropped.is_not(None),
                )
            )

    def upkeep(self) -> Sequence[Upkeep]:
        """Of every set, deleted ones too."""
        with self._connections.read() as connection:
            rows = connection.execute(
                select(collection_sets).order_by(collection_sets.c.collection_set_id)
            ).all()
            items = connection.execute(select(collection_items)).all()
        return [
            Upkeep(
                row.collection_set_id,
                row.days_until_expiration,
                row.last_upkeep,
                row.uncompacted,
                row.dropped,
                tuple(item.parameters for item in items if item.collection_set_id == row.collection_set_id),
            )
            for row in rows
        ]

    def kept_up(self, collection_set_id: int, **values: Any) -> None:
        """Notes what upkeep has done; nobody need hear of it."""
        mine = collection_sets.c.collection_set_id == collection_set_id
        with self._connections.begin() as connection:
            connection.execute(update(collection_sets).where(mine).values(values))

    def _set(self, collection_set_id: int, **values: Any) -> None:
        mine = collection_sets.c.collection_set_id == collection_set_id
        with self._connections.begin() as connection:
            connection.execute(update(collection_sets).where(mine).values(values))
            notify(connection, JOBS, COLLECTOR)
            notify(connection, REPORTED, COLLECTOR)


def _set(row: Row[Any], items: Sequence[Row[Any]]) -> CollectionSet:
    return CollectionSet(
        collection_set_id=row.collection_set_id,
        collection_set_uid=row.collection_set_uid,
        name=row.name,
        description=row.description,
        is_system=row.is_system,
        is_running=row.is_running,
        collection_mode=CollectionMode(row.collection_mode),
        schedule=row.schedule,
        days_until_expiration=row.days_until_expiration,
        logging_level=row.logging_level,
        wanted=row.wanted,
        next_run=row.next_run,
        items=tuple(_item(item) for item in items),
        last_run=None if row.run_snapshot_id is None else run_of(row, "run_"),
    )


def _item(row: Row[Any]) -> CollectionItem:
    return CollectionItem(
        row.collection_item_id,
        row.collection_set_id,
        UUID(str(row.collection_item_uid)),
        UUID(str(row.collector_type_uid)),
        row.name,
        row.frequency,
        row.parameters,
    )
