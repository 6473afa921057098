"""What is wrong with the data collector: sets that fail, and sets whose snapshots do not come. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from engine.model.collection import CollectionSet
from engine.model.job import RunOutcome
from engine.monitoring.diagnosis import Finding, Verdict

LATE_INTERVALS = 0.5
"""A snapshot is late when so much of an interval has gone since it was due."""
LEAST_PATIENCE = timedelta(seconds=60)
"""But no sooner than after so long: the agent looks for what is due only now and then."""


def collection_findings(
    sets: Sequence[CollectionSet], agent_is_alive: bool, now: datetime
) -> Iterator[Finding]:
    """A finding for each set at most. That nothing is collected without an agent is the agent's finding."""
    for each in sets:
        if each.last_run is not None and each.last_run.outcome is RunOutcome.FAILED:
            run = each.last_run
            text = f"The last snapshot of collection set '{each.name}' failed: {run.message}"
            yield _finding(each, text, run.end_time or run.snapshot_time)
        elif agent_is_alive and each.is_running and each.next_run is not None and _is_late(each, now):
            late = (now - each.next_run).total_seconds()
            text = f"A snapshot of collection set '{each.name}' has been due for {late:.0f} s."
            yield _finding(each, text, each.next_run)


def _is_late(collection_set: CollectionSet, now: datetime) -> bool:
    run, due = collection_set.last_run, collection_set.next_run
    seconds = 0 if run is None or run.interval_seconds is None else run.interval_seconds
    return due is not None and now - due > max(LEAST_PATIENCE, LATE_INTERVALS * timedelta(seconds=seconds))


def _finding(collection_set: CollectionSet, text: str, since: datetime) -> Finding:
    fix = f"highwater collector collect-now {shlex.quote(collection_set.name)}"
    return Finding(Verdict.ATTENTION, "Data collector", text, since, fix)
