"""Cursors: a query's rows, fetched one by one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from engine.sources.sql_session import ResultColumn
from engine.tsql.messages import sql_error


@dataclass(slots=True)
class Cursor:
    """Rows as they were when it was opened (a static cursor)."""

    query: exp.Query
    scrolls: bool
    columns: tuple[ResultColumn, ...] = ()
    rows: list[Sequence[Any]] | None = None
    position: int = -1

    def open(self, columns: tuple[ResultColumn, ...], rows: list[Sequence[Any]]) -> None:
        """Takes the query's rows. Raises 16905."""
        if self.rows is not None:
            raise sql_error(16905)
        self.columns, self.rows, self.position = columns, rows, -1

    def close(self) -> None:
        """Gives up the rows. Raises 16917."""
        if self.rows is None:
            raise sql_error(16917)
        self.rows = None

    def fetch(self, direction: str, place: int | None) -> Sequence[Any] | None:
        """The row in that direction; None beyond the ends. Raises 16917, 16911."""
        if self.rows is None:
            raise sql_error(16917)
        if direction != "NEXT" and not self.scrolls:
            raise sql_error(16911, direction)
        count = len(self.rows)
        wanted = {
            "NEXT": self.position + 1,
            "PRIOR": self.position - 1,
            "FIRST": 0,
            "LAST": count - 1,
            "ABSOLUTE": (place or 0) - 1 if (place or 0) >= 0 else count + (place or 0),
            "RELATIVE": self.position + (place or 0),
        }[direction]
        self.position = max(-1, min(wanted, count))
        return self.rows[self.position] if 0 <= self.position < count else None
