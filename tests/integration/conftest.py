"""One home for all tests of this folder; each test has a source database of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.running_home import RunningHome, running_home


@dataclass(frozen=True)
class Source:
    """A database that the home knows by ``name``."""

    home: RunningHome
    name: str
    dsn: str

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Runs each statement in its own transaction; the last one's rows. Several in one text are one."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def enable(self, table: str, *options: str) -> None:
        self.home.must("enable", "-d", self.name, table, *options)

    def sync(self) -> None:
        self.home.must("sync", "-d", self.name, "--timeout", "600")

    def changes(self, capture_instance: str, *options: str) -> list[dict[str, Any]]:
        return self.home.changes(self.name, capture_instance, *options)


@pytest.fixture(scope="session")
def home(short_folder: Path) -> Iterator[RunningHome]:
    with running_home(short_folder / "home", "--no-dashboard", "--no-demo") as home:
        yield home


@pytest.fixture
def new_source(home: RunningHome, new_database: Callable[[], str]) -> Iterator[Callable[[], Source]]:
    """Makes connected sources, not enabled; disabled after the test: the agent must not miss them."""
    made: list[Source] = []

    def make() -> Source:
        dsn = new_database()
        source = Source(home, str(conninfo_to_dict(dsn)["dbname"]), dsn)
        home.must("connect", source.name, dsn)
        made.append(source)
        return source

    yield make
    for source in made:
        home.call("disable", "-d", source.name)


@pytest.fixture
def source(new_source: Callable[[], Source]) -> Source:
    return new_source()
