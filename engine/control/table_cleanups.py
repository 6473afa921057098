"""What a cleanup did to each table, as JSON of dbo.job_history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from engine.model.job import TableCleanup
from engine.model.lsn import Lsn

_LSNS, _TIMES = ("low_before", "low_after"), ("time_before", "time_after")


def to_json(tables: Iterable[TableCleanup]) -> list[dict[str, Any]]:
    """One object a table; LSNs and times as text."""
    return [{name: _text(value) for name, value in asdict(table).items()} for table in tables]


def from_json(tables: Iterable[Mapping[str, Any]]) -> tuple[TableCleanup, ...]:
    """The way back."""
    return tuple(
        TableCleanup(**{name: _value(name, found) for name, found in each.items()}) for each in tables
    )


def _text(value: Any) -> Any:
    if isinstance(value, dict):  # asdict has looked into the LSN
        return str(Lsn(**value))
    return value.isoformat() if isinstance(value, datetime) else value


def _value(name: str, found: Any) -> Any:
    if found is None:
        return None
    if name in _LSNS:
        return Lsn.parse(found)
    return datetime.fromisoformat(found) if name in _TIMES else found
