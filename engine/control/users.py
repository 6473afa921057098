"""Users who log in, with their roles, and what holds for the dashboard as a whole."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import Row, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from engine.control.connections import Connections
from engine.control.schema import dashboard_settings, users
from engine.model.dashboard import DashboardSettings
from engine.model.user import Membership, Role


class UserRepository:
    """Roles by the names that a provider of identities gives."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def get(self, name: str) -> Membership | None:
        """A user's role; None where there is none."""
        with self._connections.read() as connection:
            row = connection.execute(select(users).where(users.c.name == name)).one_or_none()
        return None if row is None else _membership(row)

    def list(self) -> list[Membership]:
        """Every user with a role, by name."""
        with self._connections.read() as connection:
            return [_membership(row) for row in connection.execute(select(users).order_by(users.c.name))]

    def set(self, name: str, role: Role, principal: str | None, changed_by: str) -> None:
        """Another role, from the next call on."""
        values = {"role": str(role), "principal": principal, "changed_by": changed_by}
        new = insert(users).values(name=name, changed_at=func.clock_timestamp(), **values)
        later = {**values, "changed_at": func.clock_timestamp()}
        with self._connections.begin() as connection:
            connection.execute(new.on_conflict_do_update(index_elements=["name"], set_=later))

    def remove(self, name: str) -> bool:
        """Takes a user's role; whether there was one."""
        with self._connections.begin() as connection:
            return connection.execute(delete(users).where(users.c.name == name)).rowcount > 0

    def settings(self) -> DashboardSettings:
        """What holds for the dashboard; the defaults before it was set."""
        query = select(dashboard_settings.c.exports, dashboard_settings.c.zone)
        with self._connections.read() as connection:
            row = connection.execute(query).one_or_none()
        return DashboardSettings() if row is None else DashboardSettings(row.exports, row.zone)

    def set_settings(self, settings: DashboardSettings) -> None:
        """Another, from now on."""
        new = insert(dashboard_settings).values(settings_id=1, **asdict(settings))
        with self._connections.begin() as connection:
            changed = new.on_conflict_do_update(index_elements=["settings_id"], set_=asdict(settings))
            connection.execute(changed)


def _membership(row: Row[Any]) -> Membership:
    return Membership(row.name, Role(row.role), row.principal, row.changed_at, row.changed_by)
