"""The audit: a row for each action, written before it begins and again when it has ended."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Row, delete, func, insert, literal, select, update

from engine.control.connections import Connections
from engine.control.schema import activity
from engine.model.activity import Action, Outcome
from engine.model.user import User


class ActivityRepository:
    """Actions as rows. They outlive the databases that they were about, until they are pruned."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def begun(self, user: User, database: str | None, command: str, statement: str) -> int:
        """A new row; its id."""
        new = insert(activity).values(
            started=func.clock_timestamp(),
            user_name=user.name,
            role=user.role and str(user.role),
            database=database,
            command=command,
            statement=statement,
            outcome=str(Outcome.RUNNING),
        )
        with self._connections.begin() as connection:
            return int(connection.scalar(new.returning(activity.c.activity_id)) or 0)

    def ended(self, activity_id: int, outcome: Outcome, number: int | None, text: str | None) -> None:
        """How it ended."""
        values = {"outcome": str(outcome), "error_number": number, "error_text": text}
        mine = update(activity).where(activity.c.activity_id == activity_id)
        with self._connections.begin() as connection:
            connection.execute(mine.values(ended=func.clock_timestamp(), **values))

    def prune(self, days: int) -> int:
        """Forgets actions that began more than ``days`` ago, by the control database's clock; how many."""
        old = delete(activity).where(activity.c.started < func.now() - literal(timedelta(days=days)))
        with self._connections.begin() as connection:
            return int(connection.execute(old).rowcount)

    def list(self, limit: int, database: str | None, user_name: str | None) -> list[Action]:
        """The newest actions, newest first."""
        query = select(activity).order_by(activity.c.activity_id.desc()).limit(limit)
        if database is not None:
            query = query.where(activity.c.database == database)
        if user_name is not None:
            query = query.where(activity.c.user_name == user_name)
        with self._connections.read() as connection:
            return [_action(row) for row in connection.execute(query)]


def _action(row: Row[Any]) -> Action:
    return Action(
        row.activity_id,
        row.started,
        row.ended,
        row.user_name,
        row.role,
        row.database,
        row.command,
        row.statement,
        Outcome(row.outcome),
        row.error_number,
        row.error_text,
    )
