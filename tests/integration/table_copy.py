"""A table kept up to date from change rows alone: what a consumer would do, written apart from the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

DELETE, INSERT, BEFORE, AFTER = 1, 2, 3, 4

Row = tuple[Any, ...]


class TableCopy:
    """The rows of a table as a multiset: equal rows may occur where there is no key."""

    def __init__(self, columns: Sequence[str], rows: Iterable[Row]) -> None:
        self.columns = columns
        self.rows = Counter(rows)

    def apply(self, changes: Iterable[Mapping[str, Any]]) -> None:
        """Applies change rows in the order given; a row that is to go must be there."""
        last = ""
        for change in changes:
            assert change["__$start_lsn"] >= last, "changes come in commit order"
            last = change["__$start_lsn"]
            row = tuple(change[column] for column in self.columns)
            if change["__$operation"] in (INSERT, AFTER):
                self.rows[row] += 1
            else:
                assert self.rows[row] > 0, f"{row} goes, but is not there"
                self.rows[row] -= 1

    def differences(self, rows: Iterable[Row]) -> tuple[list[Row], list[Row]]:
        """Rows that only this copy has, and rows that only ``rows`` has."""
        others = Counter(rows)
        return list((self.rows - others).elements()), list((others - self.rows).elements())
