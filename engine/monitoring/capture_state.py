"""The state of capture of one database, since when, why, and what to paste. Pure rules over facts.

Four states in which nothing new is published look alike from afar and are told apart here: there was
nothing to capture (quiet), something holds it up (stalled), it does not run (stopped), the source does not
answer (unreachable).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from engine.model.job import Job, JobState
from engine.monitoring.diagnosis import (
    LOOK_INTO_START,
    START_AGENT,
    DatabaseFacts,
    Finding,
    Thresholds,
    Verdict,
    add_job,
    after_failure,
    begin_anew,
    check_source,
    restart,
    revival,
    standstill,
    start_job,
)
from engine.monitoring.forecast import LogForecast, LogPoint, forecast

SETTLED = timedelta(seconds=5)
"""After the last captured change, beyond two polling intervals: from then on it is quiet."""


class CaptureState(StrEnum):
    """What capture of a database does."""

    CAPTURING = "capturing"
    QUIET = "quiet"
    STALLED = "stalled"
    STOPPED = "stopped"
    UNREACHABLE = "unreachable"

    @property
    def lets_log_go(self) -> bool:
        """Whether the source may remove log that was read."""
        return self in (CaptureState.CAPTURING, CaptureState.QUIET)


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What is known of the agent. ``awaited_since`` and ``pid`` as in `diagnosis.diagnose`.

    seen: its last sign of life, UTC, where it is away.
    """

    is_alive: bool
    awaited_since: datetime | None = None
    pid: int | None = None
    seen: datetime | None = None


@dataclass(frozen=True, slots=True)
class StateOfCapture:
    """``since`` is UTC, None where nobody knows; ``fix`` is empty where there is nothing to mend."""

    state: CaptureState
    since: datetime | None
    why: str
    fix: str = ""


def state_of_capture(
    facts: DatabaseFacts, agent: AgentFacts, now: datetime, thresholds: Thresholds | None = None
) -> StateOfCapture | None:
    """The state; None for a database that is not enabled."""
    if not facts.database.is_cdc_enabled:
        return None
    limits, job = thresholds or Thresholds(), facts.capture_job
    if facts.unreachable is not None:
        return _unreachable(facts, facts.unreachable, job)
    if job is None:
        return _without_job(facts, agent)
    if not agent.is_alive:
        return _without_agent(facts, job, agent, now, limits)
    if job.state is JobState.FAILED:
        fix = after_failure(facts)
        return StateOfCapture(CaptureState.STALLED, job.since, job.message, fix)
    if not job.wanted or job.state is JobState.STOPPED:
        return _stopped(facts, job)
    if facts.broken is not None:
        return StateOfCapture(CaptureState.STALLED, None, facts.broken, begin_anew(facts))
    if job.state is JobState.STARTING:
        return _starting(facts, job, now, limits)
    found = standstill(facts, now, limits, revival(agent.pid, agent.awaited_since))
    if found is not None:
        return StateOfCapture(CaptureState.STALLED, found.since, found.text, found.fix)
    return _working(facts, job, now)


def _unreachable(facts: DatabaseFacts, words: str, job: Job | None) -> StateOfCapture:
    failed = job is not None and job.state is JobState.FAILED
    since = job.since if job is not None and failed else facts.watermarks.published_at
    again = " Capture goes on by itself once it answers." if job is not None and job.wanted else ""
    why = f"{words.rstrip('.')}.{again}"
    return StateOfCapture(CaptureState.UNREACHABLE, since, why, check_source(facts))


def _without_job(facts: DatabaseFacts, agent: AgentFacts) -> StateOfCapture:
    if facts.instances:
        why = "There are tracked tables, but no capture job."
        return StateOfCapture(CaptureState.STOPPED, None, why, add_job(facts))
    if not agent.is_alive:
        why = "The agent is not running, and no table is tracked."
        return StateOfCapture(CaptureState.STOPPED, agent.seen, why, START_AGENT)
    return StateOfCapture(CaptureState.QUIET, None, "No table is tracked.")


def _without_agent(
    facts: DatabaseFacts, job: Job, agent: AgentFacts, now: datetime, limits: Thresholds
) -> StateOfCapture:
    if not job.wanted:
        fix = f"{START_AGENT} --detach; {start_job(facts)}"
        why = f"{job.name} was stopped, and the agent is not running."
        return StateOfCapture(CaptureState.STOPPED, job.since, why, fix)
    since = job.since if agent.seen is None else max(job.since, agent.seen)
    if agent.awaited_since is None:
        return StateOfCapture(CaptureState.STOPPED, since, "The agent is not running.", START_AGENT)
    if now - max(since, agent.awaited_since) <= limits.agent_start:
        return StateOfCapture(CaptureState.STOPPED, since, "The agent is being started.")
    why = "The agent does not start. Its log says why: agent.log in the home's folder log."
    return StateOfCapture(CaptureState.STOPPED, since, why, LOOK_INTO_START)


def _stopped(facts: DatabaseFacts, job: Job) -> StateOfCapture:
    if not job.wanted and job.next_run is not None:
        why = f"{job.name} rests until {job.next_run:%Y-%m-%d %H:%M:%S} UTC, when its schedule starts it."
        return StateOfCapture(CaptureState.STOPPED, job.since, why, start_job(facts))
    if job.wanted:
        return StateOfCapture(CaptureState.STOPPED, job.since, "The agent is about to start it.")
    is_ending = job.state is not JobState.STOPPED
    was_stopped = job.message == "Stopped."
    ended = f"{job.name} was stopped." if was_stopped else f"{job.name}: {job.message}"
    why = f"{job.name} is stopping." if is_ending else ended
    return StateOfCapture(CaptureState.STOPPED, job.since, why, start_job(facts))


def _starting(facts: DatabaseFacts, job: Job, now: datetime, limits: Thresholds) -> StateOfCapture:
    if now - job.since <= limits.stalled:
        return StateOfCapture(CaptureState.CAPTURING, job.since, "It is starting.")
    slot = facts.slot
    if slot is not None and slot.blocked_by:
        pids = ", ".join(str(pid) for pid in slot.blocked_by)
        why = f"Its first scan waits for a lock that session {pids} of the source holds."
        return StateOfCapture(CaptureState.STALLED, job.since, why, restart(facts))
    why = "Its first scan has not ended yet."
    return StateOfCapture(CaptureState.CAPTURING, job.since, why)


def _working(facts: DatabaseFacts, job: Job, now: datetime) -> StateOfCapture:
    latest = facts.latest
    if job.running_step is not None and (latest is None or latest.end_time is not None):
        return StateOfCapture(CaptureState.CAPTURING, job.since, "Its own step runs, and scans by calls.")
    if latest is None:
        return StateOfCapture(CaptureState.QUIET, job.since, "Nothing was met in the log yet.")
    if latest.empty_scan_count and latest.end_time is not None:
        return StateOfCapture(CaptureState.QUIET, latest.start_time, "No change to capture was committed.")
    if latest.end_time is None:
        why = f"A scan is in phase '{latest.scan_phase}'."
        return StateOfCapture(CaptureState.CAPTURING, job.since, why)
    polling = timedelta(seconds=job.running.pollinginterval if job.running is not None else 0)
    marks, end = facts.watermarks, facts.log_end
    is_read = end is None or marks.scanned is None or end <= marks.scanned
    if is_read and now - latest.end_time > SETTLED + 2 * polling:
        why = "No change to capture was committed."
        return StateOfCapture(CaptureState.QUIET, latest.end_time, why)
    why = f"Latency is {latest.latency} s."
    return StateOfCapture(CaptureState.CAPTURING, job.since, why)


def log_forecast(facts: DatabaseFacts, state: StateOfCapture | None, now: datetime) -> LogForecast | None:
    """When the log that is kept for capture meets its limits; None where the source did not say."""
    slot = facts.slot
    if slot is None or facts.log_end is None or state is None:
        return None
    return forecast(
        facts.log_before,
        LogPoint(facts.log_end.position, now),
        slot.safe_wal_size,
        slot.disk_free_bytes,
        is_growing=not state.state.lets_log_go,
    )


def forecast_finding(
    facts: DatabaseFacts,
    state: StateOfCapture | None,
    found: LogForecast | None,
    thresholds: Thresholds | None = None,
) -> Finding | None:
    """What is to be said where the log grows towards a limit that is near; None otherwise."""
    limits = thresholds or Thresholds()
    if state is None or found is None or not found.is_growing or found.nearest is None:
        return None
    if found.nearest > limits.forecast:
        return None
    is_disk = found.nearest == found.disk
    effect = "the source's disk is full" if is_disk else "max_slot_wal_keep_size is used up and log is lost"
    text = f"Capture is {state.state}: in {duration(found.nearest)} {effect}, as the log grows now."
    verdict = Verdict.FAILING if found.nearest <= limits.forecast_failing else Verdict.ATTENTION
    name = facts.database.name
    return Finding(verdict, f"Log of {name}", text, state.since, state.fix, name)


def duration(length: timedelta) -> str:
    """In the two largest units: ``3 d 4 h``, ``5 min 20 s``."""
    seconds = round(length.total_seconds())
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")]
    first = next((place for place, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count) or "0 s"
