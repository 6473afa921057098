"""Who acts: a user, their role, and whose rights at the sources are theirs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

NOBODY = ""
"""The principal of a user who has none at the sources: no role of PostgreSQL has this name."""


class Role(StrEnum):
    """What a user may do: a viewer reads, an operator runs jobs too, an admin may all."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, least: Role) -> bool:
        """Whether this role may do what needs ``least``."""
        return _ORDER.index(self) >= _ORDER.index(least)


_ORDER = tuple(Role)


@dataclass(frozen=True, slots=True)
class User:
    """Someone who acts. ``role`` None: may nothing. ``principal``: a role of the sources, None for none."""

    name: str
    role: Role | None
    principal: str | None = None

    @property
    def reads_as(self) -> str | None:
        """The principal whose change data are this user's; None: all there are, as their owner.

        Without a principal an admin reads as the owner, others what no gating role keeps.
        """
        if self.principal is not None:
            return self.principal
        return None if self.role is Role.ADMIN else NOBODY

    def may(self, least: Role) -> bool:
        """Whether the role covers that one."""
        return self.role is not None and self.role.covers(least)


@dataclass(frozen=True, slots=True)
class Membership:
    """A row of the roles: what an admin gave a user who logs in, when, and which admin."""

    name: str
    role: Role
    principal: str | None
    changed_at: datetime
    changed_by: str

    @property
    def user(self) -> User:
        """The user with this role."""
        return User(self.name, self.role, self.principal)
