"""What a cleanup does, before it does it: the rules that a run and its preview share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Protocol

from pyspark.sql import SparkSession

from engine.cleanup.retention import kept_since
from engine.control import ControlDatabase
from engine.control.low_endpoints import low_endpoint_after, slowest_of
from engine.errors import LowEndpointNotComputed
from engine.lake.deletion import CHANGE_KEY, MAPPING_KEY
from engine.lake.failures import LakeFailed, lake_failures
from engine.lake.obsolete_rows import obsolete_rows
from engine.lake.parquet_files import local_folder
from engine.lake.range_files import TableNotReadable
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA, Lake, change_table_schema
from engine.model.capture_instance import CaptureInstance
from engine.model.cleanup import CleanupPreview
from engine.model.client import Client, HeldInstance
from engine.model.job import CleanupParameters, TableCleanup
from engine.model.lsn import Lsn
from engine.query.lsn_functions import LsnTimeMapping
from engine.query.mapping_files import MappingFiles


@dataclass(frozen=True, slots=True)
class ObsoleteTable:
    """A table whose rows below ``low`` go: a change table, or cdc.lsn_time_mapping without an instance."""

    path: str
    low: Lsn
    capture_instance: str | None = None

    @property
    def key(self) -> Sequence[str]:
        """What orders its rows."""
        return MAPPING_KEY if self.capture_instance is None else CHANGE_KEY


def tables_below(
    lake: Lake, database: str, instances: Sequence[CaptureInstance], mapped_since: Lsn
) -> list[ObsoleteTable]:
    """Change tables below their low endpoints, then the mapping below ``mapped_since``."""
    tables = [
        ObsoleteTable(
            lake.change_table(database, each.capture_instance), each.start_lsn, each.capture_instance
        )
        for each in instances
        if each.start_lsn is not None
    ]
    return [*tables, ObsoleteTable(lake.lsn_time_mapping(database), mapped_since)]


def mapped_since(low: Lsn, held: Sequence[HeldInstance]) -> Lsn:
    """Where cdc.lsn_time_mapping is to begin: changes that stay keep their times."""
    return min([low, *(each.low_endpoint for each in held if each.low_endpoint is not None)])


class Mapping(Protocol):
    """What is asked of cdc.lsn_time_mapping: of the lake's files, of Spark where only that reads them."""

    def map_lsn_to_time(self, lsn: Lsn | None) -> datetime | None:
        """When this transaction was committed."""

    def first_since(self, time: datetime) -> Lsn | None:
        """The smallest commit LSN of those that ended then or later."""

    def last_upto(self, lsns: Collection[Lsn]) -> dict[Lsn, Lsn | None]:
        """The largest commit LSN up to each."""

    def times_of(self, lsns: Collection[Lsn]) -> dict[Lsn, datetime]:
        """When these transactions were committed."""


class CleanupPlan:
    """Low endpoints of one database: where cleanup by retention would move them.

    spark: of a run, for tables that only Spark reads; a preview has none.
    """

    def __init__(
        self, control: ControlDatabase, lake: Lake, database: str, spark: SparkSession | None = None
    ) -> None:
        self._control = control
        self._lake = lake
        self._database = database
        self._high = control.watermarks.get(database).high
        self._spark = spark

    @cached_property
    def _mapping(self) -> Mapping:
        """Of one version, which nobody changes while the cleanup's lease is held but to append."""
        is_local = local_folder(self._lake.lsn_time_mapping(self._database)) is not None
        if self._spark is None or is_local:
            try:
                return MappingFiles(self._lake, self._database, self._high)
            except TableNotReadable:
                if self._spark is None:
                    raise
        return LsnTimeMapping(self._spark, self._lake, self._database, self._high)

    def low_watermark(self, retention: int) -> Lsn | None:
        """The first commit inside of the retention; None where nothing has been captured.

        Of commits with one time the smallest LSN counts. A time that hits no entry is rounded up, so that
        nothing older is left; the reference does not say. The last captured commit is the one of the high
        watermark: should clocks have been set back, it is not later than max(tran_end_time). Raises
        LowEndpointNotComputed.
        """
        if self._high is None:
            return None
        try:
            with lake_failures():
                last_commit = self._mapping.map_lsn_to_time(self._high)
                since = (
                    None
                    if last_commit is None
                    else self._mapping.first_since(kept_since(last_commit, retention))
                )
        except LakeFailed as error:
            raise LowEndpointNotComputed(self._database, retention, str(error)) from error
        if since is None:
            words = f"cdc.lsn_time_mapping has no row of the last captured commit, {self._high}."
            raise LowEndpointNotComputed(self._database, retention, words)
        return since

    def rounded(self, clients: Sequence[Client], low: Lsn) -> dict[Lsn, Lsn | None]:
        """The last commit up to what each slower client has: a low endpoint is always one."""
        reached = {client.acknowledged_lsn or Lsn.ZERO for client in clients}
        with lake_failures():
            return self._mapping.last_upto([lsn for lsn in reached if lsn < low])

    def preview(self, parameters: CleanupParameters, now: datetime) -> CleanupPreview:
        """What a run would do now, table by table. Raises LowEndpointNotComputed, TableNotReadable."""
        low = self.low_watermark(parameters.retention)
        if low is None:
            return CleanupPreview(parameters, None)
        clients = self._control.clients.list(self._database)
        dropped = tuple(client for client in clients if client.is_expired(now))
        staying = [client for client in clients if client not in dropped]
        slowest = slowest_of((client.capture_instance, client) for client in staying)
        rounded = self.rounded(staying, low)
        moved, held = [], []
        instances = self._control.instances.list(self._database)
        for instance in instances:
            if instance.start_lsn is not None:
                client = slowest.get(instance.capture_instance)
                after, waiting = low_endpoint_after(instance.start_lsn, low, client, rounded)
                moved.append(replace(instance, start_lsn=after))
                held += [] if waiting is None else [waiting]
        planned = self.effects(instances, moved, mapped_since(low, held), held)
        tables = self.counted(planned, moved, parameters.threshold)
        time = self._times({low}).get(low) if held else tables[-1].time_after
        held.sort(key=lambda each: each.capture_instance)
        return CleanupPreview(parameters, low, time, tables, tuple(held), dropped)

    def effects(
        self,
        before: Sequence[CaptureInstance],
        after: Sequence[CaptureInstance],
        mapped_since: Lsn | None,
        held: Sequence[HeldInstance] = (),
    ) -> list[TableCleanup]:
        """How low endpoints move, with their times; no row is counted yet. mapped_since None: no mapping."""
        starts = {each.capture_instance: each.start_lsn for each in before}
        ends = {each.capture_instance: each.start_lsn for each in after}
        waits = {each.capture_instance: each.client for each in held}
        lsns = {lsn for lsn in (*starts.values(), *ends.values(), mapped_since) if lsn is not None}
        times = self._times(lsns)
        tables = [
            TableCleanup(
                name,
                starts.get(name),
                low,
                _at(times, starts.get(name)),
                _at(times, low),
                waits_for=waits.get(name),
            )
            for name, low in ends.items()
            if low is not None
        ]
        if mapped_since is not None:
            tables.append(TableCleanup(None, None, mapped_since, None, _at(times, mapped_since)))
        return tables

    def _times(self, lsns: set[Lsn]) -> dict[Lsn, datetime]:
        """When transactions were committed, where the mapping has them."""
        with lake_failures():
            return self._mapping.times_of(lsns)

    def counted(
        self, tables: Sequence[TableCleanup], instances: Sequence[CaptureInstance], threshold: int
    ) -> tuple[TableCleanup, ...]:
        """The same with the rows below ``low_after``, and the statements that delete them."""
        known = {each.capture_instance: each for each in instances}
        return tuple(
            self._counted(each, known.get(each.capture_instance or ""), threshold) for each in tables
        )

    def _counted(self, table: TableCleanup, instance: CaptureInstance | None, threshold: int) -> TableCleanup:
        path, schema, position = (
            self._lake.lsn_time_mapping(self._database),
            LSN_TIME_MAPPING_SCHEMA,
            "start_lsn",
        )
        if instance is not None:
            path = self._lake.change_table(self._database, instance.capture_instance)
            schema, position = change_table_schema(instance), CHANGE_KEY[0]
        found = obsolete_rows(path, schema, position, table.low_after or Lsn.ZERO)
        return replace(
            table,
            rows=found.rows,
            statements=found.statements(threshold),
            whole_rows=found.whole_rows,
            whole_files=found.whole_files,
            shared_files=found.shared_files,
        )


def _at(times: dict[Lsn, datetime], lsn: Lsn | None) -> datetime | None:
    return None if lsn is None else times.get(lsn)
