"""Change tables of known ages: the workbench of the capture tests with commit times that tests choose."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import SparkSession

from engine.cleanup.run import RetentionCleanup
from engine.control import ControlDatabase, Lease
from engine.engine import Engine
from engine.lake.tables import Lake
from engine.model.job import CleanupParameters, JobType
from engine.model.lsn import Lsn
from engine.runtime.embedded_postgres import EmbeddedPostgres
from engine.runtime.home import Home
from tests.capture.conftest import DATABASE, Workbench, new_workbench, workbench, workbenches
from tests.conftest import databases

__all__ = ["new_workbench", "workbench"]


def commits(workbench: Workbench) -> dict[int, Lsn]:
    """The commit LSN of each transaction, by the number that its rows have."""
    rows = workbench.rows("public_t")
    return {row["tran"]: Lsn.parse(row["__$start_lsn"]) for row in rows}


def transactions(workbench: Workbench, capture_instance: str = "public_t") -> list[int]:
    """The transactions that a change table still has, a number for each row."""
    return sorted(row["tran"] for row in workbench.rows(capture_instance))


def versions(workbench: Workbench, path: str) -> list[str]:
    """The operations of a table's commits, oldest first."""
    history = workbench.spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
    return [row.operation for row in sorted(history, key=lambda row: row.version)]


def write(workbench: Workbench, *numbers: int) -> None:
    """Transactions of as many rows as their numbers say, in both tables, captured into one file each."""
    for number in numbers:
        rows = f"SELECT {number * 100} + n, {number} FROM generate_series(1, {number}) n"
        workbench.sql(f"INSERT INTO t {rows}; INSERT INTO u {rows}")
    workbench.drain()


def age(workbench: Workbench, minutes: dict[int, int]) -> None:
    """Makes transactions so many minutes older than the last captured commit; 0: all before the first."""
    path = workbench.lake.lsn_time_mapping(DATABASE)
    last: datetime = max(row["tran_end_time"] for row in workbench.mapping())
    found = commits(workbench)
    cases = " ".join(
        f"WHEN start_lsn {'=' if number else '<'} '{found[number or 1]}'"
        f" THEN TIMESTAMP '{last.isoformat()}' - INTERVAL {each} MINUTE"
        for number, each in minutes.items()
    )
    workbench.spark.sql(f"UPDATE delta.`{path}` SET tran_end_time = CASE {cases} ELSE tran_end_time END")


def cleanup_of(workbench: Workbench) -> RetentionCleanup:
    return RetentionCleanup(workbench.control, workbench.lake, workbench.spark, workbench.clock)


def lease_of(workbench: Workbench) -> Lease:
    lease = workbench.control.leases.acquire(DATABASE, "test", 3600, JobType.CLEANUP)
    assert lease is not None
    return lease


def make_aged(workbench: Workbench) -> Workbench:
    """Tables t and u with transactions 1, 2, 3 and 4, 5, 6; of these 1 is 90 minutes old, 2 80 …, 5 50.

    Transaction 6 is the last commit. What enabled the tables is older than all of them.
    """
    for table in "tu":
        workbench.sql(f"CREATE TABLE {table} (id int PRIMARY KEY, tran int)")
        workbench.enable(table)
    write(workbench, 1, 2, 3)
    write(workbench, 4, 5, 6)
    age(workbench, {0: 100, 1: 90, 2: 80, 3: 70, 4: 60, 5: 50})
    return workbench


@pytest.fixture
def aged_anew(workbench: Workbench) -> Workbench:
    """`make_aged`, for tests that capture too, or disable the database."""
    return make_aged(workbench)


@pytest.fixture(scope="session")
def aged_once(
    postgres: EmbeddedPostgres, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    """`make_aged` for all tests, to be copied; its control database is closed."""
    with databases(postgres) as make, workbenches(make, tmp_path_factory.mktemp("aged"), spark) as benches:
        workbench = make_aged(benches())
        workbench.control.close()
        yield workbench


@pytest.fixture
def aged(
    aged_once: Workbench, new_database: Callable[..., str], tmp_path: Path, spark: SparkSession
) -> Iterator[Workbench]:
    """`make_aged` with a control database and a lake of the test's own; the source is everybody's."""
    template = conninfo_to_dict(aged_once.control._connections._dsn)["dbname"]
    control = ControlDatabase.open(new_database(template))
    lake = Lake(str(shutil.copytree(aged_once.lake.root, tmp_path / "lake")))
    engine = Engine(control, aged_once.sources, lake, lambda: spark, Home(tmp_path / "home"))
    yield replace(aged_once, control=control, engine=engine, lake=lake, opened=[])
    control.close()


PARAMETERS = CleanupParameters(retention=65, threshold=5000)
"""Transactions 1, 2 and 3 are older."""
LEFT = [4] * 4 + [5] * 5 + [6] * 6
"""The rows that stay then."""
