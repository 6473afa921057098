"""The alert hook and the alerts that were raised; several agents raise and tell each of them once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, Select, and_, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from engine.control.connections import Connections, database_id
from engine.control.schema import alert_hook, alerts, databases
from engine.model.alert import Alert, AlertHook, AlertKind

CLAIM = timedelta(minutes=2)
"""After so long another agent tells what one took upon itself and never did."""
_CLEARED_UNTOLD = and_(alerts.c.cleared_at.is_not(None), alerts.c.cleared_told.is_(None))
_UNTOLD = or_(alerts.c.raised_told.is_(None), _CLEARED_UNTOLD)


class AlertRepository:
    """Alerts as rows: at most one of a kind stands for a database, or for the home."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def hook(self) -> AlertHook:
        """Who is told; the defaults, and nobody, before it was set."""
        columns = [column for column in alert_hook.columns if column.name != "hook_id"]
        with self._connections.read() as connection:
            row = connection.execute(select(*columns)).one_or_none()
        return AlertHook() if row is None else AlertHook(**row._mapping)

    def set_hook(self, hook: AlertHook) -> None:
        """Another hook, from now on."""
        new = insert(alert_hook).values(hook_id=1, **asdict(hook))
        with self._connections.begin() as connection:
            connection.execute(new.on_conflict_do_update(index_elements=["hook_id"], set_=asdict(hook)))

    def note(
        self,
        database: str | None,
        standing: Mapping[AlertKind, str],
        unknown: frozenset[AlertKind],
        now: datetime,
    ) -> None:
        """Raises what stands and did not, clears what stood and does not; of the unknown nothing changes.

        database: None for what is about the home as a whole.
        """
        with self._connections.begin() as connection:
            key = None if database is None else database_id(connection, database)
            # IS NOT DISTINCT FROM: NULL is the home.
            open_ = (alerts.c.database_id.is_not_distinct_from(key), alerts.c.cleared_at.is_(None))
            stands = {row.kind for row in connection.execute(select(alerts.c.kind).where(*open_))}
            over = [kind for kind in stands if kind not in standing and kind not in unknown]
            if over:
                cleared = update(alerts).where(*open_, alerts.c.kind.in_(over))
                connection.execute(cleared.values(cleared_at=now))
            for kind in sorted(set(standing) - stands):
                values = {"database_id": key, "kind": kind, "text": standing[kind], "raised_at": now}
                connection.execute(insert(alerts).values(values).on_conflict_do_nothing())

    def claim(self) -> Alert | None:
        """The oldest alert that nobody has told yet, to be told by the caller; None where there is none."""
        free = or_(alerts.c.claimed_at.is_(None), alerts.c.claimed_at < func.now() - literal(CLAIM))
        with self._connections.begin() as connection:
            number = connection.scalar(
                select(alerts.c.alert_id)
                .where(_UNTOLD, free)
                .order_by(alerts.c.alert_id)
                .limit(1)
                .with_for_update(skip_locked=True)
            )
            if number is None:
                return None
            mine = alerts.c.alert_id == number
            connection.execute(update(alerts).where(mine).values(claimed_at=func.now()))
            return _alert(connection.execute(_alerts().where(mine)).one())

    def told(self, alert: Alert, event: str, how: str) -> None:
        """How the hook took it; ``event``: raised or cleared."""
        column = "raised_told" if event == "raised" else "cleared_told"
        with self._connections.begin() as connection:
            mine = alerts.c.alert_id == alert.alert_id
            connection.execute(update(alerts).where(mine).values({column: how, "claimed_at": None}))

    def list(self, limit: int) -> list[Alert]:
        """The newest alerts, newest first."""
        with self._connections.read() as connection:
            rows = connection.execute(_alerts().order_by(alerts.c.alert_id.desc()).limit(limit))
            return [_alert(row) for row in rows]


def _alerts() -> Select[Any]:
    return select(alerts, databases.c.name).outerjoin(databases)


def _alert(row: Row[Any]) -> Alert:
    return Alert(
        row.alert_id,
        row.name or "",
        AlertKind(row.kind),
        row.text,
        row.raised_at,
        row.cleared_at,
        row.raised_told,
        row.cleared_told,
    )
