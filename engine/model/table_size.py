"""How large a table of the lake is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableSize:
    """The newest version of a table: rows, data files and their bytes."""

    rows: int
    files: int
    bytes: int
