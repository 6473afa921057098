"""Rows as JSON lines, CSV or a table of text: lines of output, made one by one. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain, islice
from typing import Any

from rich.cells import cell_len

from engine.cli.value_text import json_encoder, text_encoder
from engine.text_cells import aligned, csv_field, printable, started

ROWS_MEASURED = 200
"""A table's column widths are those of its first rows: more are not held back."""
WIDEST = 60
"""A table's column is no wider; longer values are shown in full all the same."""
GAP = "  "
"""Between a table's columns."""

Column = tuple[str, str]
"""Name and lake type, as ``DataFrame.dtypes`` gives them."""
Row = Sequence[Any]


class Format(StrEnum):
    """Forms of output."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def lines(columns: Sequence[Column], rows: Iterable[Row], form: Format) -> Iterator[str]:
    """The output line by line, with line ends; a heading also without rows, but for JSON.

    The first row is asked for at once: what cannot be fetched leaves no heading behind.
    """
    return _FORMS[form](columns, started(rows))


def json_lines(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    """One object a row, keys in column order (`json_encoder` says how values are written)."""
    fields = [(f"{json.dumps(name, ensure_ascii=False)}: ", json_encoder(kind)) for name, kind in columns]
    for row in rows:
        members = [key + encode(value) for (key, encode), value in zip(fields, row, strict=True)]
        yield f"{{{', '.join(members)}}}\n"


def csv_lines(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    """A heading, then the rows, as RFC 4180; NULL is nothing, an empty string ``""``."""
    yield ",".join(csv_field(name) for name, _ in columns) + "\n"
    encoders = [text_encoder(kind) for _, kind in columns]
    for row in rows:
        fields = (
            "" if value is None else csv_field(encode(value))
            for encode, value in zip(encoders, row, strict=True)
        )
        yield ",".join(fields) + "\n"


def table_lines(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    """A heading, a rule, then the rows in columns; numbers at the right; NULL written out."""
    cells = _cells(columns, rows)
    measured = list(islice(cells, ROWS_MEASURED))
    names = [printable(name) for name, _ in columns]
    widths = [
        min(WIDEST, max(cell_len(cell) for cell in column)) for column in zip(names, *measured, strict=True)
    ]
    right = [_is_number(kind) for _, kind in columns]
    yield aligned(names, widths, [False] * len(names), GAP)
    yield GAP.join("-" * width for width in widths) + "\n"
    for row in chain(measured, cells):
        yield aligned(row, widths, right, GAP)


def _cells(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[list[str]]:
    encoders = [text_encoder(kind) for _, kind in columns]
    for row in rows:
        yield [
            "NULL" if value is None else printable(encode(value))
            for encode, value in zip(encoders, row, strict=True)
        ]


def _is_number(lake_type: str) -> bool:
    return lake_type.startswith(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"))


_FORMS: dict[Format, Callable[[Sequence[Column], Iterable[Row]], Iterator[str]]] = {
    Format.JSON: json_lines,
    Format.CSV: csv_lines,
    Format.TABLE: table_lines,
}
