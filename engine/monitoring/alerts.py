"""Which alerts stand, by the status of a database. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.model.alert import AlertHook, AlertKind
from engine.model.job import JobState
from engine.monitoring.diagnosis import DatabaseFacts


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to be told of a database: alerts that stand with their words, and kinds nobody can tell now.

    What is not known is neither raised nor cleared.
    """

    standing: dict[AlertKind, str]
    unknown: frozenset[AlertKind]


def judge(facts: DatabaseFacts, now: datetime, hook: AlertHook) -> Judgement:
    """The alerts of one database by the thresholds of the hook."""
    standing = dict(_jobs(facts))
    unknown = set()
    if facts.database.is_cdc_enabled and facts.log_end is None:
        unknown |= {AlertKind.STALL, AlertKind.LAG}
    else:
        standing |= _progress(facts, now, hook)
    if facts.database.is_cdc_enabled and facts.slot is None:
        unknown.add(AlertKind.SLOT)
    else:
        standing |= _slot(facts, hook)
    return Judgement(standing, frozenset(unknown))


def _jobs(facts: DatabaseFacts) -> Iterator[tuple[AlertKind, str]]:
    capture, cleanup = facts.capture_job, facts.cleanup_job
    if capture is not None and capture.state is JobState.FAILED:
        yield AlertKind.FAILURE, f"{capture.name} fails: {capture.message}"
    if cleanup is not None and cleanup.state is JobState.FAILED:
        yield AlertKind.CLEANUP_FAILURE, f"{cleanup.name} failed: {cleanup.message}"


def _progress(facts: DatabaseFacts, now: datetime, hook: AlertHook) -> dict[AlertKind, str]:
    """Stall and lag: how long what the log has is not published."""
    found: dict[AlertKind, str] = {}
    name, silence = facts.database.name, _silence(facts, now)
    latency = timedelta(seconds=0 if facts.latest is None else facts.latest.latency)
    lag = max(latency, silence)
    if lag > timedelta(seconds=hook.lag_seconds):
        words = f"Capture of {name} is {lag.total_seconds():.0f} s behind"
        found[AlertKind.LAG] = f"{words}, more than {hook.lag_seconds} s."
    job = facts.capture_job
    if job is not None and job.state is JobState.RUNNING:
        pause = 0 if job.running is None else job.running.pollinginterval
        patience = timedelta(seconds=hook.stall_seconds + 2 * pause)
        if min(silence, now - job.since) > patience:
            words = f"{job.name} runs, but has published nothing for {silence.total_seconds():.0f} s"
            found[AlertKind.STALL] = f"{words}, though the log goes on."
    return found


def _silence(facts: DatabaseFacts, now: datetime) -> timedelta:
    """For how long nothing was published while there was something to publish; 0 where there was nothing."""
    marks, end = facts.watermarks, facts.log_end
    if end is None or marks.published_at is None or (marks.scanned is not None and end <= marks.scanned):
        return timedelta(0)
    return max(now - marks.published_at, timedelta(0))


def _slot(facts: DatabaseFacts, hook: AlertHook) -> dict[AlertKind, str]:
    slot = facts.slot
    if slot is None:
        return {}
    of = f"the log of {facts.database.name}"
    if slot.wal_status in ("lost", "unreserved"):
        return {AlertKind.SLOT: f"Slot {slot.slot} of {of} is {slot.wal_status}."}
    if slot.retained_bytes > hook.slot_bytes:
        kept = f"{slot.retained_bytes / 1024**2:,.0f} MiB of {of} are kept for capture"
        return {AlertKind.SLOT: f"{kept}, more than {hook.slot_bytes / 1024**2:,.0f} MiB."}
    return {}
