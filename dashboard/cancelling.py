"""Who may cancel background work: their own an operator, anybody's an admin. Pure."""

from __future__ import annotations

from engine.model.user import Role, User

OWN, ANYBODYS = Role.OPERATOR, Role.ADMIN


def missing_role(user: User, owner: str) -> str | None:
    """Why that user may not cancel work of that owner; None when they may."""
    is_own = user.name == owner
    least = OWN if is_own else ANYBODYS
    if user.may(least):
        return None
    whose = "" if is_own else "It is somebody else's. "
    return f"{whose}Needs the role {least}; yours is {user.role or 'none'}."
