"""One PostgreSQL server and one SparkSession for the whole test process; each test its own database."""

from __future__ import annotations

import itertools
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from engine.lake.spark import ConnectEndpoint, build_session
from engine.runtime.embedded_postgres import EmbeddedPostgres
from engine.runtime.jars import delta_jars
from engine.runtime.java import find_java
from engine.runtime.ports import free_port
from engine.settings import Settings
from tests.workers import OneHomeScheduling

_numbers = itertools.count(1)

# How long an example takes says nothing about the code while the machine does other things too.
settings.register_profile("highwater", deadline=None)
settings.load_profile("highwater")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> OneHomeScheduling:
    """What goes to which process."""
    return OneHomeScheduling(config, log)


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """A folder of this run, not below pytest's: another run's start closes that to servers run by root."""
    with tempfile.TemporaryDirectory(prefix="highwater-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def postgres(short_folder: Path) -> Iterator[EmbeddedPostgres]:
    """The server shared by all tests: durable enough to be killed, not to lose power."""
    server = EmbeddedPostgres(short_folder / "pg", {"fsync": "off"})
    server.start()
    yield server
    server.stop()


@contextmanager
def databases(postgres: EmbeddedPostgres) -> Iterator[Callable[..., str]]:
    """Makes databases, empty or as a template is; returns each one's libpq URI. They go at the end."""
    made: list[str] = []

    def make(template: str = "template1") -> str:
        name = f"test_{next(_numbers)}"
        with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        made.append(name)
        return postgres.dsn(name)

    yield make
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        for name in made:
            connection.execute(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
                " WHERE database = %s AND active",
                [name],
            )
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s",
                [name],
            )
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def new_database(postgres: EmbeddedPostgres) -> Iterator[Callable[..., str]]:
    """Makes databases; slots and databases go after the test."""
    with databases(postgres) as make:
        yield make


@pytest.fixture
def source_dsn(new_database: Callable[[], str]) -> str:
    """An empty source database."""
    return new_database()


@pytest.fixture
def control_dsn(new_database: Callable[[], str]) -> str:
    """An empty control database, not yet migrated."""
    return new_database()


@pytest.fixture
def lake_root(tmp_path: Path) -> Path:
    """An empty lake."""
    return tmp_path / "lake"


@pytest.fixture(scope="session")
def connect_endpoint() -> ConnectEndpoint:
    """Where the session of the tests is served over Spark Connect."""
    return ConnectEndpoint(free_port(), secrets.token_hex(16))


@pytest.fixture(scope="session")
def spark(connect_endpoint: ConnectEndpoint) -> Iterator[SparkSession]:
    """The one classic SparkSession with Delta, also served at ``connect_endpoint``."""
    os.environ["JAVA_HOME"] = str(find_java(os.environ).home)
    session = build_session("local[2]", "2g", delta_jars(Settings().jars), connect_endpoint)
    yield session
    session.stop()
