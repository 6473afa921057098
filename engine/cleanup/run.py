"""Cleanup by retention: low endpoints move first, together, then rows go (reference/behaviour.md, 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime

import structlog
from pyspark.sql import SparkSession

from engine.capture.crash_points import CleanupCrashPoint, CrashPoints
from engine.cleanup.error_rows import drop_stale, error_row
from engine.cleanup.plan import CleanupPlan, ObsoleteTable, mapped_since, tables_below
from engine.control import ControlDatabase, Lease
from engine.errors import (
    CdcError,
    CleanupFailed,
    LeaseLost,
    LowEndpointNotComputed,
    ObsoleteMappingRowsLeft,
    ObsoleteRowsLeft,
)
from engine.lake.deletion import delete_below
from engine.lake.failures import LakeFailed
from engine.lake.file_deletion import FileDeletion
from engine.lake.tables import Lake
from engine.model.cleanup import RetentionOutcome
from engine.model.client import HeldInstance
from engine.model.job import CleanupParameters
from engine.model.lsn import Lsn

_log = structlog.get_logger(__name__)

ATTEMPTS = 3
"""How often a table is tried: a commit of capture may have come in between."""


class RetentionCleanup:
    """sys.sp_MScdc_cleanup_job for the databases of one control database.

    holding: keeps a table from being dropped while a statement runs on it. by_files: of the process that
    commits to the lake.
    """

    def __init__(
        self,
        control: ControlDatabase,
        lake: Lake,
        spark: SparkSession,
        clock: Callable[[], datetime],
        crash: CrashPoints | None = None,
        holding: Callable[[str], AbstractContextManager[None]] = lambda path: nullcontext(),
        by_files: FileDeletion | None = None,
    ) -> None:
        self._control = control
        self._lake = lake
        self._spark = spark
        self._clock = clock
        self._crash = crash or CrashPoints()
        self._holding = holding
        self._by_files = by_files

    def run(
        self,
        lease: Lease,
        parameters: CleanupParameters,
        stop: Callable[[], bool] = lambda: False,
        progress: Callable[[int], None] = lambda deleted: None,
    ) -> RetentionOutcome:
        """Cleans up the database that the lease is for, until ``stop``; ``progress`` hears of each statement.

        Never past a client: its instance's low endpoint stays where the slowest has come to, and
        cdc.lsn_time_mapping goes back as far. Clients that were silent for too long are dropped first.
        Raises LowEndpointNotComputed, then nothing has changed; LeaseLost. What a table keeps in spite
        of it is in the outcome; each failure is a row of sys.dm_cdc_errors too.
        """
        database = lease.database
        plan = CleanupPlan(self._control, self._lake, database, self._spark)
        low = self._low_watermark(plan, lease, parameters.retention)
        if low is None:
            return RetentionOutcome(None, 0)
        dropped = drop_stale(self._control, database, self._clock())
        before = self._control.instances.list(database)
        held = self._raise(plan, lease, low)
        since = mapped_since(low, held)
        after = self._control.instances.list(database)
        effects = {each.capture_instance: each for each in plan.effects(before, after, since, held)}
        self._crash.reach(CleanupCrashPoint.BEFORE_DELETING)
        deleted, failures = 0, []
        for table in tables_below(self._lake, database, after, since):
            effect = effects[table.capture_instance]
            try:
                for rows in self._delete(table, lease, parameters.threshold, stop):
                    deleted += rows
                    effect = replace(effect, rows=effect.rows + rows, statements=effect.statements + 1)
                    progress(deleted)
            except LakeFailed as error:
                if self._is_there(database, table):
                    failures.append(self._failed(lease, _left(table, error), low))
                    effect = replace(effect, failed=True)
            effects[table.capture_instance] = effect
        if failures:
            self._failed(lease, CleanupFailed(database, failures[0]), low)
        tables = tuple(effects.values())
        return RetentionOutcome(low, deleted, stop(), tuple(failures), held, tuple(dropped), tables)

    def _raise(self, plan: CleanupPlan, lease: Lease, low: Lsn) -> tuple[HeldInstance, ...]:
        """Moves low endpoints, in one transaction; those that clients keep behind."""
        clients = self._control.clients.list(lease.database)
        done = self._control.low_endpoints.raise_all(lease, low, self._clock(), plan.rounded(clients, low))
        _log.info(
            "low endpoints raised",
            database=lease.database,
            low_endpoint=str(low),
            capture_instances=done.raised,
            held=[str(each) for each in done.held],
        )
        return done.held

    def _low_watermark(self, plan: CleanupPlan, lease: Lease, retention: int) -> Lsn | None:
        """As `CleanupPlan.low_watermark`; that it could not be computed is an error row too."""
        try:
            return plan.low_watermark(retention)
        except LowEndpointNotComputed as error:
            self._failed(lease, error, Lsn.ZERO)
            raise

    def _is_there(self, database: str, table: ObsoleteTable) -> bool:
        """Whether nobody has disabled it meanwhile."""
        if table.capture_instance is None:
            return self._control.watermarks.identity(database) is not None
        return self._control.instances.get(database, table.capture_instance) is not None

    def _delete(
        self, table: ObsoleteTable, lease: Lease, threshold: int, stop: Callable[[], bool]
    ) -> Iterator[int]:
        """The rows that each statement deleted. Raises LeaseLost; LakeFailed after the last attempt."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                yield from self._statements(table, lease, threshold, stop)
                return
            except LakeFailed as error:
                if attempt == ATTEMPTS:
                    raise
                _log.warning("statement is tried again", database=lease.database, error=error.line())

    def _statements(
        self, table: ObsoleteTable, lease: Lease, threshold: int, stop: Callable[[], bool]
    ) -> Iterator[int]:
        statements = delete_below(self._spark, table.path, table.low, threshold, table.key, self._by_files)
        while not stop():
            with self._holding(table.path):
                # One that goes now waits; one that is gone must not be written to.
                rows = next(statements, None) if self._is_there(lease.database, table) else None
            if rows is None:
                return
            yield rows
            self._crash.reach(CleanupCrashPoint.BETWEEN_STATEMENTS)
            if not self._control.leases.renew(lease):
                raise LeaseLost(lease.database, lease.token)

    def _failed(self, lease: Lease, error: CdcError, low: Lsn) -> str:
        """Records an error as a row of sys.dm_cdc_errors that belongs to no scan session; its line.

        Raises LeaseLost where the lease stands no more: then the database may have been disabled.
        """
        self._control.errors.add(lease.database, error_row(error, low, self._clock()), lease)
        _log.error("cleanup failed", database=lease.database, error=error.line())
        return error.line()


def _left(table: ObsoleteTable, error: CdcError) -> CdcError:
    """What to say where rows of a table are left."""
    if table.capture_instance is None:
        return ObsoleteMappingRowsLeft(error)
    return ObsoleteRowsLeft(table.capture_instance, error)
