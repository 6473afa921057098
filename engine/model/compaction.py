"""What compaction of a database's tables did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from engine.model.job import RunOutcome


@dataclass(frozen=True, slots=True)
class CompactionOutcome:
    """Small files that went, files in their place, and files without a reference that were deleted.

    stopped: told to end before it was done; failures: what a table refused, as lines of errors.
    """

    compacted: int = 0
    written: int = 0
    vacuumed: int = 0
    stopped: bool = False
    failures: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = (
            f"{self.compacted:,} small files became {self.written:,}; {self.vacuumed:,} unused files deleted."
        )
        return " ".join([words, *self.failures])


@dataclass(frozen=True, slots=True)
class CompactionRun:
    """The last compaction of a database, and whether another is asked for. Times are UTC.

    start_time: None before the first; end_time: None while it runs, or where the agent ended in it.
    """

    database: str
    wanted: bool
    start_time: datetime | None = None
    end_time: datetime | None = None
    outcome: RunOutcome | None = None
    message: str = ""
