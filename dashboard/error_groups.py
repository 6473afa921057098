"""Errors of scan sessions by number and phase, and what each says of where and whether it goes on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard import glossary
from dashboard.snapshot import DatabaseView
from engine.model.capture_instance import CaptureInstance
from engine.model.job import JobState, is_cleanup
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanError

OUTSIDE = "outside of a scan session"


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """The errors of one number that were met in one phase, newest first; at least one."""

    number: int
    phase: int
    errors: tuple[ScanError, ...]

    @property
    def newest(self) -> ScanError:
        """The last one."""
        return self.errors[0]

    @property
    def first(self) -> ScanError:
        """The oldest that is kept."""
        return self.errors[-1]


def grouped(errors: Iterable[ScanError]) -> list[ErrorGroup]:
    """Groups by number and phase, the one with the newest error first."""
    groups: dict[tuple[int, int], list[ScanError]] = {}
    for error in sorted(errors, key=lambda each: each.entry_time, reverse=True):
        groups.setdefault((error.error_number, error.phase_number), []).append(error)
    return [ErrorGroup(number, phase, tuple(found)) for (number, phase), found in groups.items()]


def phase_text(phase: int) -> str:
    """``5 writing rows``; what has no phase was met outside of a scan session."""
    return f"{phase} {glossary.PHASES[phase]}" if phase in glossary.PHASES else OUTSIDE


def lsn_of(text: str) -> Lsn | None:
    """An LSN of the view; None for 0, which says that there is none."""
    try:
        found = Lsn.parse(text)
    except ValueError:
        return None
    return None if found == Lsn.ZERO else found


def place_of(error: ScanError) -> Lsn | None:
    """The most exact of its LSNs: the rows in work, their transaction, the scan."""
    texts = (error.sequence_value, error.begin_lsn, error.start_lsn)
    return next((found for text in texts if (found := lsn_of(text)) is not None), None)


def instance_of(error: ScanError, instances: Sequence[CaptureInstance]) -> CaptureInstance | None:
    """The capture instance that the message names; the longest where several names fit."""
    named = [each for each in instances if f"'{each.capture_instance}'" in error.error_message]
    return max(named, key=lambda each: len(each.capture_instance), default=None)


def over_since(error: ScanError, view: DatabaseView) -> datetime | None:
    """When the same work went well again after the error; None while it has not.

    A scan has when the log was published past it; a cleanup when its job no longer stands as failed.
    """
    if error.session_id == 0:
        cleanup = next(filter(is_cleanup, view.jobs), None)
        is_over = cleanup is None or cleanup.state is not JobState.FAILED
        return (error.entry_time if cleanup is None else cleanup.since) if is_over else None
    published = view.watermarks.published_at
    return published if published is not None and published > error.entry_time else None
