"""Results as a table of text, JSON lines or CSV: written while rows come, nothing held back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain, islice
from typing import Any
from uuid import UUID

from rich.cells import cell_len

from engine.sources.sql_session import ResultColumn
from engine.text_cells import aligned, csv_field, printable, started
from engine.tsql.messages import Message
from engine.tsql.sink import type_of

Write = Callable[[str], None]
_MEASURED = 200
"""A table's column widths are those of its first rows."""
_WIDEST = 60
_NUMBERS = frozenset(
    {
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "decimal",
        "numeric",
        "money",
        "smallmoney",
        "real",
        "float",
        "bit",
    }
)


class JsonSink:
    """One object a line: resultset, rowcount, message, error."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def rows(self, columns: Sequence[ResultColumn], rows: Iterable[Sequence[Any]]) -> int:
        """``{"type":"resultset",…}``; a result that breaks off is closed, and its error follows."""
        rows = started(rows)
        described = [{"name": each.name, "type": str(type_of(each))} for each in columns]
        self._write(f'{{"type":"resultset","columns":{_json(described)},"rows":[')
        count = 0
        try:
            for row in rows:
                self._write(f"{',' if count else ''}[{','.join(map(json_text, row))}]")
                count += 1
        finally:
            self._write("]}\n")
        return count

    def count(self, rows: int) -> None:
        """``{"type":"rowcount",…}``."""
        self._write(f'{{"type":"rowcount","count":{rows}}}\n')

    def message(self, message: Message) -> None:
        """``{"type":"message",…}``."""
        self._said("message", message)

    def error(self, error: Message) -> None:
        """``{"type":"error",…}`` with its line."""
        self._said("error", error)

    def _said(self, kind: str, message: Message) -> None:
        members: dict[str, object] = {
            "type": kind,
            "number": message.number,
            "severity": message.severity,
            "state": message.state,
            "text": message.text,
        }
        if kind == "error":
            members["line"] = message.line
            if message.procedure:
                members["procedure"] = message.procedure
        self._write(_json(members) + "\n")


class CsvSink:
    """Rows with a heading, results apart by an empty line; messages and errors go elsewhere."""

    def __init__(self, write: Write, say: Write) -> None:
        self._write = write
        self._say = say
        self._results = 0

    def rows(self, columns: Sequence[ResultColumn], rows: Iterable[Sequence[Any]]) -> int:
        """RFC 4180 with plain line ends; NULL is nothing, an empty string ``""``."""
        rows = started(rows)
        if self._results:
            self._write("\n")
        self._results += 1
        self._write(",".join(csv_field(each.name) for each in columns) + "\n")
        count = 0
        for row in rows:
            self._write(",".join(map(_csv_text, row)) + "\n")
            count += 1
        return count

    def count(self, rows: int) -> None:
        """Nothing: rows can be counted."""

    def message(self, message: Message) -> None:
        """Its text."""
        self._say(f"{message.text}\n")

    def error(self, error: Message) -> None:
        """Two lines, as the original's tools write them."""
        self._say(error_text(error))


class TableSink:
    """Columns of text, as the original's consoles show them."""

    def __init__(self, write: Write, say: Write) -> None:
        self._write = write
        self._say = say

    def rows(self, columns: Sequence[ResultColumn], rows: Iterable[Sequence[Any]]) -> int:
        """A heading, a rule, then the rows; numbers at the right; NULL written out."""
        texts = [_short_time if each.type_name == "datetime" else _shown for each in columns]
        cells = ([text(value) for text, value in zip(texts, row, strict=True)] for row in started(rows))
        measured = list(islice(cells, _MEASURED))
        names = [printable(each.name) for each in columns]
        widths = [
            max(1, min(_WIDEST, max(cell_len(cell) for cell in column)))
            for column in zip(names, *measured, strict=True)
        ]
        right = [each.type_name in _NUMBERS for each in columns]
        self._write(aligned(names, widths, [False] * len(names), " "))
        self._write(" ".join("-" * width for width in widths) + "\n")
        count = 0
        for row in chain(measured, cells):
            self._write(aligned(row, widths, right, " "))
            count += 1
        return count

    def count(self, rows: int) -> None:
        """``(1 row affected)``."""
        self._write(f"\n({rows} row{'' if rows == 1 else 's'} affected)\n")

    def message(self, message: Message) -> None:
        """Its text; one with a number has it."""
        head = (
            f"Msg {message.number}, Level {message.severity}, State {message.state}: "
            if message.number
            else ""
        )
        self._write(f"{head}{message.text}\n")

    def error(self, error: Message) -> None:
        """Two lines, as the original's tools write them."""
        self._say(error_text(error))


def error_text(error: Message) -> str:
    """``Msg 208, Level 16, State 1, Line 3`` and the text."""
    place = f"Procedure {error.procedure}, " if error.procedure else ""
    head = f"Msg {error.number}, Level {error.severity}, State {error.state}, {place}Line {error.line}"
    return f"{head}\n{error.text}\n"


def json_text(value: Any) -> str:
    """A value: numbers with all their digits, binary as 0x and hex, times in ISO 8601, NaN as text."""
    known = _JSON_TEXTS.get(type(value))
    return _json(plain_text(value)) if known is None else known(value)


def plain_text(value: Any) -> str:
    """A value that is not None, without the quotes of strings."""
    known = _PLAIN_TEXTS.get(type(value))
    if known is not None:
        return known(value)
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=plain_text)
    return str(value)


def _binary_text(value: bytes | bytearray | memoryview) -> str:
    return "0x" + value.hex().upper()


def _float_text(value: float) -> str:
    return repr(value) if math.isfinite(value) else _NOT_FINITE[repr(value)]


def _json_float(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'"{_float_text(value)}"'


def _json_decimal(value: Decimal) -> str:
    return f"{value:f}" if value.is_finite() else f'"{value}"'


def _csv_text(value: Any) -> str:
    return "" if value is None else csv_field(plain_text(value))


def _shown(value: Any) -> str:
    """In a table a time has a blank in the middle."""
    if value is None:
        return "NULL"
    return printable(value.isoformat(" ") if type(value) is datetime else plain_text(value))


def _short_time(value: Any) -> str:
    """And a datetime has three digits."""
    return value.isoformat(" ", "milliseconds") if type(value) is datetime else _shown(value)


_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
# By the value's own type, which is found a good deal faster than by asking what it is an instance of.
_PLAIN_TEXTS: Mapping[type, Callable[[Any], str]] = {
    str: str,
    bool: lambda value: "1" if value else "0",
    int: str,
    bytes: _binary_text,
    bytearray: _binary_text,
    memoryview: _binary_text,
    datetime: datetime.isoformat,
    date: date.isoformat,
    time: time.isoformat,
    float: _float_text,
    Decimal: lambda value: f"{value:f}",
    UUID: lambda value: str(value).upper(),
}
_JSON_TEXTS: Mapping[type, Callable[[Any], str]] = {
    type(None): lambda value: "null",
    bool: lambda value: "true" if value else "false",
    int: str,
    str: _json,
    bytes: lambda value: f'"{_binary_text(value)}"',
    float: _json_float,
    Decimal: _json_decimal,
}
