"""What is drawn of one capture instance in the validity timeline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Bookmark:
    """How far a client has come: the commit time and LSN of what it acknowledged.

    is_behind: cleanup has passed it, so that changes are gone which it has not read. is_silent: the next
    cleanup drops it.
    """

    client: str
    lsn: str
    time: datetime
    is_behind: bool = False
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Lane:
    """One instance: the commit times of its low watermark (None: not established yet) and the high one.

    ``captured_until`` is up to where the log is read: between ``high`` and it nothing was committed.
    ``horizon``: from when on cleanup keeps changes; ``low_after``: of the low watermark if cleanup ran now,
    ``waits_for`` the client that keeps it back; None without a cleanup job, or where it is not known.
    """

    capture_instance: str
    source_table: str
    low: datetime | None
    high: datetime | None
    captured_until: datetime | None
    low_lsn: str
    high_lsn: str
    horizon: datetime | None = None
    low_after: datetime | None = None
    waits_for: str | None = None
    bookmarks: tuple[Bookmark, ...] = ()
