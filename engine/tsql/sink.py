"""Where results go: what a console, a file or a test makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

from engine.sources.sql_session import ResultColumn
from engine.tsql.messages import Message
from engine.tsql.types import TEXT, SqlType, Value


class Sink(Protocol):
    """Takes what statements give, in order."""

    def rows(self, columns: Sequence[ResultColumn], rows: Iterable[Sequence[Any]]) -> int:
        """A result set, taken while it comes; returns how many rows it had."""
        ...

    def count(self, rows: int) -> None:
        """How many rows a statement touched."""
        ...

    def message(self, message: Message) -> None:
        """PRINT, and messages up to severity 10."""
        ...

    def error(self, error: Message) -> None:
        """An error that nobody caught."""
        ...


def type_of(column: ResultColumn) -> SqlType:
    """A result column's type."""
    return SqlType(column.type_name, column.length, column.precision, column.scale)


def column_of(name: str, type_: SqlType) -> ResultColumn:
    """A result column of that type."""
    return ResultColumn(name, type_.name, type_.length, type_.precision, type_.scale)


def value_of(column: ResultColumn, raw: Any) -> Value:
    """A result's value as variables take it; what has no type of T-SQL's, as text."""
    type_ = type_of(column)
    if type_.name == "decimal" and type_.precision is None:
        digits = raw.as_tuple() if isinstance(raw, Decimal) else None
        scale = max(0, -int(digits.exponent)) if digits and isinstance(digits.exponent, int) else 0
        type_ = SqlType("decimal", precision=38, scale=min(scale, 38))
    match raw:
        case None:
            return Value(type_, None)
        case UUID():
            return Value(type_, str(raw).upper())
        case str() if type_.is_moment or type_.name == "time":
            return Value(TEXT, raw)  # a time that Python has no place for
        case bool() | int() | float() | Decimal() | str() | bytes() | datetime() | date() | time():
            return Value(type_, raw)
        case bytearray() | memoryview():
            return Value(type_, bytes(raw))
    return Value(TEXT, str(raw))
