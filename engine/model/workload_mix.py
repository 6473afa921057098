"""What the demo's workload is made of: which tables, what is done to them, how much at once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SCHEMAS = ("HumanResources", "Production", "Sales")
"""Of the company's tables."""
MOST_AT_ONCE = 10_000
"""Statements of a transaction, and transactions of a burst."""
HIGHEST_PART = 1000


@dataclass(frozen=True, slots=True)
class Mix:
    """The company's own mix, or another.

    schemas: of the tables that are changed, by commas; empty: all. inserts, updates, deletes: how large a
    part each is of what is done, in any unit; all 0: as the company does. rows: statements of a transaction,
    at least; one changes a row, mostly. burst: so many transactions come at once, at the same rate.
    """

    schemas: str = ""
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    rows: int = 1
    burst: int = 1

    @property
    def of(self) -> frozenset[str]:
        """The schemas by name."""
        named = frozenset(part.strip() for part in self.schemas.split(",") if part.strip())
        return named or frozenset(SCHEMAS)

    @property
    def parts(self) -> Mapping[str, int] | None:
        """The part of each verb; None for the company's own."""
        parts = {"INSERT": self.inserts, "UPDATE": self.updates, "DELETE": self.deletes}
        return parts if any(parts.values()) else None

    def problem(self) -> str | None:
        """Why there can be no such mix; None where there can."""
        for name in sorted(self.of - set(SCHEMAS)):
            return f"the company has no schema '{name}', but {', '.join(SCHEMAS)}"
        if not all(0 <= part <= HIGHEST_PART for part in (self.inserts, self.updates, self.deletes)):
            return f"inserts, updates and deletes are parts of 0 to {HIGHEST_PART}"
        if not 1 <= self.rows <= MOST_AT_ONCE or not 1 <= self.burst <= MOST_AT_ONCE:
            return f"rows and burst are 1 to {MOST_AT_ONCE}"
        return None
