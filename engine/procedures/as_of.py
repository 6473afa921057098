"""The steps of a table as of an LSN: what forbids it, and reading the source in a snapshot that fits."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from engine.control import ControlDatabase
from engine.errors import RowsNotTold, SyncTimeout
from engine.lake.parquet_files import local_folder
from engine.lake.tables import Lake
from engine.model.capture_instance import CaptureInstance
from engine.model.ddl_history import SchemaChange
from engine.model.lsn import Lsn
from engine.procedures.databases import Databases
from engine.procedures.jobs import Jobs
from engine.sources.base import TableSnapshot, UnseenTransactions

_ASK_AGAIN = 0.2
"""Seconds before another snapshot is taken, where a commit up to the LSN was not in the last one."""
_BESIDE_THE_LOG = re.compile(r"\b(?:TYPE|ATTACH|DETACH)\b", re.IGNORECASE)
"""Words of DDL that changes rows, or lets them come and go, without a word of each row in the log."""


@dataclass(frozen=True, slots=True)
class SourceRows:
    """A source table read in one snapshot, in files. As `TableSnapshot` says of ``end`` and ``unseen``."""

    place: Path
    row_count: int
    end: Lsn
    unseen: UnseenTransactions


Write = Callable[[Iterator[pa.RecordBatch], Path], tuple[Path, int]]
"""Writes rows into a new folder within a folder: that one, and how many rows."""


class AsOf:
    """Reads sources for tables as of an LSN."""

    def __init__(self, control: ControlDatabase, databases: Databases, jobs: Jobs, lake: Lake) -> None:
        self._control = control
        self._databases = databases
        self._jobs = jobs
        self._lake = lake

    def check(self, instance: CaptureInstance, lsn: Lsn) -> None:
        """Raises RowsNotTold where DDL since ``lsn`` hides what the rows were."""
        for change in self._control.ddl.shapes(instance.database):
            if change.history.capture_instance != instance.capture_instance or change.history.ddl_lsn <= lsn:
                continue
            if reason := hidden_by(instance, change):
                raise RowsNotTold(instance.capture_instance, f"{reason}, at {change.history.ddl_lsn}")

    def read(
        self,
        instance: CaptureInstance,
        lsn: Lsn,
        unseen_commits: Callable[[UnseenTransactions, Lsn], Sequence[Lsn]],
        write: Write,
        principal: str | None,
        timeout: float,
        check: Callable[[], None],
    ) -> SourceRows:
        """The source's rows in a snapshot with all commits up to ``lsn``; its other commits are captured.

        unseen_commits: those up to an LSN that a snapshot does not have. timeout: seconds. Raises
        RowsNotTold, SyncTimeout, SourceUnreachable, what ``check`` raises.
        """
        folder = local_folder(self._lake.results)
        if folder is None:
            raise RowsNotTold(instance.capture_instance, "the lake is in no local folder")
        deadline = time.monotonic() + timeout
        # Says what keeps capture back before a large table is read for nothing.
        self._jobs.sync(instance.database, timeout, check)
        while True:
            check()
            with self._databases.admin(instance.database).snapshot(instance) as snapshot:
                self._check_rows_are_shown(instance, snapshot, principal)
                # A commit that is captured may not be seen yet: while it waits for a standby, say.
                late = unseen_commits(snapshot.unseen, lsn)
                if not late:
                    place, count = write(snapshot.rows(), folder)
                    break
            if time.monotonic() > deadline:
                reason = f"the transaction committed at {late[0]} is in the log, but not to be seen"
                raise SyncTimeout(f"Reading the commits up to {lsn} at the source", timeout, reason)
            time.sleep(_ASK_AGAIN)
        try:
            self._jobs.sync(instance.database, max(deadline - time.monotonic(), 1), check)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        return SourceRows(place, count, snapshot.end, snapshot.unseen)

    def _check_rows_are_shown(
        self, instance: CaptureInstance, snapshot: TableSnapshot, principal: str | None
    ) -> None:
        """Change data has no row-level security; the rows that nobody changed are shown by the source's."""
        if principal is None or not snapshot.has_row_security:
            return
        if not self._databases.admin(instance.database).privileges(principal, [instance]).is_owner:
            reason = f"row-level security at the source decides which rows '{principal}' may see"
            raise RowsNotTold(instance.capture_instance, reason)


def hidden_by(instance: CaptureInstance, change: SchemaChange) -> str | None:
    """How DDL hides what the instance's rows were before it; None where it does not. Pure.

    A captured column that was dropped has taken its values with it. A type that was changed, also to the same
    one by ``USING``, has rewritten the rows, a partition that was attached or detached has brought or taken
    some, and no log has a word of each. Other DDL leaves the captured columns alone.
    """
    statement = change.history.ddl_command
    before, after = change.columns_before, change.columns_after
    if before is None or after is None:
        return f"a statement altered its columns and is not known well enough: {statement}"
    now = {column.column_id: column for column in after}
    then = {column.column_id: column for column in before}
    for column in instance.columns:
        old, new = then.get(column.column_id), now.get(column.column_id)
        if old is not None and new is None:
            return f"column '{column.column_name}' was dropped since"
        if old and new and not old.is_typed_as(new.source_type, new.lake_type, new.type_id):
            return f"column '{column.column_name}' has another type since"
    if _BESIDE_THE_LOG.search(statement):
        return f"a statement may have changed rows beside the log: {statement}"
    return None
