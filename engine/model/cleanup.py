"""What sys.sp_cdc_cleanup_change_table did."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.lsn import Lsn


@dataclass(frozen=True, slots=True)
class CleanupOutcome:
    """The low endpoint afterwards, and the rows deleted below it.

    ``cleanup_failed`` is the original's @fCleanupFailed: the low endpoint has moved, but some obsolete rows
    are still there; ``message`` then says why. Cleaning up again with NULL goes on.
    """

    low_endpoint: Lsn | None
    deleted_rows: int
    cleanup_failed: bool = False
    message: str = ""
