"""Compactions: asked for by anybody, run by the agent; of each database the last one is kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from engine.control.connections import Connections
from engine.control.notifications import JOBS, REPORTED, notify
from engine.control.schema import compactions, databases
from engine.model.compaction import CompactionRun
from engine.model.job import RunOutcome


class CompactionRepository:
    """One row for each database that was ever to be compacted."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def ask(self, database: str) -> None:
        """Wants the database compacted; the agent is told. Nothing where there is no such database."""
        key = select(databases.c.database_id, literal(True), literal("")).where(databases.c.name == database)
        new = insert(compactions).from_select(["database_id", "wanted", "message"], key)
        with self._connections.begin() as connection:
            connection.execute(
                new.on_conflict_do_update(index_elements=["database_id"], set_={"wanted": True})
            )
            notify(connection, JOBS, database)

    def get(self, database: str) -> CompactionRun | None:
        """The database's row; None where nobody ever asked."""
        with self._connections.read() as connection:
            row = connection.execute(_rows().where(databases.c.name == database)).one_or_none()
        return None if row is None else _run(row)

    def wanted(self) -> Sequence[str]:
        """Databases that are to be compacted."""
        query = select(databases.c.name).join(compactions).where(compactions.c.wanted)
        with self._connections.read() as connection:
            return list(connection.scalars(query.order_by(databases.c.name)))

    def begin(self, database: str, now: datetime) -> None:
        """A run begins: what is asked from now on is another."""
        started = {
            "wanted": False,
            "start_time": now,
            "end_time": None,
            "outcome": RunOutcome.RUNNING,
            "message": "Running.",
        }
        self._set(database, started)

    def finish(
        self, database: str, now: datetime, outcome: RunOutcome, message: str, again: bool = False
    ) -> None:
        """A run has ended; ``again``: it is wanted still. A database that is gone is no error."""
        ended: dict[str, Any] = {"end_time": now, "outcome": outcome, "message": message}
        self._set(database, ended | ({"wanted": True} if again else {}))

    def _set(self, database: str, values: dict[str, Any]) -> None:
        key = select(databases.c.database_id).where(databases.c.name == database).scalar_subquery()
        with self._connections.begin() as connection:
            connection.execute(update(compactions).where(compactions.c.database_id == key).values(values))
            notify(connection, REPORTED, database)


def _rows() -> Select[Any]:
    return select(compactions, databases.c.name).join(databases)


def _run(row: Row[Any]) -> CompactionRun:
    return CompactionRun(
        database=row.name,
        wanted=row.wanted,
        start_time=row.start_time,
        end_time=row.end_time,
        outcome=None if row.outcome is None else RunOutcome(row.outcome),
        message=row.message,
    )
