"""All databases of a home at a glance, the worst first. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dashboard.snapshot import Snapshot
from engine.monitoring.capture_state import CaptureState
from engine.monitoring.status import DatabaseStatus, EngineStatus

NOT_ENABLED = "not enabled"
_VERDICTS = ("failing", "attention", "unknown", "healthy", NOT_ENABLED)
_STATES = (CaptureState.UNREACHABLE, CaptureState.STALLED, CaptureState.STOPPED)
"""Worst first; the others are as good as each other."""


@dataclass(frozen=True, slots=True)
class FleetRow:
    """One database. ``verdict`` is a key of `theme.STATUS` or NOT_ENABLED; times are UTC.

    state, since: of capture. latency: seconds, of the newest scan if it captured anything. log_held: bytes.
    high: commit time of the high watermark. None where there is none, or nobody knows.
    """

    database: str
    verdict: str
    state: CaptureState | None = None
    since: datetime | None = None
    latency: int | None = None
    log_held: int | None = None
    instances: int = 0
    high: datetime | None = None


def fleet(picture: Snapshot) -> list[FleetRow]:
    """A row for each database; none where there is only one."""
    status = picture.status
    if status is None or len(status.databases) < 2:
        return []
    is_known = picture.failure is None
    return sorted((_row(status, each, is_known) for each in status.databases), key=_badness)


def _row(status: EngineStatus, database: DatabaseStatus, is_known: bool) -> FleetRow:
    facts, capture = database.facts, database.capture
    if not facts.database.is_cdc_enabled:
        return FleetRow(database.name, NOT_ENABLED)
    latest = facts.latest
    return FleetRow(
        database=database.name,
        verdict=str(status.verdict_of(database)) if is_known else "unknown",
        state=None if capture is None else capture.state,
        since=None if capture is None else capture.since,
        latency=latest.latency if latest is not None and latest.tran_count else None,
        log_held=None if facts.slot is None else facts.slot.retained_bytes,
        instances=len(facts.instances),
        high=facts.watermarks.last_commit_time,
    )


def _badness(row: FleetRow) -> tuple[int, int, str]:
    state = _STATES.index(row.state) if row.state in _STATES else len(_STATES)
    return _VERDICTS.index(row.verdict), state, row.database
