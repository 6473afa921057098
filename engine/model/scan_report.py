"""What is told of a scan session that has ended, to whoever traces scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.model.scan_session import ScanPhase, ScanSession


@dataclass(frozen=True, slots=True)
class PhaseStart:
    """When a session entered a phase, UTC; it stayed there until the next."""

    phase: ScanPhase
    at: datetime


@dataclass(frozen=True, slots=True)
class ScanReport:
    """A session that captured something, or failed. ``phases`` in order, the first with its begin.

    phases_left_out: how many are missing before the last, of a session that went through too many.
    error_number: what ended it; None where it went well.
    """

    database: str
    session: ScanSession
    phases: Sequence[PhaseStart]
    phases_left_out: int = 0
    error_number: int | None = None


Told = Callable[[ScanReport], None]


def tell_nobody(report: ScanReport) -> None:
    """Where nobody traces scans."""
