"""The verdict: what is wrong with capture, since when, and the fix to paste. Pure rules over facts."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from engine.errors import (
    CapturedColumnChanged,
    CleanupFailed,
    ClientDropped,
    DdlNotProcessed,
    LogBroken,
    LowEndpointNotComputed,
    ObjectsGone,
    ObsoleteMappingRowsLeft,
    ObsoleteRowsLeft,
    OldRowsMissing,
)
from engine.model.capture_instance import CaptureInstance
from engine.model.client import Client, ClientForecast
from engine.model.job import WAITS_FOR_SCAN, AnyJob, CleanupJob, Job, JobState, is_capture, is_cleanup
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanError, ScanSession
from engine.model.source_database import SourceDatabase
from engine.model.watermark import Watermarks
from engine.monitoring.forecast import LogPoint
from engine.sources.base import GONE, SlotState, SourceProblem

START_AGENT = "highwater start"
_ENDED_BY_ENABLING_AGAIN = {CapturedColumnChanged.number, OldRowsMissing.number, DdlNotProcessed.number}
"""Errors that a scan meets again whenever it reads the same log, until the instance is gone."""
_OF_CLEANUP = {
    each.number
    for each in (
        LowEndpointNotComputed,
        CleanupFailed,
        ObsoleteRowsLeft,
        ObsoleteMappingRowsLeft,
        ClientDropped,
    )
}
LOOK_INTO_START = "highwater doctor"
AGENT = "Agent"
"""The subject of what is wrong with the process that runs jobs."""


class Verdict(StrEnum):
    """How a home is; the worst of its findings."""

    HEALTHY = "healthy"
    ATTENTION = "attention"
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. ``since`` is UTC, None where nobody knows.

    ``fix`` is a command or statement to paste, empty where help is on its way. ``database`` is the one
    that it is about, None for the agent and the like.
    """

    verdict: Verdict
    subject: str
    text: str
    since: datetime | None
    fix: str
    database: str | None = None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From where on something is worth a finding."""

    latency: timedelta = timedelta(seconds=60)
    stalled: timedelta = timedelta(seconds=30)
    agent_start: timedelta = timedelta(seconds=60)
    retained_bytes: int = 1024**3
    forecast: timedelta = timedelta(hours=24)
    forecast_failing: timedelta = timedelta(hours=1)
    client: timedelta = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """What is known of one database when the verdict is given.

    latest: the newest scan session of the agent's present run. errors: oldest first.
    slot, log_end: None where the source did not say; ``unreachable`` then holds its words, or ``broken``
    what is wrong with the log of one that does answer.
    jobs: as the agent reported them last, whether it still runs or not.
    silent_since: when the lease ended of a capture process that ought to renew it; None while it does.
    client_forecasts: by capture instance and name; of those that are known.
    progress_at: when the newest session was seen to get on. log_before: where the log ended some time ago.
    """

    database: SourceDatabase
    instances: Sequence[CaptureInstance]
    jobs: Sequence[AnyJob]
    watermarks: Watermarks
    latest: ScanSession | None
    errors: Sequence[ScanError]
    slot: SlotState | None
    log_end: Lsn | None
    unreachable: str | None
    tracking_problems: Sequence[SourceProblem] = ()
    broken: str | None = None
    silent_since: datetime | None = None
    progress_at: datetime | None = None
    log_before: LogPoint | None = None
    clients: Sequence[Client] = ()
    client_forecasts: Mapping[tuple[str, str], ClientForecast] = field(default_factory=dict)

    @property
    def capture_job(self) -> Job | None:
        """The capture job, once a first table is enabled."""
        return next((job for job in self.jobs if is_capture(job)), None)

    @property
    def cleanup_job(self) -> CleanupJob | None:
        """The cleanup job, unless it was dropped."""
        return next((job for job in self.jobs if is_cleanup(job)), None)


@dataclass(frozen=True, slots=True)
class Standstill:
    """Why capture, which should run, does not get on; ``since`` is UTC."""

    since: datetime
    text: str
    fix: str


def verdict_of(findings: Sequence[Finding]) -> Verdict:
    """The worst of the findings."""
    for verdict in (Verdict.FAILING, Verdict.ATTENTION):
        if any(finding.verdict is verdict for finding in findings):
            return verdict
    return Verdict.HEALTHY


def diagnose(
    databases: Sequence[DatabaseFacts],
    agent_is_alive: bool,
    now: datetime,
    thresholds: Thresholds | None = None,
    agent_awaited_since: datetime | None = None,
    agent_pid: int | None = None,
) -> tuple[Finding, ...]:
    """Everything that is wrong, the worst first.

    agent_awaited_since: a supervisor is there, which starts the agent when it is away, and since when it
    does so, UTC. agent_pid: the agent's process, where it is known.
    """
    limits = thresholds or Thresholds()
    findings: list[Finding] = []
    revived_by = revival(agent_pid, agent_awaited_since)
    if not agent_is_alive:
        findings.append(_agent_away(databases, agent_awaited_since, now, limits))
    for facts in databases:
        if facts.database.is_cdc_enabled:
            mine = _of_database(facts, agent_is_alive, now, limits, revived_by)
            findings += (replace(each, database=facts.database.name) for each in mine)
    return worst_first(findings)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """In this order otherwise."""
    return tuple(sorted(findings, key=lambda finding: finding.verdict is not Verdict.FAILING))


def _of_database(
    facts: DatabaseFacts, agent_is_alive: bool, now: datetime, limits: Thresholds, revived_by: str
) -> Iterator[Finding]:
    yield from _source(facts)
    yield from _tracking(facts)
    yield from _slot(facts, limits)
    yield from _job(facts, agent_is_alive)
    yield from _cleanup(facts, now, limits)
    if agent_is_alive:
        yield from _stalled(facts, now, limits, revived_by)
        yield from _latency(facts, limits)


def _agent_away(
    databases: Sequence[DatabaseFacts], awaited_since: datetime | None, now: datetime, limits: Thresholds
) -> Finding:
    wanted = [job.name for facts in databases for job in facts.jobs if job.wanted]
    times = (facts.watermarks.published_at for facts in databases)
    published = [time for time in times if time is not None]
    effect = (
        f"{', '.join(wanted)} cannot run, and sources keep their log." if wanted else "nothing runs jobs."
    )
    if awaited_since is None:
        what, fix = "The agent is not running", START_AGENT
        since = max(published, default=None) if wanted else None
        is_coming = False
    else:
        since = max([awaited_since, *published])  # what was published was published by an agent
        is_coming = now - since <= limits.agent_start
        silence = f"The agent does not start: it has been away for {(now - since).total_seconds():.0f} s"
        what, fix = ("The agent is being started", "") if is_coming else (silence, LOOK_INTO_START)
    verdict = Verdict.FAILING if wanted and not is_coming else Verdict.ATTENTION
    return Finding(verdict, AGENT, f"{what}: {effect}", since, fix)


def _source(facts: DatabaseFacts) -> Iterator[Finding]:
    since = _failed_since(facts)
    if facts.broken is not None:
        subject = f"Log of {facts.database.name}"
        yield Finding(Verdict.FAILING, subject, facts.broken, since, begin_anew(facts))
    if facts.unreachable is None:
        return
    yield Finding(
        Verdict.FAILING,
        f"Source {facts.database.name}",
        f"{facts.unreachable.rstrip('.')}. If it is gone for good: {_forget(facts)}",
        since,
        check_source(facts),
    )


def _failed_since(facts: DatabaseFacts) -> datetime | None:
    """Since when capture fails: nobody else notices at once what was done to a source."""
    job = facts.capture_job
    return job.since if job is not None and job.state is JobState.FAILED else None


def _tracking(facts: DatabaseFacts) -> Iterator[Finding]:
    for problem in facts.tracking_problems:
        verdict = Verdict.FAILING if problem.fatal else Verdict.ATTENTION
        is_gone = problem.subject == GONE
        since, fix = (_failed_since(facts), begin_anew(facts)) if is_gone else (None, problem.fix)
        yield Finding(verdict, f"Source {facts.database.name}", problem.problem, since, fix)


def _slot(facts: DatabaseFacts, limits: Thresholds) -> Iterator[Finding]:
    slot = facts.slot
    if slot is None:
        return
    subject = f"Log of {facts.database.name}"
    held = f"{slot.retained_bytes / 1024**2:,.0f} MiB of log are kept for capture"
    if slot.wal_status == "lost":
        text = f"The source has removed log that capture still needed: slot {slot.slot} is lost."
        yield Finding(Verdict.FAILING, subject, text, facts.watermarks.published_at, begin_anew(facts))
    elif slot.wal_status == "unreserved":
        text = f"{held}, more than max_slot_wal_keep_size allows: a checkpoint may remove what is needed."
        fix = "ALTER SYSTEM SET max_slot_wal_keep_size = -1; SELECT pg_reload_conf();"
        yield Finding(Verdict.FAILING, subject, text, None, fix)
    elif slot.retained_bytes > limits.retained_bytes:
        text = f"{held}: capture is far behind, or an old transaction is open."
        fix = "SELECT pid, xact_start, query FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
        yield Finding(Verdict.ATTENTION, subject, text, None, fix)


def _job(facts: DatabaseFacts, agent_is_alive: bool) -> Iterator[Finding]:
    job, name = facts.capture_job, facts.database.name
    if job is None:
        if facts.instances:
            text = f"{name} has tracked tables, but no capture job."
            fix = add_job(facts)
            yield Finding(Verdict.FAILING, f"Capture of {name}", text, None, fix)
        return
    if job.state is JobState.FAILED:
        yield Finding(Verdict.FAILING, f"Capture of {name}", job.message, job.since, after_failure(facts))
    elif not job.wanted:
        text = f"{job.name} is stopped. Nothing is lost: the source keeps its log, which grows."
        yield Finding(Verdict.ATTENTION, f"Capture of {name}", text, job.since, start_job(facts))
    elif agent_is_alive and job.message == WAITS_FOR_SCAN:
        text = f"{job.name} is to run. {job.message}"
        yield Finding(Verdict.ATTENTION, f"Capture of {name}", text, job.since, "End that scan.")


def _cleanup(facts: DatabaseFacts, now: datetime, limits: Thresholds) -> Iterator[Finding]:
    """A cleanup job rests between its runs: only how the last one ended says anything."""
    job, name = facts.cleanup_job, facts.database.name
    if job is not None and job.state is JobState.FAILED:
        yield Finding(Verdict.ATTENTION, f"Cleanup of {name}", job.message, job.since, _clean_up(facts))
    for client in facts.clients:
        known = facts.client_forecasts.get((client.capture_instance, client.name))
        if client.held_since is not None:
            yield _waits(client)
        elif known is not None and known.passed_at is not None and known.passed_at - now <= limits.client:
            yield _will_wait(client, known.passed_at)


def _clean_up(facts: DatabaseFacts) -> str:
    return f"highwater cleanup start -d {shlex.quote(facts.database.name)}"


def _waits(client: Client) -> Finding:
    text = (
        f"Cleanup of {client.capture_instance} waits for client '{client.name}', of which nothing was heard"
        f" since {client.acknowledged_at:%Y-%m-%d %H:%M:%S} UTC."
    )
    return Finding(
        Verdict.ATTENTION, f"Cleanup of {client.database}", text, client.held_since, _let_go(client)
    )


def _will_wait(client: Client, passed_at: datetime) -> Finding:
    text = (
        f"Cleanup of {client.capture_instance} will wait for client '{client.name}' from"
        f" {passed_at:%Y-%m-%d %H:%M:%S} UTC on, at the pace of its acknowledgements."
    )
    return Finding(Verdict.ATTENTION, f"Cleanup of {client.database}", text, None, _let_go(client))


def _let_go(client: Client) -> str:
    of = ["-c", client.capture_instance, "-d", client.database]
    return f"{shlex.join(['highwater', 'client', 'drop', client.name, *of])}  # or let it catch up"


def _stalled(facts: DatabaseFacts, now: datetime, limits: Thresholds, revived_by: str) -> Iterator[Finding]:
    found = standstill(facts, now, limits, revived_by)
    if found is not None:
        subject = f"Capture of {facts.database.name}"
        yield Finding(Verdict.ATTENTION, subject, found.text, found.since, found.fix)


def standstill(facts: DatabaseFacts, now: datetime, limits: Thresholds, revived_by: str) -> Standstill | None:
    """Stalled looks like idle from inside: the source's log goes on, and what is published does not.

    revived_by: `revival`. None where capture gets on, has nothing to do, or is not said to run.
    """
    job, marks = facts.capture_job, facts.watermarks
    if job is None or job.state is not JobState.RUNNING or job.running is None:
        return None
    if job.running_step is not None:
        return None  # a script of somebody's own scans when it sees fit, under leases of its calls
    if facts.silent_since is not None:
        text = "The agent hangs: it holds its connections, but does not renew its lease."
        return Standstill(facts.silent_since, text, revived_by)
    if facts.log_end is None or marks.scanned is None or marks.published_at is None:
        return None
    if facts.log_end <= marks.scanned or _is_decoded(facts):
        return None
    last = max(marks.published_at, facts.progress_at or marks.published_at)
    silence = now - max(last, job.since)
    if silence <= limits.stalled + timedelta(seconds=2 * job.running.pollinginterval):
        return None
    text = f"Nothing was published for {silence.total_seconds():.0f} s, though the log goes on."
    if facts.slot is not None and facts.slot.blocked_by:
        return Standstill(last, f"{text} {_blocked_by(facts.slot)}", _unblock(facts, facts.slot))
    phase = f" The newest scan is in phase '{facts.latest.scan_phase}'." if facts.latest else ""
    return Standstill(last, text + phase, restart(facts))


def _is_decoded(facts: DatabaseFacts) -> bool:
    """Whether the source is at work for a scan: it gives nothing until it has decoded a whole transaction."""
    slot, latest = facts.slot, facts.latest
    is_scanned = latest is not None and latest.end_time is None
    return is_scanned and slot is not None and slot.active_pid is not None and not slot.blocked_by


def _blocked_by(slot: SlotState) -> str:
    pids = ", ".join(str(pid) for pid in slot.blocked_by)
    return f"Capture waits for a lock that session {pids} of the source holds."


def _unblock(facts: DatabaseFacts, slot: SlotState) -> str:
    """Ends the sessions in the way."""
    calls = ", ".join(f"pg_terminate_backend({pid})" for pid in slot.blocked_by)
    return f'psql "$(highwater dsn -d {shlex.quote(facts.database.name)})" -c "SELECT {calls}"'


def revival(agent_pid: int | None, awaited_since: datetime | None) -> str:
    """What brings back an agent that hangs; parameters as those of `diagnose`."""
    if agent_pid is None:
        return f"highwater stop; {START_AGENT}"
    is_supervised = awaited_since is not None
    return f"kill -KILL {agent_pid}" + ("" if is_supervised else f"; {START_AGENT}")


def _latency(facts: DatabaseFacts, limits: Thresholds) -> Iterator[Finding]:
    latest = facts.latest
    if latest is None or latest.latency <= limits.latency.total_seconds():
        return
    job = facts.capture_job
    ceiling = job.running.ceiling if job is not None and job.running is not None else None
    limit = f" Its parameters allow {ceiling:,.0f} transactions/s." if ceiling is not None else ""
    yield Finding(
        Verdict.ATTENTION,
        f"Capture of {facts.database.name}",
        f"Latency is {latest.latency} s, more than {limits.latency.total_seconds():.0f} s.{limit}",
        latest.start_time,
        f"{_tsql(facts, 'EXEC sys.sp_cdc_change_job @pollinginterval = 0')}; {restart(facts)}",
    )


def after_failure(facts: DatabaseFacts) -> str:
    """What mends a capture job that failed, by its newest error."""
    of_scans = [error for error in facts.errors if error.error_number not in _OF_CLEANUP]
    return fix_of(facts, of_scans[-1]) if of_scans else restart(facts)


def fix_of(facts: DatabaseFacts, error: ScanError) -> str:
    """The command to paste after this error of the database, as its capture instances are now."""
    if error.error_number in _OF_CLEANUP:
        return _clean_up(facts)
    if error.error_number in (LogBroken.number, ObjectsGone.number):
        return begin_anew(facts)
    if error.error_number in _ENDED_BY_ENABLING_AGAIN:
        words = error.error_message
        named = [each for each in facts.instances if f"capture instance '{each.capture_instance}' " in words]
        if named:
            return _enable_again(facts, named[0])
    return restart(facts)


def _enable_again(facts: DatabaseFacts, instance: CaptureInstance) -> str:
    """Disables one capture instance and enables it with the options that it has."""
    disable = ["highwater", "disable", *_which(facts, instance)]
    return f"{shlex.join(disable)}; {_enable(facts, instance)}"


def _which(facts: DatabaseFacts, instance: CaptureInstance) -> list[str]:
    table = f"{_quoted(instance.source_schema)}.{_quoted(instance.source_table)}"
    return ["-d", facts.database.name, table, f"--capture-instance={instance.capture_instance}"]


def _enable(facts: DatabaseFacts, instance: CaptureInstance) -> str:
    """Enables a capture instance with the options that it has now."""
    columns = [name for name in instance.source_names() if name is not None]
    options = [f"--columns={','.join(_quoted(name) for name in columns)}"]
    if instance.role_name is not None:
        options.append(f"--role={instance.role_name}")
    if instance.index_name is not None:
        options.append(f"--index={instance.index_name}")
    options.append("--net" if instance.supports_net_changes else "--no-net")
    return shlex.join(["highwater", "enable", *_which(facts, instance), *options])


def _quoted(name: str) -> str:
    """A name as the command line reads it in a table's name and a list of columns: in "" where it must be."""
    is_plain = name == name.strip() and not name.startswith("-") and not set(name) & set('.,"[]')
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _forget(facts: DatabaseFacts) -> str:
    return f"highwater disconnect {shlex.quote(facts.database.name)} --force"


def begin_anew(facts: DatabaseFacts) -> str:
    """Disables the database and enables it with all of its capture instances."""
    name = shlex.quote(facts.database.name)
    again = [_enable(facts, instance) for instance in facts.instances] or [f"highwater enable -d {name}"]
    return "; ".join([f"highwater disable -d {name}", *again])


def restart(facts: DatabaseFacts) -> str:
    """Stops the capture job and starts it."""
    return f"highwater capture stop -d {_name(facts)}; {start_job(facts)}"


def start_job(facts: DatabaseFacts) -> str:
    """Starts the capture job."""
    return f"highwater capture start -d {_name(facts)}"


def add_job(facts: DatabaseFacts) -> str:
    """Adds the capture job that is missing, and starts it."""
    return _tsql(facts, "EXEC sys.sp_cdc_add_job @job_type = N'capture'")


def check_source(facts: DatabaseFacts) -> str:
    """Asks the source as capture does and says what it lacks; changes nothing."""
    return f'highwater connect {_name(facts)} "$(highwater dsn -d {_name(facts)})"'


def _tsql(facts: DatabaseFacts, text: str) -> str:
    return f'highwater sql -d {_name(facts)} -q "{text}"'


def _name(facts: DatabaseFacts) -> str:
    return shlex.quote(facts.database.name)
