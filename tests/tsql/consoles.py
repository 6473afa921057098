"""What scripts print as JSON lines, and consoles of databases of a started home."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import psycopg

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
