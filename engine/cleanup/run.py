"""Cleanup by retention: low endpoints move first, together, then rows go (reference/behaviour.md, 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime

import structlog
from pyspark.sql import SparkSession

from engine.capture.crash_points import CleanupCrashPoint, CrashPoints
from engine.cleanup.error_rows import drop_stale, error_row
from engine.cleanup.retention import kept_since
from engine.control import ControlDatabase, Lease
from engine.errors import (
    CdcError,
    CleanupFailed,
    LeaseLost,
    LowEndpointNotComputed,
    ObsoleteMappingRowsLeft,
    ObsoleteRowsLeft,
)
from engine.lake.deletion import CHANGE_KEY, MAPPING_KEY, delete_below
from engine.lake.failures import LakeFailed, jvm_failures
from engine.lake.tables import Lake
from engine.model.cleanup import RetentionOutcome
from engine.model.client import HeldInstance
from engine.model.job import CleanupParameters
from engine.model.lsn import Lsn
from engine.query.lsn_functions import LsnTimeMapping

_log = structlog.get_logger(__name__)

ATTEMPTS = 3
"""How often a table is tried: a commit of capture may have come in between."""


@dataclass(frozen=True, slots=True)
class _Table:
    """A table whose rows below ``low`` go: a change table, or cdc.lsn_time_mapping without an instance."""

    path: str
    low: Lsn
    capture_instance: str | None = None

    @property
    def key(self) -> Sequence[str]:
        return MAPPING_KEY if self.capture_instance is None else CHANGE_KEY

    def left(self, error: CdcError) -> CdcError:
        """What to say where rows are left."""
        if self.capture_instance is None:
            return ObsoleteMappingRowsLeft(error)
        return ObsoleteRowsLeft(self.capture_instance, error)


class RetentionCleanup:
    """sys.sp_MScdc_cleanup_job for the databases of one control database.

    holding: keeps a table from being dropped while a statement runs on it.
    """

    def __init__(
        self,
        control: ControlDatabase,
        lake: Lake,
        spark: SparkSession,
        clock: Callable[[], datetime],
        crash: CrashPoints | None = None,
        holding: Callable[[str], AbstractContextManager[None]] = lambda path: nullcontext(),
    ) -> None:
        self._control = control
        self._lake = lake
        self._spark = spark
        self._clock = clock
        self._crash = crash or CrashPoints()
        self._holding = holding

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
        low = self._low_watermark(lease, parameters.retention)
        if low is None:
            return RetentionOutcome(None, 0)
        dropped = drop_stale(self._control, database, self._clock())
        held = self._raise(lease, low)
        self._crash.reach(CleanupCrashPoint.BEFORE_DELETING)
        deleted, failures = 0, []
        for table in self._tables(database, _mapped_since(low, held)):
            try:
                for rows in self._delete(table, lease, parameters.threshold, stop):
                    deleted += rows
                    progress(deleted)
            except LakeFailed as error:
                if self._is_there(database, table):
                    failures.append(self._failed(lease, table.left(error), low))
        if failures:
            self._failed(lease, CleanupFailed(database, failures[0]), low)
        return RetentionOutcome(low, deleted, stop(), tuple(failures), held, tuple(dropped))

    def _raise(self, lease: Lease, low: Lsn) -> tuple[HeldInstance, ...]:
        """Moves low endpoints, in one transaction; those that clients keep behind."""
        clients = self._control.clients.list(lease.database)
        behind = {client.acknowledged_lsn or Lsn.ZERO for client in clients}
        done = self._control.low_endpoints.raise_all(
            lease, low, self._clock(), self._rounded(lease.database, {each for each in behind if each < low})
        )
        _log.info(
            "low endpoints raised",
            database=lease.database,
            low_endpoint=str(low),
            capture_instances=done.raised,
            held=[str(each) for each in done.held],
        )
        return done.held

    def _rounded(self, database: str, acknowledged: set[Lsn]) -> dict[Lsn, Lsn | None]:
        """The last commit up to each: a low endpoint is always one, whatever a client acknowledges."""
        if not acknowledged:
            return {}
        high = self._control.watermarks.get(database).high
        mapping = LsnTimeMapping(self._spark, self._lake, database, high)
        with jvm_failures():
            return {lsn: mapping.last_upto(lsn) for lsn in acknowledged}

    def _low_watermark(self, lease: Lease, retention: int) -> Lsn | None:
        """The first commit inside of the retention; None where nothing has been captured.

        Of commits with one time the smallest LSN counts. A time that hits no entry is rounded up, so that
        nothing older is left; the reference does not say. The last captured commit is the one of the high
        watermark: should clocks have been set back, it is not later than max(tran_end_time).
        """
        database = lease.database
        high = self._control.watermarks.get(database).high
        if high is None:
            return None
        mapping = LsnTimeMapping(self._spark, self._lake, database, high)
        try:
            with jvm_failures():
                last_commit = mapping.map_lsn_to_time(high)
                since = (
                    None if last_commit is None else mapping.first_since(kept_since(last_commit, retention))
                )
        except LakeFailed as error:
            raise self._not_computed(lease, retention, str(error)) from error
        if since is None:
            words = f"cdc.lsn_time_mapping has no row of the last captured commit, {high}."
            raise self._not_computed(lease, retention, words)
        return since

    def _not_computed(self, lease: Lease, retention: int, words: str) -> CdcError:
        error = LowEndpointNotComputed(lease.database, retention, words)
        self._failed(lease, error, Lsn.ZERO)
        return error

    def _tables(self, database: str, low: Lsn) -> list[_Table]:
        """Change tables below their low endpoints, which others may have moved further, then the mapping."""
        tables = [
            _Table(
                self._lake.change_table(database, instance.capture_instance),
                instance.start_lsn,
                instance.capture_instance,
            )
            for instance in self._control.instances.list(database)
            if instance.start_lsn is not None
        ]
        return [*tables, _Table(self._lake.lsn_time_mapping(database), low)]

    def _is_there(self, database: str, table: _Table) -> bool:
        """Whether nobody has disabled it meanwhile."""
        if table.capture_instance is None:
            return self._control.watermarks.identity(database) is not None
        return self._control.instances.get(database, table.capture_instance) is not None

    def _delete(self, table: _Table, lease: Lease, threshold: int, stop: Callable[[], bool]) -> Iterator[int]:
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
        self, table: _Table, lease: Lease, threshold: int, stop: Callable[[], bool]
    ) -> Iterator[int]:
        statements = delete_below(self._spark, table.path, table.low, threshold, table.key)
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


def _mapped_since(low: Lsn, held: Sequence[HeldInstance]) -> Lsn:
    """Where cdc.lsn_time_mapping is to begin: changes that stay keep their times."""
    return min([low, *(each.low_endpoint for each in held if each.low_endpoint is not None)])
