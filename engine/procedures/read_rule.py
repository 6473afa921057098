"""Who may read a capture instance: the rule R-read (reference/procedures.md), in one place.

Whoever owns the database sees everything. Anyone else needs SELECT on all captured columns of the source
table and, where the instance has a gating role, membership in it. Privileges are the source's own, asked
anew at each call: what was granted or revoked there holds at once.

A user of the dashboard to whom no role of the source was given (`NOBODY`) sees what no gating role keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import SelectDenied
from engine.model.capture_instance import CaptureInstance
from engine.model.user import NOBODY
from engine.procedures.databases import Databases
from engine.sources.base import Privileges


def may_read(instance: CaptureInstance, privileges: Privileges) -> bool:
    """The rule itself."""
    if privileges.is_owner:
        return True
    gate = instance.role_name is None or instance.role_name in privileges.member_of
    return gate and instance.object_id in privileges.selectable


class ReadRule:
    """The rule over databases: a principal is a role of the source, None the owner."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases

    def readable(
        self, database: str, instances: Sequence[CaptureInstance], principal: str | None
    ) -> list[CaptureInstance]:
        """Those of ``instances`` that the principal may read. Raises SourceUnreachable."""
        if principal is None or not instances:
            return list(instances)
        if principal == NOBODY:
            return [instance for instance in instances if instance.role_name is None]
        privileges = self._databases.admin(database).privileges(principal, instances)
        return [instance for instance in instances if may_read(instance, privileges)]

    def allows(self, instance: CaptureInstance, principal: str | None) -> bool:
        """Whether the principal may read this one. Raises SourceUnreachable."""
        return bool(self.readable(instance.database, [instance], principal))

    def check(self, instance: CaptureInstance, principal: str | None, function: str) -> None:
        """Raises SelectDenied, which names the query function called, unless the principal may read."""
        if not self.allows(instance, principal):
            raise SelectDenied(function, instance.database)
