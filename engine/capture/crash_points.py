"""Named places of the scan cycle, of cleanup, compaction and collection, where a test may kill the process.

``HIGHWATER_CRASH_AT=before_publishing`` kills at the first passage, ``before_publishing:3`` at the
third. Nothing but SIGKILL: what a power cut or the kernel's out-of-memory killer would do.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

VARIABLE = "HIGHWATER_CRASH_AT"


class CrashPoint(StrEnum):
    """Where a scan cycle can be cut."""

    AFTER_READING = "after_reading"
    BETWEEN_CHANGE_TABLE_COMMITS = "between_change_table_commits"
    BEFORE_PUBLISHING = "before_publishing"
    AFTER_PUBLISHING = "after_publishing"
    BEFORE_CONFIRMING = "before_confirming"


class CleanupCrashPoint(StrEnum):
    """Where a cleanup by retention can be cut."""

    BEFORE_DELETING = "before_deleting"
    BETWEEN_STATEMENTS = "between_statements"


class CompactionCrashPoint(StrEnum):
    """Where a compaction can be cut: with its files written and not yet committed, and after the commit."""

    BEFORE_COMPACTING = "before_compacting"
    AFTER_COMPACTING = "after_compacting"


class CollectionCrashPoint(StrEnum):
    """Where a collection of snapshots can be cut."""

    BETWEEN_OUTPUT_TABLES = "between_output_tables"
    BEFORE_COUNTING = "before_counting"


Point = CrashPoint | CleanupCrashPoint | CollectionCrashPoint | CompactionCrashPoint
_KINDS: tuple[type[Point], ...] = (
    CleanupCrashPoint,
    CompactionCrashPoint,
    CollectionCrashPoint,
    CrashPoint,
)


class CrashPoints:
    """Counts passages and kills the process at the one asked for; nothing where none is."""

    def __init__(self, at: Point | None = None, passage: int = 1) -> None:
        self._at = at
        self._passage = passage
        self._passed: Counter[str] = Counter()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> CrashPoints:
        """What ``HIGHWATER_CRASH_AT`` asks for. ValueError for a name that is no crash point."""
        asked = environment.get(VARIABLE)
        if not asked:
            return cls()
        name, _, passage = asked.partition(":")
        kind = next((kind for kind in _KINDS if name in kind.__members__.values()), CrashPoint)
        return cls(kind(name), int(passage or 1))

    def reach(self, point: Point | str) -> None:
        """Tells that the work is at ``point``: the process may end here."""
        self._passed[point] += 1
        if point == self._at and self._passed[point] == self._passage:
            os.kill(os.getpid(), signal.SIGKILL)
