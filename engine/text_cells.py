"""Cells of text for tables and CSV, and rows that begin to come before anything is written. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

from rich.cells import cell_len

_Row = TypeVar("_Row")
_SPECIAL = re.compile('[,"\r\n]')


def started(rows: Iterable[_Row]) -> Iterator[_Row]:
    """The first row is asked for at once: what cannot be fetched leaves no heading behind."""
    rows = iter(rows)
    return chain(list(islice(rows, 1)), rows)


def aligned(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool], gap: str) -> str:
    """A line of a table: cells padded to ``widths``, at the right where ``right`` says so."""
    padded = [
        cell.rjust(width - _beyond(cell)) if at_right else cell.ljust(width - _beyond(cell))
        for cell, width, at_right in zip(cells, widths, right, strict=True)
    ]
    return gap.join(padded).rstrip() + "\n"


def _beyond(cell: str) -> int:
    """How many more columns it takes than it has characters."""
    return 0 if cell.isascii() else cell_len(cell) - len(cell)


def printable(text: str) -> str:
    """Text without characters that would break the table or steer the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def csv_field(text: str) -> str:
    """A field as RFC 4180 has it; an empty text is ``""``, which tells it from NULL."""
    if text and not _SPECIAL.search(text) and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'
