"""Cleaning up (reference/procedures.md, 3 and 4): low endpoints move first, then rows go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
    LowWatermarkPassesClient,
    ObjectDenied,
    ObsoleteRowsLeft,
    ParameterEmpty,
    ThresholdOutOfRange,
)
from engine.lake.tables import Lake
from engine.model.capture_instance import CaptureInstance
from engine.model.cleanup import CleanupOutcome, CleanupPreview, RetentionOutcome
from engine.model.client import Client
from engine.model.job import CleanupParameters, JobType
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
        instance = self._asked(database, capture_instance, threshold)
        low = instance.start_lsn
        if low_water_mark is not None:
            low = self._move(instance, low_water_mark, force)
        return CleanupOutcome(low, 0) if low is None else self._delete(instance, low, threshold or THRESHOLD)

    def preview_of_table(
        self,
        database: str,
        capture_instance: str,
        low_water_mark: Lsn | None,
        threshold: int | None,
        force: bool = False,
    ) -> CleanupPreview:
        """What `change_table` would do; raises what it raises, and changes nothing at all."""
        instance = self._asked(database, capture_instance, threshold)
        parameters = CleanupParameters(threshold=threshold or THRESHOLD)
        if instance.start_lsn is None and low_water_mark is None:
            return CleanupPreview(parameters, None)
        low = instance.start_lsn
        dropped: tuple[Client, ...] = ()
        if low_water_mark is not None:
            from engine.query.mapping_files import MappingFiles  # imports Arrow

            high = self._control.watermarks.get(instance.database).high
            mapping = MappingFiles(self._lake, instance.database, high)
            low = _chosen(instance, low_water_mark, mapping.first_of_time(low_water_mark), high)
            dropped = self._met(instance, low, force)
        from engine.cleanup.plan import CleanupPlan  # imports pyspark

        plan = CleanupPlan(self._control, self._lake, instance.database)
        moved = replace(instance, start_lsn=low)
        tables = plan.counted(plan.effects([instance], [moved], None), [moved], parameters.threshold)
        return CleanupPreview(parameters, low, tables[0].time_after, tables, (), dropped)

    def preview(self, database: str, retention: int | None, threshold: int | None) -> CleanupPreview:
        """What `by_retention` would do, with the job's parameters or others."""
        name = self._databases.enabled(database).name
        job = self._control.jobs.get(name, JobType.CLEANUP)
        if job is None:
            raise JobMissing(JobType.CLEANUP, name)
        check_cleanup_parameters(JobType.CLEANUP, retention=retention, threshold=threshold)
        parameters = CleanupParameters(
            job.configured.retention if retention is None else retention,
            job.configured.threshold if threshold is None else threshold,
        )
        if self._control.watermarks.get(name).high is None:
            return CleanupPreview(parameters, None)
        from engine.cleanup.plan import CleanupPlan  # imports pyspark

        plan = CleanupPlan(self._control, self._lake, name)
        return plan.preview(parameters, self._clock())

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

    def _asked(self, database: str, capture_instance: str, threshold: int | None) -> CaptureInstance:
        name = self._databases.enabled(database).name
        if not capture_instance:
            raise ParameterEmpty("@capture_instance")
        if threshold is None:
            raise ThresholdOutOfRange
        check_cleanup_parameters(JobType.CLEANUP, threshold=threshold)
        instance = self._control.instances.get(name, capture_instance)
        if instance is None:
            raise ObjectDenied
        return instance

    def _met(self, instance: CaptureInstance, low: Lsn, force: bool) -> tuple[Client, ...]:
        """Clients that a move to ``low`` would drop. Raises LowWatermarkPassesClient."""
        now, dropped = self._clock(), []
        for client in self._control.clients.list(instance.database):
            is_passed = client.capture_instance == instance.capture_instance and (
                (client.acknowledged_lsn or Lsn.ZERO) < low
            )
            if client.is_expired(now):
                dropped.append(client)
            elif is_passed and not force:
                raise LowWatermarkPassesClient(
                    low, client.name, client.capture_instance, client.acknowledged_lsn
                )
            elif is_passed:
                dropped.append(client)
        return tuple(dropped)

    def _move(self, instance: CaptureInstance, wanted: Lsn, force: bool) -> Lsn:
        """Moves the low endpoint.

        Raises LowWatermarkNotMapped, LowWatermarkOutsideTimeline, LowWatermarkPassesClient; then nothing
        has changed, but for clients that were silent for too long: those are dropped.
        """
        high = self._control.watermarks.get(instance.database).high
        from engine.query.lsn_functions import LsnTimeMapping  # imports pyspark

        mapping = LsnTimeMapping(self._spark(), self._lake, instance.database, high)
        chosen = _chosen(instance, wanted, mapping.first_of_time(wanted), high)
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


def _chosen(instance: CaptureInstance, wanted: Lsn, first: Lsn | None, high: Lsn | None) -> Lsn:
    """Where the low endpoint goes: of transactions that ended at one time, to the first.

    Raises LowWatermarkNotMapped, LowWatermarkOutsideTimeline.
    """
    if first is None:
        raise LowWatermarkNotMapped(wanted)
    if instance.start_lsn is None or wanted < instance.start_lsn:
        raise LowWatermarkOutsideTimeline(wanted, instance.capture_instance, instance.start_lsn, high)
    return max(first, instance.start_lsn)
