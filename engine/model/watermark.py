"""How far a database is captured and published."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from engine.model.lsn import Lsn


@dataclass(frozen=True, slots=True)
class Watermarks:
    """Positions of one database; None where nothing was published yet. Times are UTC.

    high: the high watermark, max(start_lsn) of cdc.lsn_time_mapping; readers see nothing above it.
    checkpoint: commit LSN of the last transaction read and published; reading resumes after it.
    scanned: the log position up to which everything committed is published.
    last_commit_time: commit time belonging to ``high``.
    published_at: when ``scanned`` last moved.
    """

    database: str
    high: Lsn | None
    checkpoint: Lsn | None
    scanned: Lsn | None
    last_commit_time: datetime | None
    published_at: datetime | None
