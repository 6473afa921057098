"""Alerts: what is told to a command or a web service, and when it was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class AlertKind(StrEnum):
    """What an alert is about."""

    FAILURE = "failure"
    """The capture job fails; it is tried again."""
    CLEANUP_FAILURE = "cleanup failure"
    STALL = "stall"
    """The capture job runs and publishes nothing, though the log goes on."""
    LAG = "lag"
    SLOT = "slot"
    """The source keeps too much log for capture, or has removed what capture needs."""
    AGENT = "agent"
    """No agent runs, though one is to. Of the home, of no database."""
    COLLECTION = "collection"
    """The data collector fails, or its snapshots do not come. Of the home, of no database."""


@dataclass(frozen=True, slots=True)
class AlertThresholds:
    """From where on something is an alert: capture is behind, publishes nothing, keeps too much log."""

    lag_seconds: int
    stall_seconds: int
    slot_bytes: int


@dataclass(frozen=True, slots=True)
class AlertHook:
    """Who is told, and from where on. One of command and webhook, or neither: nobody is told.

    command: a program with its arguments, started by the agent without a shell, the alert as JSON on its
    standard input; webhook: a URL that gets it by POST. lag_seconds, stall_seconds and slot_bytes are the
    thresholds; timeout_seconds is how long the hook may take.
    """

    command: str | None = None
    webhook: str | None = None
    lag_seconds: int = 60
    stall_seconds: int = 60
    slot_bytes: int = 1024**3
    timeout_seconds: int = 10

    @property
    def is_set(self) -> bool:
        """Whether anybody is told."""
        return self.command is not None or self.webhook is not None

    @property
    def thresholds(self) -> AlertThresholds:
        """From where on it is told, without who is."""
        return AlertThresholds(self.lag_seconds, self.stall_seconds, self.slot_bytes)


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert of a database, '' for one of the home. Times are UTC; ``cleared_at`` is None while it stands.

    raised_told and cleared_told: how the hook took it, None until it was told.
    """

    alert_id: int
    database: str
    kind: AlertKind
    text: str
    raised_at: datetime
    cleared_at: datetime | None = None
    raised_told: str | None = None
    cleared_told: str | None = None

    def as_dict(self, event: str) -> dict[str, object]:
        """What the hook gets as JSON: ``event`` is raised, cleared or test; times ISO 8601."""
        return {
            "event": event,
            "alert_id": self.alert_id,
            "database": self.database,
            "kind": str(self.kind),
            "text": self.text,
            "raised_at": self.raised_at.isoformat(),
            "cleared_at": None if self.cleared_at is None else self.cleared_at.isoformat(),
        }
