"""Which row of a table is selected, by what it is rather than by its place. Pure.

A table in the browser knows the place alone. Rows that come on top move what was selected to another place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DrawnRows:
    """The rows of a table as it was drawn last, in order, no two alike."""

    rows: tuple[Hashable, ...]

    def followed(self, clicked: int | None, now: Sequence[Hashable]) -> int | None:
        """The place of the selected row among ``now``; None where it is not there any more.

        clicked: the place that the browser has. It means the rows that were drawn, since a click on them may
        come with the run that draws newer ones.
        """
        if clicked is None or clicked >= len(self.rows):
            return None
        chosen = self.rows[clicked]
        return now.index(chosen) if chosen in now else None


def told_apart(rows: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Rows that look alike get numbers, counted from the last: what comes on top leaves them as they are."""
    seen: Counter[Hashable] = Counter()
    numbered: list[Hashable] = []
    for row in reversed(rows):
        numbered.append((row, seen[row]))
        seen[row] += 1
    return tuple(reversed(numbered))
