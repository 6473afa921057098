"""A control database that takes nothing any more: read-only, its disk full, its server ended by that.

Capture goes on by itself once it is as it was, and publishes what the source has committed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from engine.model.job import JobState
from engine.runtime.embedded_postgres import EmbeddedPostgres
from tests.agent.conftest import SECONDS, RunningAgent, until, until_state
from tests.capture.conftest import DATABASE, Workbench, workbenches
from tests.capture.replayed import check
from tests.conftest import databases
from tests.faults.own_disk import OwnDisk, own_disk
from tests.faults.source_replay import SourceReplay
from tests.faults.write_load import SCHEMA, TABLES, WriteLoad

pytestmark = pytest.mark.faults
CONTROL = "control"
MEGABYTES = 192


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the control database's server is."""
    return tmp_path / "own" / "server"


@pytest.fixture
def disk(folder: Path) -> Iterator[OwnDisk]:
    """A file system of that server's own. Asked for before the server is."""
    folder.parent.mkdir(0o755)
    with own_disk(folder.parent, MEGABYTES) as disk:
        yield disk


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedPostgres]:
    """The control database's own server; the source is elsewhere."""
    made = EmbeddedPostgres(folder, {"fsync": "off"})
    made.start()
    made.ensure_database(CONTROL)
    yield made
    made.stop()


@pytest.fixture
def workbench(
    postgres: EmbeddedPostgres, server: EmbeddedPostgres, spark: SparkSession, tmp_path: Path
) -> Iterator[Workbench]:
    with databases(postgres) as new_database:
        dsns = iter([new_database(), server.dsn(CONTROL)])
        with workbenches(lambda: next(dsns), tmp_path, spark) as make:
            yield make()


@pytest.fixture
def captured(
    workbench: Workbench, new_agent: Callable[..., RunningAgent]
) -> Iterator[tuple[WriteLoad, SourceReplay]]:
    """Tables under a load, captured by an agent; and what the source really did."""
    workbench.sql(SCHEMA)
    for table in TABLES:
        workbench.enable(table.name.removeprefix("public."))
    workbench.engine.change_job(DATABASE, maxtrans=50, pollinginterval=0)
    replay, load = SourceReplay(workbench.dsn), WriteLoad(workbench.dsn, 1)
    new_agent()
    until_state(workbench, JobState.RUNNING)
    load.start()
    workbench.engine.sync(DATABASE, SECONDS)
    yield load, replay
    load.stop()


def lasts(load: WriteLoad) -> None:
    """The source goes on meanwhile."""
    commits = load.committed
    until(lambda: load.committed > commits + 30, "the source goes on")


def goes_on(workbench: Workbench, load: WriteLoad, replay: SourceReplay) -> None:
    """Without a hand, and it is what the source committed."""
    before = workbench.control.watermarks.get(DATABASE).high
    until(lambda: workbench.control.watermarks.get(DATABASE).high > before, "something is published")
    load.stop()
    workbench.engine.sync(DATABASE, SECONDS)
    until_state(workbench, JobState.RUNNING)
    check(workbench, replay)


def make(server: EmbeddedPostgres, setting: str) -> None:
    """Sets or resets what sessions of the control database begin with, and ends those there are."""
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {CONTROL} {setting}".encode())
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [CONTROL]
        )


def test_a_control_database_that_is_read_only(
    workbench: Workbench, server: EmbeddedPostgres, captured: tuple[WriteLoad, SourceReplay]
) -> None:
    load, replay = captured
    make(server, "SET default_transaction_read_only = on")
    before = workbench.control.watermarks.get(DATABASE).high
    lasts(load)
    assert workbench.control.watermarks.get(DATABASE).high == before
    make(server, "RESET default_transaction_read_only")
    goes_on(workbench, load, replay)


def use_up(server: EmbeddedPostgres, statement: bytes) -> None:
    """Writes into the control database until its disk takes no more."""
    with (
        suppress(psycopg.OperationalError),
        psycopg.connect(server.dsn(CONTROL), autocommit=True) as connection,
    ):
        while True:
            connection.execute(statement)


def test_a_control_database_whose_disk_is_full(
    disk: OwnDisk,
    workbench: Workbench,
    server: EmbeddedPostgres,
    captured: tuple[WriteLoad, SourceReplay],
) -> None:
    """It refuses rows; where its log needs another segment it ends, and its supervisor starts it again."""
    load, replay = captured
    with psycopg.connect(server.dsn(CONTROL), autocommit=True) as connection:
        connection.execute("CREATE TABLE filler AS SELECT repeat('x', 1000) AS body")
    disk.fill()
    use_up(server, b"INSERT INTO filler SELECT body FROM filler")
    lasts(load)
    use_up(server, b"SELECT pg_logical_emit_message(false, 'filler', repeat('x', 1000000))")
    until(lambda: server.pid is None, "the server has ended")
    lasts(load)
    disk.empty()
    server.start()
    goes_on(workbench, load, replay)
