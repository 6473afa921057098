"""Gaps and restarts between snapshots. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from engine.model.collection import BreakKind, HistoryBreak

GAP_INTERVALS = 1.5
"""Later than so many intervals after the snapshot before, one is missing."""


@dataclass(frozen=True, order=True, slots=True)
class SnapshotMark:
    """That a snapshot was taken: when, by the agent that began when, how many seconds before the next."""

    snapshot_time: datetime
    snapshot_id: int
    agent_start: datetime
    interval_seconds: int | None


def breaks(marks: Iterable[SnapshotMark], until: datetime | None = None) -> Sequence[HistoryBreak]:
    """Gaps, and changes of the agent, in order of time.

    until: up to where snapshots were to be; None: the last one ends it. Of snapshots without a schedule
    nobody knows when the next was to come: no gap.
    """
    found: list[HistoryBreak] = []
    before: SnapshotMark | None = None
    for mark in sorted(marks):
        if before is not None:
            if _is_late(before, mark.snapshot_time):
                found.append(HistoryBreak(BreakKind.GAP, before.snapshot_time, mark.snapshot_time))
            if mark.agent_start != before.agent_start:
                found.append(_agent_restart(before, mark))
        before = mark
    if before is not None and until is not None and _is_late(before, until):
        found.append(HistoryBreak(BreakKind.GAP, before.snapshot_time, None))
    return found


@dataclass(frozen=True, order=True, slots=True)
class Run:
    """A run of capture as snapshots have it: the first one, and when the first and the last were taken.

    began: None where it was not known yet when they were taken.
    """

    database: str
    first_snapshot: int
    first: datetime
    last: datetime
    began: datetime | None = field(default=None, compare=False)


def restarts(runs: Iterable[Run]) -> Sequence[HistoryBreak]:
    """Where another run of capture follows one of the same database, in order of time."""
    found = [
        HistoryBreak(BreakKind.ENGINE_RESTART, before.last, after.first, after.database, began=after.began)
        for before, after in pairwise(sorted(runs))
        if before.database == after.database
    ]
    return sorted(found, key=lambda each: (each.start, each.database or ""))


def _agent_restart(before: SnapshotMark, after: SnapshotMark) -> HistoryBreak:
    return HistoryBreak(
        BreakKind.AGENT_RESTART, before.snapshot_time, after.snapshot_time, began=after.agent_start
    )


def _is_late(before: SnapshotMark, moment: datetime) -> bool:
    if before.interval_seconds is None:
        return False
    return moment - before.snapshot_time > timedelta(seconds=GAP_INTERVALS * before.interval_seconds)
