"""Runs of a collection set as a verdict and gaps. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from engine.collector.breaks import SnapshotMark, breaks
from engine.collector.schedules import schedule_of_text
from engine.model.collection import BreakKind, CollectionRun, CollectionSet, HistoryBreak
from engine.model.job import RunOutcome


@dataclass(frozen=True, slots=True)
class Collected:
    """What the newest runs of a set say: ``newest`` snapshot that counts, ``gaps`` among them."""

    newest: CollectionRun | None
    gaps: Sequence[HistoryBreak]
    failed: Sequence[CollectionRun]


def collected(runs: Sequence[CollectionRun], until: datetime) -> Collected:
    """Gaps between snapshots up to ``until``, each with what failed meanwhile. runs: in any order."""
    good = [run for run in runs if run.outcome is RunOutcome.SUCCEEDED]
    failed = sorted(
        (run for run in runs if run.outcome in (RunOutcome.FAILED, RunOutcome.INTERRUPTED)),
        key=lambda run: run.snapshot_time,
    )
    marks = [
        SnapshotMark(run.snapshot_time, run.snapshot_id, run.agent_start, run.interval_seconds)
        for run in good
    ]
    gaps = [each for each in breaks(marks, until) if each.kind is BreakKind.GAP]
    newest = max(good, key=lambda run: (run.snapshot_time, run.snapshot_id), default=None)
    return Collected(newest, [_explained(gap, failed) for gap in gaps], failed)


def _explained(gap: HistoryBreak, failed: Sequence[CollectionRun]) -> HistoryBreak:
    meanwhile = [
        run.message
        for run in failed
        if gap.start <= run.snapshot_time and (gap.end is None or run.snapshot_time <= gap.end)
    ]
    return replace(gap, reason=meanwhile[-1]) if meanwhile else gap


def schedule_name(found: CollectionSet) -> str:
    """How a set's schedule is called: its shipped name, cron text, or that it has none."""
    shipped = schedule_of_text(found.schedule)
    return shipped.name if shipped is not None else found.schedule or "on demand"
