"""The engine as the agent runs it, on a foreign slot: own control database, own lake, warm Spark session."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.task import Task
from engine.agent.checkpoints import Checkpoints
from engine.capture.crash_points import CrashPoints
from engine.capture.scan import Scan, ScanLimits
from engine.control.database import ControlDatabase
from engine.control.leases import Lease
from engine.lake.publisher import Append, Publisher
from engine.lake.spark import build_session
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA, Lake, change_table_schema
from engine.model.capture_instance import CapturedColumn, CaptureInstance, IndexColumn
from engine.model.lsn import Lsn
from engine.runtime.embedded_postgres import CONTROL_DATABASE, EmbeddedPostgres
from engine.settings import Settings
from engine.sources.base import SourceTable
from engine.sources.postgres.admin import PostgresAdmin
from engine.sources.postgres.log import PostgresLog

DATABASE = "bench"
_WARM_UP_APPENDS = 5


@dataclass(frozen=True, slots=True)
class EngineUnderTest:
    """Everything that a scan needs, ready; ``instances`` capture every table of the publication."""

    task: Task
    settings: Settings
    control: ControlDatabase
    spark: SparkSession
    publisher: Publisher
    checkpoints: Checkpoints
    lake: Lake
    instances: Sequence[CaptureInstance]

    @contextmanager
    def scan(self, lease: Lease) -> Iterator[Scan]:
        """A scan of the bench's slot under ``lease``."""
        log = PostgresLog(self.task.uri, self.task.slot, self.task.publication, DATABASE)
        limits = ScanLimits(int(self.settings.piece_bytes), self.settings.idle_tick_seconds)
        try:
            yield Scan(
                DATABASE,
                log,
                self.publisher,
                self.lake,
                self.control,
                lease,
                _now(),
                _now,
                limits,
                CrashPoints(),
                partial(self.checkpoints.committed, DATABASE),
            )
        finally:
            log.close()


@contextmanager
def engine_under_test(task: Task) -> Iterator[EngineUnderTest]:
    """Starts it all below ``task.out`` and clears it away afterwards. Default settings, fsync included."""
    task.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=task.out) as folder:
        settings = Settings(home=Path(folder))
        with control_database(settings) as control, _session(settings) as spark:
            publisher, lake = Publisher(spark), Lake(settings.lake)
            _warm_up(publisher, f"{lake.root}/warm_up")
            instances = _register(task, control, publisher, lake)
            checkpoints = Checkpoints(publisher, control.compactions.ask)
            checkpoints.start()
            try:
                yield EngineUnderTest(task, settings, control, spark, publisher, checkpoints, lake, instances)
            finally:
                checkpoints.stop()


@contextmanager
def control_database(settings: Settings) -> Iterator[ControlDatabase]:
    """A server of its own below the home, with an empty control database."""
    server = EmbeddedPostgres(settings.home / "pg", settings.postgres_settings)
    server.start()
    try:
        server.ensure_database(CONTROL_DATABASE)
        control = ControlDatabase.open(server.dsn(CONTROL_DATABASE))
        try:
            control.migrate()
            yield control
        finally:
            control.close()
    finally:
        server.stop()


@contextmanager
def _session(settings: Settings) -> Iterator[SparkSession]:
    jars = sorted(settings.jars.glob("*.jar"))
    spark = build_session("local[2]", settings.driver_memory, jars, None, settings.spark_settings)
    try:
        yield spark
    finally:
        spark.stop()


def _warm_up(publisher: Publisher, path: str) -> None:
    """The agent's JVM has committed before; this one has not."""
    schema = pa.schema([("start_lsn", pa.string())])
    publisher.create(path, schema)
    for number in range(1, _WARM_UP_APPENDS + 1):
        rows = pa.table({"start_lsn": [str(Lsn.at(number))]}, schema=schema)
        publisher.append([Append(path, rows, np.array([number], np.uint64), np.ones(1, np.int32))])


def _register(
    task: Task, control: ControlDatabase, publisher: Publisher, lake: Lake
) -> Sequence[CaptureInstance]:
    """Every table of the publication as an instance that began before the backlog; their tables exist."""
    control.sources.add(DATABASE, "postgresql", task.uri)
    control.sources.set_enabled(DATABASE, True)
    with psycopg.connect(task.uri, autocommit=True) as connection:
        published = connection.execute(
            "SELECT schemaname::text, tablename::text FROM pg_publication_tables WHERE pubname = %s",
            [task.publication],
        ).fetchall()
    log = PostgresLog(task.uri, task.slot, task.publication, DATABASE)
    # The slot gives what commits at this position or later: the instance takes what is above its start.
    start = log.slot_state().confirmed.previous()
    log.close()
    admin = PostgresAdmin(task.uri, task.slot, DATABASE)
    instances = [
        _instance(table, number, start)
        for number, table in enumerate(admin.tables(), 1)
        if (table.schema, table.name) in published
    ]
    for instance in instances:
        with control.instances.add(instance):
            publisher.create(
                lake.change_table(DATABASE, instance.capture_instance), change_table_schema(instance)
            )
    publisher.create(lake.lsn_time_mapping(DATABASE), LSN_TIME_MAPPING_SCHEMA)
    return instances


def _instance(table: SourceTable, object_id: int, start: Lsn) -> CaptureInstance:
    key = () if table.primary_key is None else table.primary_key.columns
    return CaptureInstance(
        object_id=object_id,
        database=DATABASE,
        capture_instance=f"{table.schema}_{table.name}",
        source_schema=table.schema,
        source_table=table.name,
        source_object_id=table.source_object_id,
        start_lsn=start,
        supports_net_changes=bool(key),
        role_name=None,
        index_name=None if table.primary_key is None else table.primary_key.name,
        filegroup_name=None,
        create_date=_now(),
        columns=tuple(
            CapturedColumn(c.name, c.column_id, c.source_type, ordinal, c.is_computed, c.lake_type)
            for ordinal, c in enumerate(table.columns, 1)
        ),
        index_columns=tuple(IndexColumn(column, n, n) for n, column in enumerate(key, 1)),
    )


def _now() -> datetime:
    return datetime.now(UTC)
