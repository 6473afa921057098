"""Who may cancel background work: their own whoever began it, anybody's an admin. Pure."""

from __future__ import annotations

from engine.model.user import Role, User

OWN, ANYBODYS = Role.VIEWER, Role.ADMIN
"""What a viewer begins are reads, and those go on until their end unless who began them may cancel them."""


def missing_role(user: User, owner: str) -> str | None:
    """Why that user may not cancel work of that owner; None when they may."""
    is_own = user.name == owner
    least = OWN if is_own else ANYBODYS
    if user.may(least):
        return None
    whose = "" if is_own else "It is somebody else's. "
    return f"{whose}Needs the role {least}; yours is {user.role or 'none'}."
