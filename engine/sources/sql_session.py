"""A session of someone who works at a source with SQL: statements in the source's own dialect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result. ``length`` of strings and binaries, -1 for none; the rest of decimals.

    source_type: of a captured column that is shown as it is, its type in the source's words.
    """

    name: str
    type_name: str
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    source_type: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of a result, taken while they come.

    The next statement of the session may only be run when ``rows`` are used up or closed. Dates and times
    that Python can't hold are text.
    """

    columns: tuple[ResultColumn, ...]
    rows: Iterator[Sequence[Any]] = field(default_factory=lambda: iter(()))


@dataclass(frozen=True, slots=True)
class SourceRelation:
    """A table or view and its columns with their types in the source's words; ``key``: its primary key."""

    schema: str
    name: str
    columns: Mapping[str, str]
    is_temporary: bool = False
    key: tuple[str, ...] = ()


class StatementRefused(Exception):  # noqa: N818 - says what is wrong, as errors of the engine do
    """The source refused a statement: its SQLSTATE, words, and what they speak of."""

    def __init__(
        self,
        sqlstate: str,
        text: str,
        detail: str = "",
        table: str = "",
        column: str = "",
        schema: str = "",
        constraint: str = "",
    ) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate
        self.text = text
        self.detail = detail
        self.table = table
        self.column = column
        self.schema = schema
        self.constraint = constraint


class SqlSession(Protocol):
    """One connection of one user. Not thread-safe; each statement is its own transaction unless begun."""

    @property
    def dialect(self) -> str:
        """The source's dialect, as sqlglot calls it."""
        ...

    def run(self, statement: str) -> int | None:
        """Runs one statement without a result, given whole; how many rows it touched, where that is known.

        Raises StatementRefused, SourceUnreachable.
        """
        ...

    def query(self, statement: str) -> Answer:
        """Runs one statement with a result, given whole. Raises StatementRefused, SourceUnreachable."""
        ...

    def load(self, table: str, rows: Iterable[Sequence[Any]]) -> int:
        """Rows into a table, its name given as the source reads it, in one statement; how many they were.

        Values as an `Answer` has them, one for each column. Raises StatementRefused, SourceUnreachable.
        """
        ...

    def relations(self, names: Sequence[str]) -> Sequence[SourceRelation]:
        """Tables and views with one of these names, whatever their case and schema; temporary ones first."""
        ...

    def schemas(self) -> Sequence[str]:
        """Names of schemas."""
        ...

    def principals(self) -> Sequence[tuple[str, int, bool]]:
        """Roles: name, number, and whether somebody can log in as it."""
        ...

    def impersonate(self, role: str | None) -> None:
        """Statements run with the rights of this role; None: the session's own. Raises StatementRefused."""
        ...

    def cancel(self) -> None:
        """Stops what runs now, from another thread."""
        ...

    def close(self) -> None:
        """Ends the session; a transaction that is open is rolled back."""
        ...
