"""What scripts print as JSON lines, and consoles of databases of a started home."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any

import psutil
import psycopg

from engine.engine import Engine
from engine.tsql.batches import batches
from engine.tsql.interpreter import session
from engine.tsql.output import CsvSink, JsonSink, TableSink
from engine.tsql.sink import Sink
from tests.running_home import RunningHome


@dataclass(frozen=True)
class Outcome:
    """What a script printed as JSON lines, and its exit code."""

    code: int
    lines: list[dict[str, Any]]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["type"] == kind]

    @property
    def rows(self) -> list[list[Any]]:
        """Rows of all result sets."""
        return [row for result in self.of("resultset") for row in result["rows"]]

    @property
    def names(self) -> list[str]:
        """Column names of the last result set."""
        return [column["name"] for column in self.of("resultset")[-1]["columns"]]

    @property
    def types(self) -> dict[str, str]:
        return {column["name"]: column["type"] for column in self.of("resultset")[-1]["columns"]}

    @property
    def errors(self) -> list[int]:
        return [line["number"] for line in self.of("error")]

    @property
    def texts(self) -> list[str]:
        return [line["text"] for line in self.of("message")]

    @property
    def value(self) -> Any:
        [[value]] = self.rows
        return value


@dataclass(frozen=True)
class Console:
    """Scripts on one database of the home."""

    home: RunningHome
    database: str
    dsn: str

    def run(self, script: str, *options: str) -> Outcome:
        done = self.home.call("sql", "-d", self.database, "--format", "json", "-q", script, *options)
        # Within this process the engine's log goes to the standard output too.
        said = [line for line in done.stdout.splitlines() if line.startswith("{")]
        lines = [json.loads(line, parse_float=Decimal) for line in said]
        assert done.returncode == (1 if any(line["type"] == "error" for line in lines) else 0), done.stderr
        return Outcome(done.returncode, lines)

    def must(self, script: str, *options: str) -> Outcome:
        outcome = self.run(script, *options)
        assert outcome.code == 0, outcome.of("error")
        return outcome

    def source(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


def held_while_written(engine: Engine, database: str, query: str) -> Iterator[list[int]]:
    """For a table, JSON and CSV: the process's memory in bytes at each thousandth row of a query's result."""
    sinks: list[Callable[[Callable[[str], None]], Sink]] = [
        lambda write: TableSink(write, write),
        JsonSink,
        lambda write: CsvSink(write, write),
    ]
    for sink in sinks:
        held: list[int] = []
        written = count()

        def write(text: str, held: list[int] = held, written: Iterator[int] = written) -> None:
            if next(written) % 1000 == 0:
                held.append(psutil.Process().memory_info().rss)

        with session(engine, database, sink(write)) as interpreter:
            for batch in batches(query):
                interpreter.run(batch)
        yield held
