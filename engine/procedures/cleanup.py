"""Cleaning up (reference/procedures.md, 3 and 4): low endpoints move first, then rows go."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog

from engine.cleanup.error_rows import client_row, drop_stale
from engine.control import ControlDatabase, LeaseOf
from engine.control.renewal import renewing
from engine.errors import (
    CdcError,
    CleanupFailed,
    JobMissing,
    LowWatermarkNotMapped,
    LowWatermarkOutsideTimeline,
    ObjectDenied,
    ObsoleteRowsLeft,
    ParameterEmpty,
    ThresholdOutOfRange,
)
from engine.lake.tables import Lake
from engine.model.capture_instance import CaptureInstance
from engine.model.cleanup import CleanupOutcome, RetentionOutcome
from engine.model.client import Client
from engine.model.job import JobType
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanError
from engine.procedures.databases import Databases
from engine.procedures.job_rules import check_cleanup_parameters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = structlog.get_logger(__name__)

THRESHOLD = 5000
"""Rows that one statement deletes at most, unless another number is given."""
LEASE_SECONDS = 10
"""How long a caller that died keeps others from cleaning up."""


class Cleanup:
    """Cleans up change tables: one, or all of a database by retention."""

    def __init__(
        self,
        control: ControlDatabase,
        databases: Databases,
        lake: Lake,
        spark: Callable[[], SparkSession],
        clock: Callable[[], datetime],
    ) -> None:
        self._control = control
        self._databases = databases
        self._lake = lake
        self._spark = spark
        self._clock = clock

    def change_table(
        self,
        database: str,
        capture_instance: str,
        low_water_mark: Lsn | None,
        threshold: int | None,
        force: bool = False,
    ) -> CleanupOutcome:
        """sys.sp_cdc_cleanup_change_table.

        An instance that is unknown is refused as one that may not be seen is (22981; not documented). A
        low watermark beyond a client is refused (LowWatermarkPassesClient): whoever registered it relies on
        the changes being there, and may not be who cleans up. With ``force`` the client is dropped, with an
        error row: one that was passed and still counts would believe that it missed nothing.
        """
        name = self._databases.enabled(database).name
        if not capture_instance:
            raise ParameterEmpty("@capture_instance")
        if threshold is None:
            raise ThresholdOutOfRange
        check_cleanup_parameters(JobType.CLEANUP, threshold=threshold)
        instance = self._control.instances.get(name, capture_instance)
        if instance is None:
            raise ObjectDenied
        low = instance.start_lsn
        if low_water_mark is not None:
            low = self._move(instance, low_water_mark, force)
        return CleanupOutcome(low, 0) if low is None else self._delete(instance, low, threshold)

    def by_retention(self, database: str) -> RetentionOutcome:
        """sys.sp_MScdc_cleanup_job, in the caller's process: with the parameters of the cleanup job's row.

        Under the same lease as the agent's run. Raises JobMissing, LowEndpointNotComputed, CleanupFailed.
        """
        name = self._databases.enabled(database).name
        job = self._control.jobs.get(name, JobType.CLEANUP)
        if job is None:
            raise JobMissing(JobType.CLEANUP, name)
        from engine.cleanup.run import RetentionCleanup  # imports pyspark

        leases = self._control.leases
        lease = leases.acquire(name, f"sp_MScdc_cleanup_job {uuid4()}", LEASE_SECONDS, LeaseOf.CLEANUP)
        if lease is None:
            raise CleanupFailed(name, f"{job.name} runs already.")
        try:
            with renewing(leases, lease, LEASE_SECONDS):
                cleanup = RetentionCleanup(self._control, self._lake, self._spark(), self._clock)
                outcome = cleanup.run(lease, job.configured)
        finally:
            leases.release(lease)
        if outcome.failures:
            raise CleanupFailed(name, " ".join(outcome.failures))
        return outcome

    def _move(self, instance: CaptureInstance, wanted: Lsn, force: bool) -> Lsn:
        """Moves the low endpoint; of transactions that ended at one time, the first is taken.

        Raises LowWatermarkNotMapped, LowWatermarkOutsideTimeline, LowWatermarkPassesClient; then nothing
        has changed, but for clients that were silent for too long: those are dropped.
        """
        high = self._control.watermarks.get(instance.database).high
        from engine.query.lsn_functions import LsnTimeMapping  # imports pyspark

        chosen = LsnTimeMapping(self._spark(), self._lake, instance.database, high).first_of_time(wanted)
        if chosen is None:
            raise LowWatermarkNotMapped(wanted)
        if instance.start_lsn is None or wanted < instance.start_lsn:
            raise LowWatermarkOutsideTimeline(wanted, instance.capture_instance, instance.start_lsn, high)
        chosen = max(chosen, instance.start_lsn)
        drop_stale(self._control, instance.database, self._clock())
        passed = self._passed if force else None
        self._control.low_endpoints.raise_one(instance.object_id, chosen, passed)
        return chosen

    def _passed(self, client: Client) -> ScanError:
        return client_row(client, "the change table was cleaned up beyond it, by force.", self._clock())

    def _delete(self, instance: CaptureInstance, low: Lsn, threshold: int) -> CleanupOutcome:
        from engine.lake.deletion import delete_below  # imports pyspark

        path = self._lake.change_table(instance.database, instance.capture_instance)
        deleted = 0
        try:
            for rows in delete_below(self._spark(), path, low, threshold):
                deleted += rows
        except CdcError as error:
            left = ObsoleteRowsLeft(instance.capture_instance, error)
            _log.warning(str(left), database=instance.database)
            return CleanupOutcome(low, deleted, cleanup_failed=True, message=left.line())
        return CleanupOutcome(low, deleted)
