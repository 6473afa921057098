"""A source database with its log and administration, and what tests ask of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import psycopg
import pytest

from engine.model.capture_instance import CapturedColumn, CaptureInstance, IndexColumn
from engine.model.lsn import Lsn
from engine.sources.base import LogPiece, ReadLimit
from engine.sources.postgres.admin import PostgresAdmin
from engine.sources.postgres.log import PostgresLog
from engine.sources.postgres.names import PUBLICATION, slot_name

EVERYTHING = ReadLimit(maxtrans=1_000_000_000)


@dataclass
class Source:
    """One database: ``sql`` runs and commits, ``read`` gives what was committed since the last ``read``."""

    dsn: str
    admin: PostgresAdmin
    log: PostgresLog
    connection: psycopg.Connection[tuple[Any, ...]]
    after: Lsn = Lsn.ZERO
    opened: list[PostgresLog] = field(default_factory=list)

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def track(self, table: str, object_id: int = 1) -> CaptureInstance:
        """Enables public.<table> on the source alone."""
        instance = self.instance(table, object_id)
        self.admin.enable_table(instance)
        return instance

    def instance(self, table: str, object_id: int = 1, name: str | None = None) -> CaptureInstance:
        found = self.admin.table("public", table)
        assert found is not None
        columns = tuple(
            CapturedColumn(c.name, c.column_id, c.source_type, ordinal, c.is_computed, c.lake_type)
            for ordinal, c in enumerate(found.columns, 1)
        )
        key = found.primary_key.columns if found.primary_key else ()
        return CaptureInstance(
            object_id=object_id,
            database="test",
            capture_instance=name or f"public_{table}",
            source_schema="public",
            source_table=table,
            source_object_id=found.source_object_id,
            start_lsn=None,
            supports_net_changes=bool(key),
            role_name=None,
            index_name=None,
            filegroup_name=None,
            create_date=datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
            columns=columns,
            index_columns=tuple(IndexColumn(column, n, n) for n, column in enumerate(key, 1)),
            source_columns=found.shape,
        )

    def pieces(self, limit: ReadLimit = EVERYTHING, log: PostgresLog | None = None) -> list[LogPiece]:
        log = log or self.log
        pieces = list(log.read(self.after, log.log_end(), limit))
        if pieces:
            self.after = pieces[-1].transactions[-1].commit_lsn
        return pieces

    def rows(self, limit: ReadLimit = EVERYTHING) -> list[tuple[Any, ...]]:
        """(operation, column, …) of every image read, in the order of the log."""
        return [row[3:] for row in placed_rows(self.pieces(limit))]

    def another_log(self, dsn: str | None = None) -> PostgresLog:
        """A second reader of the same slot, as after a restart; ``dsn`` where it has another role."""
        log = PostgresLog(dsn or self.dsn, slot_name(self.connection.info.dbname), PUBLICATION)
        self.opened.append(log)
        return log


def placed_rows(pieces: list[LogPiece]) -> list[tuple[Any, ...]]:
    """(commit position, command, table, operation, column, …) of every image, in the order of the log."""
    rows = []
    for piece in pieces:
        for changes in piece.changes:
            values = [column.to_pylist() for column in changes.images.columns]
            images = zip(*values, strict=True) if values else [()] * len(changes)
            for place, image in enumerate(images):
                commit = piece.transactions[changes.transaction[place]].commit_lsn.position
                table, operation = changes.relation.table, int(changes.operation[place])
                rows.append((commit, int(changes.command[place]), table, operation, *image))
    return sorted(rows, key=lambda row: (row[0], row[1], row[3]))


def changes_count(pieces: list[LogPiece]) -> int:
    return sum(int(np.count_nonzero(c.operation != 3)) for piece in pieces for c in piece.changes)


@pytest.fixture
def new_source(new_database: Callable[[], str]) -> Iterator[Callable[[], Source]]:
    """Makes databases that are enabled for capture."""
    made: list[Source] = []

    def make() -> Source:
        dsn = new_database()
        connection = psycopg.connect(dsn, autocommit=True)
        slot = slot_name(connection.info.dbname)
        admin = PostgresAdmin(dsn, slot, "test")
        admin.enable_database()
        made.append(Source(dsn, admin, PostgresLog(dsn, slot, PUBLICATION, "test"), connection))
        return made[-1]

    yield make
    for source in made:
        for log in (source.log, *source.opened):
            log.close()
        source.connection.close()


@pytest.fixture
def source(new_source: Callable[[], Source]) -> Source:
    """A database that is enabled for capture, no table yet."""
    return new_source()
