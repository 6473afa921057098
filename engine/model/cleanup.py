"""What cleanup did: of one change table, or by retention."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from engine.model.client import Client, HeldInstance
from engine.model.job import CleanupParameters, TableCleanup
from engine.model.lsn import Lsn


@dataclass(frozen=True, slots=True)
class CleanupOutcome:
    """sys.sp_cdc_cleanup_change_table: the low endpoint afterwards, and the rows deleted below it.

    ``cleanup_failed`` is the original's @fCleanupFailed: the low endpoint has moved, but some obsolete rows
    are still there; ``message`` then says why. Cleaning up again with NULL goes on.
    """

    low_endpoint: Lsn | None
    deleted_rows: int
    cleanup_failed: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class RetentionOutcome:
    """A cleanup by retention: the low endpoint it computed, and the rows it deleted below that.

    low_endpoint: None where nothing has been captured yet. deleted_rows: of change tables and of
    cdc.lsn_time_mapping. stopped: it was told to end before it was done. failures: what could not be
    deleted, as lines of errors; low endpoints have moved all the same. held: instances whose low endpoint
    stays behind for a client. dropped: clients that were silent for too long. tables: what each came to.
    """

    low_endpoint: Lsn | None
    deleted_rows: int
    stopped: bool = False
    failures: tuple[str, ...] = ()
    held: tuple[HeldInstance, ...] = ()
    dropped: tuple[Client, ...] = ()
    tables: tuple[TableCleanup, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class CleanupPreview:
    """What a cleanup would do if it ran now; nothing has been done.

    low_endpoint: what it computes, None where nothing has been captured yet; low_time: when that transaction
    was committed, UTC. tables: change tables, then cdc.lsn_time_mapping. held: instances whose low endpoint
    stays behind for a client. dropped: clients that it drops first, because they were silent for too long or,
    by an explicit low watermark, because they are passed and it is forced.
    """

    parameters: CleanupParameters
    low_endpoint: Lsn | None
    low_time: datetime | None = None
    tables: tuple[TableCleanup, ...] = ()
    held: tuple[HeldInstance, ...] = ()
    dropped: tuple[Client, ...] = ()

    @property
    def rows(self) -> int:
        """Rows that go."""
        return sum(table.rows for table in self.tables)

    @property
    def statements(self) -> int:
        """Statements that it takes."""
        return sum(table.statements for table in self.tables)
