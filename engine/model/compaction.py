"""What compaction of a database's tables did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from engine.model.job import RunOutcome


@dataclass(frozen=True, slots=True)
class CompactionOutcome:
    """Small files that went, files in their place, and files without a reference that were deleted.

    vacuumed: None where no table was looked through, as all had been a short time ago.
    stopped: told to end before it was done; failures: what a table refused, as lines of errors.
    """

    compacted: int = 0
    written: int = 0
    vacuumed: int | None = 0
    stopped: bool = False
    failures: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = f"{self.compacted:,} small files became {self.written:,};"
        if self.vacuumed is None:
            deleted = "unused files were looked for less than an hour ago."
        else:
            deleted = f"{self.vacuumed:,} unused files deleted."
        return " ".join([words, deleted, *self.failures])


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
