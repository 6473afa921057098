"""What somebody did: a row of the audit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Outcome(StrEnum):
    """How an action ended. ``running``: it has not, or what ran it ended first."""

    RUNNING = "running"
    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Action:
    """One action. ``statement``: T-SQL that does the same; secrets in it are ``***``. Times UTC.

    ``error_number`` and ``error_text``: the error, or the message of severity 10, that it ended with; number
    0 for one that is not the engine's.
    """

    activity_id: int
    started: datetime
    ended: datetime | None
    user_name: str
    role: str | None
    database: str | None
    command: str
    statement: str
    outcome: Outcome
    error_number: int | None = None
    error_text: str | None = None
