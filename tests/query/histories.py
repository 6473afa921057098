"""A naive model of net changes: histories of a table with the columns history, id, a and "b c"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from hypothesis import strategies as st

from engine.model.lsn import Lsn
from engine.model.mask import full_mask, mask_of
from tests.lake.change_tables import Change

COLUMNS = {"history": "int", "id": "int", "a": "int", "b c": "string"}
KEY = ["history", "id"]


@dataclass
class History:
    """Change rows of one table as capture writes them, made by statements on a model of the table."""

    number: int = 0
    changes: list[Change] = field(default_factory=list)
    masks: list[bytes] = field(default_factory=list)
    rows: dict[int, tuple[int, str]] = field(default_factory=dict)
    commit: int = 1
    command: int = 0
    states: dict[int, dict[int, tuple[int, str]]] = field(default_factory=dict)
    """The rows after each commit that changed any, and before the first one (0)."""

    def __post_init__(self) -> None:
        self.states[0] = dict(self.rows)

    def rows_at(self, commit: int) -> dict[int, tuple[int, str]]:
        """The rows when this commit was the newest."""
        return self.states[max(each for each in self.states if each <= commit)]

    def end_transaction(self) -> History:
        self.commit, self.command = self.commit + 1, 0
        return self

    def insert(self, id: int, a: int = 0, b: str = "") -> History:
        self.rows[id] = (a, b)
        return self._log([(2, id, (a, b), full_mask(4))])

    def delete(self, id: int) -> History:
        return self._log([(1, id, self.rows.pop(id), full_mask(4))])

    def update(self, id: int, a: int, b: str) -> History:
        old, new = self.rows[id], (a, b)
        self.rows[id] = new
        mask = mask_of([n for n, before, after in zip((3, 4), old, new, strict=True) if before != after], 4)
        return self._log([(3, id, old, mask), (4, id, new, mask)])

    def rekey(self, id: int, other: int) -> History:
        row = self.rows[other] = self.rows.pop(id)
        return self._log([(1, id, row, full_mask(4)), (2, other, row, full_mask(4))])

    def _log(self, images: Sequence[tuple[int, int, tuple[int, str], bytes]]) -> History:
        self.command += 1
        for operation, id, row, mask in images:
            self.changes.append((self.commit, self.command, operation, (self.number, id, *row)))
            self.masks.append(mask)
        self.states[self.commit] = dict(self.rows)
        return self

    def net(self, option: str, first: int = 1, last: int = 1000) -> list[tuple[Any, ...]]:
        """What the reference's table says, key by key."""
        found = []
        inside = [
            (change, mask)
            for change, mask in zip(self.changes, self.masks, strict=True)
            if first <= change[0] <= last and change[2] != 3
        ]
        by_key = sorted(inside, key=lambda pair: pair[0][3][:2])
        for _, group in groupby(by_key, key=lambda pair: pair[0][3][:2]):
            changes = list(group)
            existed, exists = changes[0][0][2] != 2, changes[-1][0][2] != 1
            if existed or exists:
                operation = (4 if existed else 2) if exists else 1
                if option == "all with merge" and exists:
                    operation = 5
                bits = 0
                for _, mask in changes:
                    bits |= int.from_bytes(mask, "big")
                mask = bits.to_bytes(1, "big") if option == "all with mask" else None
                commit, _, _, values = changes[-1][0]
                found.append((str(Lsn.at(commit)), operation, mask, *values))
        return found


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Random statements over four keys, some of which are there before the history begins."""
    history = History(rows=dict.fromkeys(draw(st.sets(st.integers(1, 4))), (0, "")))
    for _ in range(draw(st.integers(1, 8))):
        id, a, b = draw(st.tuples(st.integers(1, 4), st.integers(0, 2), st.sampled_from(["", "x"])))
        what = draw(st.sampled_from(["end", "delete", "update", "rekey"]))
        if what == "end":
            history.end_transaction()
        elif id not in history.rows:
            history.insert(id, a, b)
        elif what == "delete":
            history.delete(id)
        elif what == "rekey" and a + 1 not in history.rows:
            history.rekey(id, a + 1)
        elif history.rows[id] != (a, b):
            history.update(id, a, b)
    return history
