"""A source, a control database and a lake with a scan between them, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from engine.capture.crash_points import CrashPoints
from engine.capture.scan import Scan, ScanLimits
from engine.control.database import ControlDatabase
from engine.control.leases import Lease
from engine.engine import Engine
from engine.lake.publisher import Publisher
from engine.lake.tables import Lake
from engine.model.capture_instance import CaptureInstance
from engine.model.job import CaptureParameters
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanSession
from engine.runtime.home import Home
from engine.sources.base import LogSource
from engine.sources.registry import Sources

DATABASE = "db"
DRAIN = CaptureParameters(maxtrans=500, maxscans=1000, pollinginterval=0)


@dataclass
class Clock:
    """A clock that tests move."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class Workbench:
    """Everything around a scan; ``sql`` runs and commits at the source."""

    dsn: str
    control: ControlDatabase
    engine: Engine
    sources: Sources
    spark: SparkSession
    lake: Lake
    connection: psycopg.Connection[tuple[Any, ...]]
    clock: Clock = field(default_factory=Clock)
    opened: list[LogSource] = field(default_factory=list)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def enable(self, table: str, **options: Any) -> CaptureInstance:
        return self.engine.enable_table(DATABASE, "public", table, role_name=None, **options)

    def lease(self, holder: str = "test") -> Lease:
        lease = self.control.leases.acquire(DATABASE, holder, 3600)
        assert lease is not None
        return lease

    def scan(
        self,
        crash: CrashPoints | None = None,
        lease: Lease | None = None,
        piece_bytes: int = 64 * 1024 * 1024,
        publisher: Publisher | None = None,
    ) -> Scan:
        """A scan as a freshly started agent has it: nothing remembered of earlier ones."""
        source = self.sources.log(self.engine.database(DATABASE))
        self.opened.append(source)
        return Scan(
            DATABASE,
            source,
            publisher or Publisher(self.spark, fsync=False),
            self.lake,
            self.control,
            lease or self.lease(),
            self.clock(),
            self.clock,
            ScanLimits(piece_bytes, idle_tick_seconds=300),
            crash or CrashPoints(),
        )

    @contextmanager
    def scanning(self, lease: Lease) -> Iterator[Scan]:
        """A scan under this lease, as capture jobs open one."""
        yield self.scan(lease=lease)

    def drain(self, scan: Scan | None = None) -> ScanSession | None:
        """One session to the log's end."""
        return (scan or self.scan()).run(DRAIN, lambda: False, woken=True)

    def rows(self, instance: CaptureInstance | str) -> list[dict[str, Any]]:
        """The rows of a change table that readers may see."""
        name = instance if isinstance(instance, str) else instance.capture_instance
        frame = self.spark.read.format("delta").load(self.lake.change_table(DATABASE, name))
        high = self.control.watermarks.get(DATABASE).high or Lsn.ZERO
        return frame.where(f"`__$start_lsn` <= '{high}'").toArrow().to_pylist()

    def mapping(self) -> list[dict[str, Any]]:
        """The rows of lsn_time_mapping, ascending."""
        frame = self.spark.read.format("delta").load(self.lake.lsn_time_mapping(DATABASE))
        return sorted(frame.toArrow().to_pylist(), key=lambda row: row["start_lsn"])

    def close(self) -> None:
        for source in self.opened:
            source.close()
        self.connection.close()
        self.control.close()


@contextmanager
def workbenches(
    new_database: Callable[..., str], folder: Path, spark: SparkSession
) -> Iterator[Callable[..., Workbench]]:
    """Makes workbenches on databases that are enabled for capture, no table yet.

    ``before`` is run at the source before it is enabled.
    """
    made: list[Workbench] = []

    def make(before: str = "") -> Workbench:
        dsn, bench = new_database(), folder / f"bench{len(made)}"
        control = ControlDatabase.open(new_database())
        control.migrate()
        home, lake = Home(bench / "home"), Lake(str(bench / "lake"))
        home.prepare()
        sources = Sources(home.secret)
        engine = Engine(control, sources, lake, lambda: spark, home)
        engine.connect(DATABASE, dsn)
        if before:
            with psycopg.connect(dsn) as owner:
                owner.execute(before.encode())
        engine.enable_db(DATABASE)
        connection = psycopg.connect(dsn, autocommit=True)
        made.append(Workbench(dsn, control, engine, sources, spark, lake, connection))
        return made[-1]

    yield make
    for workbench in made:
        workbench.close()


@pytest.fixture
def new_workbench(
    new_database: Callable[..., str], tmp_path: Path, spark: SparkSession
) -> Iterator[Callable[..., Workbench]]:
    """Makes workbenches (`workbenches`)."""
    with workbenches(new_database, tmp_path, spark) as make:
        yield make


@pytest.fixture
def workbench(new_workbench: Callable[[], Workbench]) -> Workbench:
    """A database that is enabled for capture, no table yet."""
    return new_workbench()
