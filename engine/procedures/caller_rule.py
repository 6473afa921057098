"""Who may call the procedures (the Permission rows of reference/procedures.md), in one place.

A superuser of the source is sysadmin. The owner of the database is db_owner, and so is whoever is a member
of its role, or of a role named db_owner where the server has one. A role that is not there may nothing.
Who may read is another rule: `read_rule`.
"""

from __future__ import annotations

from engine.errors import CallerNotOwner, CallerNotSysadmin
from engine.procedures.databases import Databases


class CallerRule:
    """The rule over databases: a principal is a role of the source, None the home's owner, who may all."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases

    def check_sysadmin(self, database: str, principal: str | None) -> None:
        """Raises CallerNotSysadmin (22902) unless the principal is sysadmin; UnknownDatabase."""
        if principal is None:
            return
        if not self._databases.admin(database).privileges(principal, ()).is_sysadmin:
            raise CallerNotSysadmin("sysadmin")

    def check_owner(self, database: str, principal: str | None) -> None:
        """Raises CallerNotOwner (22904) unless the principal is db_owner or sysadmin; UnknownDatabase."""
        if principal is None:
            return
        if not self._databases.admin(database).privileges(principal, ()).is_owner:
            raise CallerNotOwner
