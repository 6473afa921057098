"""cdc.change_tables with captured_columns and index_columns, and the change tables to clear away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Label, Row, Select, delete, func, insert, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from engine.control.connections import Connections, database_id
from engine.control.jobs import add_job, remove_jobs
from engine.control.notifications import JOBS, notify
from engine.control.schema import (
    captured_columns,
    change_tables,
    databases,
    dropped_tables,
    index_columns,
    object_ids,
)
from engine.errors import CaptureInstanceExists, TooManyInstances
from engine.model.capture_instance import CapturedColumn, CaptureInstance, IndexColumn
from engine.model.job import CaptureParameters, CleanupParameters
from engine.model.table_shape import ShapeColumn

MAX_INSTANCES = 2
"""Capture instances that one source table may have."""


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A change table that nothing refers to any more and whose folder is still to be removed.

    ``capture_instance`` None: the database's lsn_time_mapping.
    """

    object_id: int
    database: str
    capture_instance: str | None
    drop_date: datetime


class InstanceRepository:
    """Capture instances. A row is there from enabling on; its start_lsn comes with a publication."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._known: dict[int, tuple[str, CaptureInstance]] = {}

    def list(self, database: str | None = None) -> list[CaptureInstance]:
        """The instances of a database, or of all, by source table and creation.

        Every scan and every look asks for them, and they seldom change: only those are read whose row has
        another version than when it was read last. Whatever changes columns changes that row too.
        """
        where = () if database is None else (databases.c.name == database,)
        with self._connections.snapshot() as connection:
            versions = {
                row.object_id: row.row_version for row in connection.execute(_versions().where(*where))
            }
            at_hand = self._known
            known = {number: at_hand[number] for number in versions.keys() & at_hand.keys()}
            new = [number for number, version in versions.items() if known.get(number, ("",))[0] != version]
            if new:
                for instance in _read(connection, change_tables.c.object_id.in_(new)):
                    known[instance.object_id] = versions[instance.object_id], instance
                self._keep(known, database)
        return [known[number][1] for number in versions]

    def _keep(self, known: dict[int, tuple[str, CaptureInstance]], database: str | None) -> None:
        """What was read is not read again; what is gone is forgotten; other threads keep theirs."""
        others = {
            number: each
            for number, each in self._known.items()
            if database is not None and each[1].database != database
        }
        self._known = others | known

    def get(self, database: str, capture_instance: str) -> CaptureInstance | None:
        """One instance; None when the database has none of that name."""
        with self._connections.snapshot() as connection:
            found = _read(
                connection, databases.c.name == database, change_tables.c.capture_instance == capture_instance
            )
        return found[0] if found else None

    def next_object_id(self) -> int:
        """An id that no change table has or had."""
        with self._connections.read() as connection:
            return connection.execute(select(object_ids.next_value())).scalar_one()

    @contextmanager
    def add(
        self,
        instance: CaptureInstance,
        job: CaptureParameters | None = None,
        cleanup: CleanupParameters | None = None,
    ) -> Iterator[None]:
        """Inserts an instance, and a wanted capture job where ``job`` is given and there is none.

        The database's first instance adds a cleanup job too where ``cleanup`` is given: later ones don't,
        for who has dropped it wants to keep changes.

        The transaction stays open for the body, which makes the change at the source: it commits
        after the body, and is undone when the body raises. Should this process die in between, the
        log's word restores the row. Waits for others that add or remove in the same database.
        Raises UnknownDatabase, CaptureInstanceExists, TooManyInstances.
        """
        with self._connections.begin() as connection:
            key = database_id(connection, instance.database, lock=True)
            existing = _read(connection, change_tables.c.database_id == key)
            _check_free(existing, instance)
            insert_instance(connection, key, instance)
            if job is not None:
                add_job(connection, key, job, wanted=True)
            if cleanup is not None and not existing:
                add_job(connection, key, cleanup, wanted=False)
            notify(connection, JOBS, instance.database)
            yield

    @contextmanager
    def remove(self, database: str, object_ids: Iterable[int]) -> Iterator[None]:
        """Deletes instances and lists their change tables to be cleared away; the last takes the jobs along.

        As with `add`, the body makes the change at the source inside the open transaction.
        """
        with self._connections.begin() as connection:
            key = database_id(connection, database, lock=True)
            drop_instances(connection, key, tuple(object_ids))
            notify(connection, JOBS, database)
            yield

    def dropped(self, database: str | None = None) -> Sequence[DroppedTable]:
        """Change tables to be cleared away, oldest first; also of databases that are no longer registered."""
        query = select(
            dropped_tables.c.object_id,
            dropped_tables.c.database,
            dropped_tables.c.capture_instance,
            dropped_tables.c.drop_date,
        )
        if database is not None:
            query = query.where(dropped_tables.c.database == database)
        with self._connections.read() as connection:
            return [
                DroppedTable(*row) for row in connection.execute(query.order_by(dropped_tables.c.object_id))
            ]

    def forget_dropped(self, object_id: int) -> None:
        """The change table's folder is gone."""
        with self._connections.begin() as connection:
            connection.execute(delete(dropped_tables).where(dropped_tables.c.object_id == object_id))


def insert_instance(connection: Connection, key: int, instance: CaptureInstance) -> None:
    """The rows of one instance, in the caller's transaction."""
    connection.execute(insert(change_tables).values(_row(key, instance)))
    _insert_columns(connection, instance)


def recognise_instance(connection: Connection, key: int, instance: CaptureInstance) -> None:
    """Sets an instance's start_lsn; restores its rows when they are lost, unless it was dropped since.

    Whoever enabled it died before the jobs were there too: they are added as enabling does.
    """
    mine = change_tables.c.object_id == instance.object_id
    new = upsert(change_tables).values(_row(key, instance)).on_conflict_do_nothing()
    if connection.scalar(new.returning(change_tables.c.object_id)) is not None:
        # Asked afterwards: the insert waits for whoever is just dropping the instance.
        was_dropped = select(dropped_tables.c.object_id).where(
            dropped_tables.c.object_id == instance.object_id
        )
        if connection.scalar(was_dropped) is not None:
            connection.execute(delete(change_tables).where(mine))
            return
        _insert_columns(connection, instance)
        add_job(connection, key, CaptureParameters(), wanted=True)
        others = select(change_tables.c.object_id).where(
            change_tables.c.database_id == key, change_tables.c.object_id != instance.object_id
        )
        if connection.scalar(others.limit(1)) is None:
            add_job(connection, key, CleanupParameters(), wanted=False)
        notify(connection, JOBS, instance.database)
        return
    # It is known already, or its name is another's by now: then it was dropped since.
    known = update(change_tables).where(mine, change_tables.c.start_lsn.is_(None))
    connection.execute(known.values(start_lsn=instance.start_lsn))


def alter_instance(connection: Connection, instance: CaptureInstance) -> None:
    """The source table's names and shape, and the types that captured columns have now.

    An instance that was dropped meanwhile has no rows to change.
    """
    mine = change_tables.c.object_id == instance.object_id
    connection.execute(
        update(change_tables)
        .where(mine)
        .values(
            source_schema=instance.source_schema,
            source_table=instance.source_table,
            source_columns=_shape_json(instance),
        )
    )
    for column in instance.columns:
        connection.execute(
            update(captured_columns)
            .where(
                captured_columns.c.object_id == instance.object_id,
                captured_columns.c.column_ordinal == column.column_ordinal,
            )
            .values(column_type=column.column_type, lake_type=column.lake_type)
        )


def end_instances(connection: Connection, key: int, ended: Sequence[int]) -> None:
    """The log said that these end, and their folders are gone: no row of them is left."""
    drop_instances(connection, key, ended)
    connection.execute(delete(dropped_tables).where(dropped_tables.c.object_id.in_(ended)))


def drop_instances(connection: Connection, key: int, ids: Sequence[int]) -> None:
    """Deletes instances, lists their folders once, and drops the jobs when no instance is left."""
    gone = (
        delete(change_tables)
        .where(change_tables.c.database_id == key, change_tables.c.object_id.in_(ids))
        .returning(change_tables.c.object_id, change_tables.c.database_id, change_tables.c.capture_instance)
        .cte("gone")
    )
    source = select(gone.c.object_id, databases.c.name, gone.c.capture_instance, func.clock_timestamp()).join(
        databases, databases.c.database_id == gone.c.database_id
    )
    listed = upsert(dropped_tables).from_select(
        ["object_id", "database", "capture_instance", "drop_date"], source
    )
    connection.execute(listed.on_conflict_do_nothing())
    left = select(change_tables.c.object_id).where(change_tables.c.database_id == key).limit(1)
    if connection.scalar(left) is None:
        remove_jobs(connection, key)


def drop_mapping(connection: Connection, database: str) -> None:
    """Lists the folder of the database's lsn_time_mapping to be cleared away; once is enough."""
    mine = (dropped_tables.c.database == database, dropped_tables.c.capture_instance.is_(None))
    if connection.scalar(select(dropped_tables.c.object_id).where(*mine).limit(1)) is not None:
        return
    values = {
        "object_id": object_ids.next_value(),
        "database": database,
        "capture_instance": None,
        "drop_date": func.clock_timestamp(),
    }
    connection.execute(insert(dropped_tables).values(values))


def _check_free(existing: Sequence[CaptureInstance], instance: CaptureInstance) -> None:
    """Raises CaptureInstanceExists or TooManyInstances when ``instance`` has no place among these."""
    if any(other.capture_instance == instance.capture_instance for other in existing):
        raise CaptureInstanceExists(instance.capture_instance)
    if sum(other.source_object_id == instance.source_object_id for other in existing) >= MAX_INSTANCES:
        raise TooManyInstances(instance.source_schema, instance.source_table)


def _row(key: int, instance: CaptureInstance) -> dict[str, Any]:
    same = (
        "object_id",
        "source_object_id",
        "capture_instance",
        "start_lsn",
        "supports_net_changes",
        "has_drop_pending",
        "role_name",
        "index_name",
        "filegroup_name",
        "create_date",
        "partition_switch",
        "source_schema",
        "source_table",
    )
    values = {name: getattr(instance, name) for name in same}
    return {"database_id": key, "version": 0, "source_columns": _shape_json(instance)} | values


def _shape_json(instance: CaptureInstance) -> list[dict[str, Any]]:
    return [asdict(column) for column in instance.source_columns]


def _insert_columns(connection: Connection, instance: CaptureInstance) -> None:
    columns = [
        {
            "object_id": instance.object_id,
            "column_name": column.column_name,
            "column_id": column.column_id,
            "column_type": column.column_type,
            "column_ordinal": column.column_ordinal,
            "is_computed": column.is_computed,
            "lake_type": column.lake_type,
        }
        for column in instance.columns
    ]
    identifier = [
        {
            "object_id": instance.object_id,
            "column_name": column.column_name,
            "index_ordinal": column.index_ordinal,
            "column_id": column.column_id,
        }
        for column in instance.index_columns
    ]
    if columns:
        connection.execute(insert(captured_columns), columns)
    if identifier:
        connection.execute(insert(index_columns), identifier)


_ORDER = (
    databases.c.name,
    change_tables.c.source_schema,
    change_tables.c.source_table,
    change_tables.c.object_id,
)


def _versions() -> Select[Any]:
    """Each instance's id and the version of its row, in order."""
    version: Label[str] = literal_column("change_tables.xmin::text").label("row_version")
    return select(change_tables.c.object_id, version).join(databases).order_by(*_ORDER)


def _read(connection: Connection, *where: Any) -> list[CaptureInstance]:
    tables = (
        select(change_tables, databases.c.name.label("database"))
        .join(databases)
        .where(*where)
        .order_by(*_ORDER)
    )
    ids = select(change_tables.c.object_id).join(databases).where(*where)
    columns = _by_object(
        connection,
        select(captured_columns)
        .where(captured_columns.c.object_id.in_(ids))
        .order_by(captured_columns.c.column_ordinal),
    )
    identifiers = _by_object(
        connection,
        select(index_columns)
        .where(index_columns.c.object_id.in_(ids))
        .order_by(index_columns.c.index_ordinal),
    )
    return [
        _instance(row, columns[row.object_id], identifiers[row.object_id])
        for row in connection.execute(tables)
    ]


def _by_object(connection: Connection, query: Select[Any]) -> dict[int, list[Row[Any]]]:
    rows: dict[int, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(query):
        rows[row.object_id].append(row)
    return rows


def _instance(row: Row[Any], columns: Sequence[Row[Any]], identifier: Sequence[Row[Any]]) -> CaptureInstance:
    return CaptureInstance(
        object_id=row.object_id,
        database=row.database,
        capture_instance=row.capture_instance,
        source_schema=row.source_schema,
        source_table=row.source_table,
        source_object_id=row.source_object_id,
        start_lsn=row.start_lsn,
        supports_net_changes=row.supports_net_changes,
        role_name=row.role_name,
        index_name=row.index_name,
        filegroup_name=row.filegroup_name,
        create_date=row.create_date,
        columns=tuple(
            CapturedColumn(
                column_name=column.column_name,
                column_id=column.column_id,
                column_type=column.column_type,
                column_ordinal=column.column_ordinal,
                is_computed=column.is_computed,
                lake_type=column.lake_type,
            )
            for column in columns
        ),
        index_columns=tuple(
            IndexColumn(column.column_name, column.index_ordinal, column.column_id) for column in identifier
        ),
        has_drop_pending=row.has_drop_pending,
        partition_switch=row.partition_switch,
        source_columns=tuple(ShapeColumn(**column) for column in row.source_columns),
    )
