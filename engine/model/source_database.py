"""A registered source database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SourceDatabase:
    """A source by name. ``dsn`` is a libpq URI without password: secrets stay in the home."""

    database_id: int
    name: str
    kind: str
    dsn: str
    is_cdc_enabled: bool
    created: datetime
