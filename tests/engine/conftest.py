"""An engine over a real source and a real control database; Spark only where a test asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from engine.control import ControlDatabase
from engine.engine import Engine
from engine.errors import AgentNotRunning
from engine.lake.tables import Lake
from engine.runtime.home import Home
from engine.sources.registry import Sources

HR = """
CREATE SCHEMA hr;
CREATE TABLE hr.department (
    id int PRIMARY KEY,
    name text NOT NULL,
    budget numeric(12, 2),
    "a,b" text,
    CONSTRAINT department_name UNIQUE (name));
CREATE INDEX department_budget ON hr.department (budget);
CREATE TABLE hr.note (text text)
"""


@pytest.fixture
def control(control_dsn: str) -> Iterator[ControlDatabase]:
    database = ControlDatabase.open(control_dsn)
    database.migrate()
    yield database
    database.close()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.prepare()
    return home


def no_spark() -> object:
    raise AgentNotRunning("queries need it")


@pytest.fixture
def engine(control: ControlDatabase, home: Home, lake_root: Path) -> Engine:
    return Engine(control, Sources(home.secret), Lake(str(lake_root)), no_spark, home)  # type: ignore[arg-type]


@pytest.fixture
def hr(engine: Engine, source_dsn: str) -> str:
    """A connected database with the tables of HR."""
    with psycopg.connect(source_dsn, autocommit=True) as connection:
        connection.execute(HR)
    engine.connect("hr", source_dsn)
    return "hr"


@pytest.fixture
def enabled(engine: Engine, hr: str) -> str:
    """The same, enabled."""
    engine.enable_db(hr)
    return hr


@pytest.fixture
def sql(source_dsn: str) -> Callable[[str], list[tuple[object, ...]]]:
    """Runs a query at the source."""

    def run(query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(source_dsn, autocommit=True) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []

    return run
