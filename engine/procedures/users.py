"""Roles of those who log in, and what holds for the dashboard as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from engine.control import ControlDatabase
from engine.errors import ExportsOff, RoleInvalid, UserUnknown
from engine.model.dashboard import ZONES, DashboardSettings
from engine.model.user import Membership, Role

LONGEST_NAME = 320
"""As long as an e-mail address can be."""


class Users:
    """The roles of a home."""

    def __init__(self, control: ControlDatabase) -> None:
        self._control = control

    def list(self) -> Sequence[Membership]:
        """Every user with a role, by name."""
        return self._control.users.list()

    def set(self, name: str, role: str, principal: str | None, changed_by: str) -> None:
        """Gives a role. Raises RoleInvalid."""
        name = name.strip()
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            raise RoleInvalid(f"The name '{name}'", f"give 1 to {LONGEST_NAME} printable characters")
        if role not in tuple(Role):
            raise RoleInvalid(f"The role '{role}'", f"roles are {', '.join(Role)}")
        principal = (principal or "").strip() or None
        self._control.users.set(name, Role(role), principal, changed_by)

    def drop(self, name: str) -> None:
        """Takes a role. Raises UserUnknown."""
        if not self._control.users.remove(name):
            raise UserUnknown(name)

    def set_settings(self, settings: DashboardSettings) -> None:
        """What holds from now on. Raises RoleInvalid for a zone that is none."""
        if settings.zone not in ZONES:
            raise RoleInvalid(f"The zone '{settings.zone}'", f"zones are {', '.join(ZONES)}")
        self._control.users.set_settings(settings)

    def check_exports(self) -> None:
        """Raises ExportsOff where downloads are switched off."""
        if not self._control.users.settings().exports:
            raise ExportsOff
