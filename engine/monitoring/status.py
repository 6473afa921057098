"""The state of everything at one moment: what ``highwater status`` and the dashboard's verdict say."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Protocol, TypeVar

from engine.control import ControlDatabase
from engine.control.sessions import NewestSession
from engine.errors import CdcError, SourceUnreachable
from engine.lake.tables import Lake
from engine.model.capture_instance import CaptureInstance
from engine.model.client import Client, ClientForecast
from engine.model.collection import CollectionSet
from engine.model.job import AnyJob, CaptureParameters, CleanupParameters, JobRun, is_cleanup
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanError, ScanSession
from engine.model.source_database import SourceDatabase
from engine.model.watermark import Watermarks
from engine.monitoring.capture_state import (
    AgentFacts,
    StateOfCapture,
    forecast_finding,
    log_forecast,
    state_of_capture,
)
from engine.monitoring.client_forecasts import ClientForecasts, ClientKey
from engine.monitoring.collection_findings import collection_findings
from engine.monitoring.diagnosis import (
    AGENT,
    DatabaseFacts,
    Finding,
    Verdict,
    diagnose,
    verdict_of,
    worst_first,
)
from engine.monitoring.forecast import PACE_WINDOW, LogForecast, LogPoint
from engine.monitoring.kept_logs import KeptLogs
from engine.monitoring.looks import Look
from engine.procedures.jobs import as_seen
from engine.runtime.home import Home
from engine.runtime.processes import AGENT_AWAY_SINCE
from engine.sources.base import SlotState, SourceProblem
from engine.sources.registry import Sources

SOURCE_SECONDS = 2.0
"""How long the status waits for sources, all together."""
HOPELESS_SECONDS = 15.0
"""After so long a source is asked again, over another connection, though it has not answered."""
TRACKING_SECONDS = 15.0
"""How long tracked tables that were found in order are taken to be so."""


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """A living process of the home; ``facts`` are its ports and the like."""

    name: str
    pid: int
    started: datetime
    facts: Mapping[str, Any]


def processes_of(home: Home) -> tuple[ProcessStatus, ...]:
    """Those that live."""
    return tuple(
        ProcessStatus(name, record.pid, record.started, record.facts)
        for name, record in home.processes().items()
    )


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """One database. Jobs are as they really are, not as a dead agent left them.

    capture: None where it is not enabled. forecast: None where the source did not say.
    """

    facts: DatabaseFacts
    jobs: tuple[AnyJob, ...]
    capture: StateOfCapture | None = None
    forecast: LogForecast | None = None

    @property
    def name(self) -> str:
        """The database's name."""
        return self.facts.database.name

    @property
    def lag_bytes(self) -> int | None:
        """Bytes of log between what is published and the log's end; None where one is unknown."""
        scanned, end = self.facts.watermarks.scanned, self.facts.log_end
        return None if scanned is None or end is None else max(0, end.position - scanned.position)

    def lag_seconds(self, now: datetime) -> float | None:
        """How long ago the log was last looked at; None before the first time."""
        at = self.facts.watermarks.published_at
        return None if at is None else max(0.0, (now - at).total_seconds())


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Everything at the moment ``taken``, with what is wrong, the worst first."""

    taken: datetime
    verdict: Verdict
    findings: tuple[Finding, ...]
    agent_is_alive: bool
    processes: tuple[ProcessStatus, ...]
    databases: tuple[DatabaseStatus, ...]
    collection_sets: tuple[CollectionSet, ...] = ()

    def verdict_of(self, database: DatabaseStatus) -> Verdict:
        """That of one database: its own findings, and the agent's where a job of it waits for the agent."""
        is_waiting = any(job.wanted for job in database.facts.jobs)
        return verdict_of(
            [
                each
                for each in self.findings
                if each.database == database.name or (is_waiting and each.subject == AGENT)
            ]
        )

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``: times ISO 8601, LSNs as text, sizes in bytes, durations in seconds."""
        processes = {process.name: _process(process) for process in self.processes}
        nobody = {"pid": None, "started": None}
        return {
            "verdict": str(self.verdict),
            "taken": self.taken.isoformat(),
            "agent": {"alive": self.agent_is_alive} | processes.get("agent", nobody),
            "processes": processes,
            "databases": [_database(database, self.taken) for database in self.databases],
            "collection_sets": [_collection_set(each) for each in self.collection_sets],
            "findings": [_finding(finding) for finding in self.findings],
        }


class StatusReader:
    """Reads control database and sources; sources side by side, and none may hold up the rest."""

    def __init__(
        self,
        control: ControlDatabase,
        sources: Sources,
        processes: Callable[[], Sequence[ProcessStatus]],
        clock: Callable[[], datetime],
        lake: Lake,
        rest: float = 0.0,
    ) -> None:
        """``rest``: seconds that connections to sources are kept for another look."""
        self._control = control
        self._sources = sources
        self._processes = processes
        self._clock = clock
        self._forecasts = ClientForecasts(control, lake, clock)
        self._forecast_looks: dict[str, Look[_Forecasts]] = {}
        self._tracking_known: dict[str, tuple[float, Sequence[SourceProblem]]] = {}
        self._logs = KeptLogs(sources, rest)
        self._looks: dict[str, Look[_Look]] = {}
        self._tracking_looks: dict[str, Look[Sequence[SourceProblem]]] = {}
        self._asking = Lock()

    def read(self) -> EngineStatus:
        """The status now. Raises ControlUnreachable; nothing else keeps it from answering."""
        alive = self._control.agent_is_alive()
        registered = self._control.sources.list()
        looks = self._look_at([database for database in registered if database.is_cdc_enabled])
        silent = {each.database: each.expires for each in self._control.leases.list() if not each.current}
        until = time.monotonic() + SOURCE_SECONDS
        kept = _Kept.read(self._control, self._clock())
        facts = [
            self._facts(database, kept, looks.get(database.name, _Look(None, None, None)), silent, until)
            for database in registered
        ]
        processes = tuple(self._processes())
        agent = self._agent(alive, processes)
        now = self._clock()
        found = diagnose(facts, alive, now, agent_awaited_since=agent.awaited_since, agent_pid=agent.pid)
        statuses = tuple(_status(each, agent, now) for each in facts)
        near = (forecast_finding(each.facts, each.capture, each.forecast) for each in statuses)
        sets = tuple(self._control.collection_sets.list())
        collector = collection_findings(sets, alive, now)
        findings = worst_first([*found, *(each for each in near if each is not None), *collector])
        return EngineStatus(
            taken=now,
            verdict=verdict_of(findings),
            findings=findings,
            agent_is_alive=alive,
            processes=processes,
            databases=statuses,
            collection_sets=sets,
        )

    def _agent(self, alive: bool, processes: Sequence[ProcessStatus]) -> AgentFacts:
        pid = next((process.pid for process in processes if process.name == "agent"), None)
        seen = None if alive else self._control.agent_seen()
        return AgentFacts(alive, _agent_awaited_since(processes), pid, seen)

    def close(self) -> None:
        """Gives up connections to sources."""
        self._logs.close()

    def slot(self, database: SourceDatabase) -> SlotState:
        """What the source keeps for capture. Raises SourceUnreachable, LogBroken."""
        log = self._sources.log(database)
        try:
            return log.slot_state()
        finally:
            log.close()

    def _look_at(self, databases: Sequence[SourceDatabase]) -> dict[str, _Look]:
        end = time.monotonic() + SOURCE_SECONDS
        self._logs.close(but={each.name for each in databases})
        with self._asking:
            looks = {each.name: _under_way(self._looks, each, self._look) for each in databases}
            tracking = {
                each.name: _under_way(self._tracking_looks, each, self._tracking) for each in databases
            }
        answers = {}
        for name, asked in looks.items():
            look = asked.answer(end - time.monotonic())
            if look is None:
                words = f"Source database '{name}' does not answer within {SOURCE_SECONDS:g} s."
                look = _Look(None, None, words)
            answers[name] = look
        for name, asked_tables in tracking.items():
            if answers[name].unreachable is None and answers[name].broken is None:
                # Silent while another session holds a lock on a catalog: then capture says what is wrong.
                problems = asked_tables.answer(end - time.monotonic()) or ()
                answers[name] = replace(answers[name], tracking_problems=problems)
        return answers

    def _client_forecasts(
        self, database: SourceDatabase, clients: Sequence[Client], until: float
    ) -> _Forecasts:
        """Nothing where the lake does not say in time: whoever asks for clients by name hears why."""
        if not clients:
            return {}
        with self._asking:
            look = _under_way(self._forecast_looks, database, self._forecasts_of)
        return look.answer(until - time.monotonic()) or {}

    def _forecasts_of(self, database: SourceDatabase) -> _Forecasts:
        from deltalake.exceptions import DeltaError  # imports Arrow

        try:
            return self._forecasts.of(database.name)
        except (CdcError, DeltaError, OSError):
            return {}

    def _look(self, database: SourceDatabase) -> _Look:
        try:
            return self._logs.ask(database, lambda log: _Look(log.slot_state(), log.log_end(), None))
        except SourceUnreachable as error:
            return _Look(None, None, str(error))
        except CdcError as error:
            return _Look(None, None, None, broken=str(error))

    def _tracking(self, database: SourceDatabase) -> Sequence[SourceProblem]:
        """Asked now and then: it takes a connection of its own, and pages ask every few seconds."""
        at, known = self._tracking_known.get(database.name, (-TRACKING_SECONDS, ()))
        if time.monotonic() - at < TRACKING_SECONDS:
            return known
        instances = self._control.instances.list(database.name)
        try:
            problems = tuple(self._sources.admin(database).tracking_problems(instances))
        except CdcError:
            return ()  # the look at the log says so too, and in better words
        # What is wrong is looked at again until it is mended.
        self._tracking_known[database.name] = (-TRACKING_SECONDS if problems else time.monotonic(), problems)
        return problems

    def _facts(
        self,
        database: SourceDatabase,
        kept: _Kept,
        look: _Look,
        silent: Mapping[str, datetime],
        until: float,
    ) -> DatabaseFacts:
        name = database.name
        newest, clients = kept.newest.get(name), kept.clients[name]
        return DatabaseFacts(
            database=database,
            instances=kept.instances[name],
            jobs=kept.jobs[name],
            watermarks=kept.watermarks.get(name) or Watermarks(name, None, None, None, None, None),
            latest=None if newest is None else newest.session,
            errors=kept.errors.get(name, ()),
            slot=look.slot,
            log_end=look.log_end,
            unreachable=look.unreachable,
            tracking_problems=look.tracking_problems,
            broken=look.broken,
            silent_since=silent.get(name),
            progress_at=None if newest is None else newest.written_at,
            log_before=kept.log_before.get(name),
            clients=clients,
            client_forecasts=self._client_forecasts(database, clients, until),
        )


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the control database has of every database, by name: asked for all at once, in few questions."""

    instances: Mapping[str, Sequence[CaptureInstance]]
    jobs: Mapping[str, Sequence[AnyJob]]
    clients: Mapping[str, Sequence[Client]]
    watermarks: Mapping[str, Watermarks]
    newest: Mapping[str, NewestSession]
    errors: Mapping[str, Sequence[ScanError]]
    log_before: Mapping[str, LogPoint]

    @classmethod
    def read(cls, control: ControlDatabase, now: datetime) -> _Kept:
        """As it is now."""
        ends = control.sessions.log_ends(now - PACE_WINDOW)
        return cls(
            newest=control.sessions.newest(),
            clients=_by_database(control.clients.list()),
            instances=_by_database(control.instances.list()),
            jobs=_by_database(control.jobs.list()),
            watermarks={each.database: each for each in control.watermarks.list()},
            errors=control.errors.by_database(),
            log_before={name: LogPoint(end.position, at) for name, (end, at) in ends.items()},
        )


class _OfDatabase(Protocol):
    @property
    def database(self) -> str: ...


_Row = TypeVar("_Row", bound=_OfDatabase)


def _by_database(rows: Iterable[_Row]) -> Mapping[str, Sequence[_Row]]:
    found: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        found[row.database].append(row)
    return found


@dataclass(frozen=True, slots=True)
class _Look:
    """What a source said, or why it did not."""

    slot: SlotState | None
    log_end: Lsn | None
    unreachable: str | None
    tracking_problems: Sequence[SourceProblem] = ()
    broken: str | None = None


_Forecasts = Mapping[ClientKey, ClientForecast]
_Answer = TypeVar("_Answer")


def _under_way(
    looks: dict[str, Look[_Answer]], database: SourceDatabase, call: Callable[[SourceDatabase], _Answer]
) -> Look[_Answer]:
    """A look at a database: a new one, unless the last one still waits for its answer with some hope."""
    known = looks.get(database.name)
    if known is None or known.is_over or time.monotonic() - known.began > HOPELESS_SECONDS:
        looks[database.name] = known = Look(lambda: call(database), f"status of {database.name}")
    return known


def _status(facts: DatabaseFacts, agent: AgentFacts, now: datetime) -> DatabaseStatus:
    jobs = tuple(as_seen(job, agent.is_alive, agent.seen) for job in facts.jobs)
    capture = state_of_capture(facts, agent, now)
    return DatabaseStatus(facts, jobs, capture, log_forecast(facts, capture, now))


def _agent_awaited_since(processes: Sequence[ProcessStatus]) -> datetime | None:
    """Since when the supervisor, if there is one, has been starting the agent; or its own start."""
    supervisor = next((process for process in processes if process.name == "supervisor"), None)
    if supervisor is None:
        return None
    away_since = supervisor.facts.get(AGENT_AWAY_SINCE)
    return supervisor.started if away_since is None else datetime.fromisoformat(str(away_since))


def _process(process: ProcessStatus) -> dict[str, Any]:
    return {"pid": process.pid, "started": process.started.isoformat(), **process.facts}


def _database(database: DatabaseStatus, now: datetime) -> dict[str, Any]:
    facts, marks = database.facts, database.facts.watermarks
    return {
        "name": database.name,
        "dsn": facts.database.dsn,
        "is_cdc_enabled": facts.database.is_cdc_enabled,
        "capture_instances": [
            {
                "capture_instance": instance.capture_instance,
                "source_schema": instance.source_schema,
                "source_table": instance.source_table,
                "start_lsn": _text(instance.start_lsn),
            }
            for instance in facts.instances
        ],
        "jobs": [_job(job) for job in database.jobs],
        "watermarks": {
            "high": _text(marks.high),
            "checkpoint": _text(marks.checkpoint),
            "scanned": _text(marks.scanned),
            "last_commit_time": _text(marks.last_commit_time),
            "published_at": _text(marks.published_at),
        },
        "latency": _latency(facts.latest),
        "lag_bytes": database.lag_bytes,
        "lag_seconds": database.lag_seconds(now),
        "slot": _slot(facts.slot),
        "unreachable": facts.unreachable,
        "capture": _capture(database.capture),
        "forecast": _forecast(database.forecast),
        "clients": [_client(client, facts.client_forecasts) for client in facts.clients],
    }


def _collection_set(found: CollectionSet) -> dict[str, Any]:
    run = found.last_run
    return {
        "name": found.name,
        "is_running": found.is_running,
        "schedule": found.schedule,
        "next_run": _text(found.next_run),
        "last_run": None
        if run is None
        else {
            "snapshot_id": run.snapshot_id,
            "snapshot_time": run.snapshot_time.isoformat(),
            "end_time": _text(run.end_time),
            "outcome": str(run.outcome),
            "message": run.message,
            "rows": run.rows,
        },
    }


def _client(client: Client, forecasts: _Forecasts) -> dict[str, Any]:
    known = forecasts.get((client.capture_instance, client.name))
    return {
        "client": client.name,
        "capture_instance": client.capture_instance,
        "acknowledged_lsn": _text(client.acknowledged_lsn),
        "acknowledged_at": _text(client.acknowledged_at),
        "expires_at": _text(client.expires_at),
        "passed_at": None if known is None else _text(known.passed_at),
        "held_since": _text(client.held_since),
    }


def _job(job: AnyJob) -> dict[str, Any]:
    facts = {
        "job_id": str(job.job_id),
        "name": job.name,
        "job_type": str(job.job_type),
        "state": str(job.state),
        "since": job.since.isoformat(),
        "wanted": job.wanted,
        "message": job.message,
        "configured": _parameters(job.configured),
        "running": None if job.running is None else _parameters(job.running),
    }
    if is_cleanup(job):
        facts |= {
            "schedule": job.schedule,
            "next_run": _text(job.next_run),
            "last_run": None if job.last_run is None else _run(job.last_run),
        }
    return facts


def _parameters(parameters: CaptureParameters | CleanupParameters) -> dict[str, int | bool]:
    return asdict(parameters)


def _run(run: JobRun) -> dict[str, Any]:
    return {
        "start_time": run.start_time.isoformat(),
        "end_time": _text(run.end_time),
        "outcome": str(run.outcome),
        "message": run.message,
        "deleted_rows": run.deleted_rows,
    }


def _slot(slot: SlotState | None) -> dict[str, Any] | None:
    if slot is None:
        return None
    return {
        "slot": slot.slot,
        "confirmed": str(slot.confirmed),
        "restart": str(slot.restart),
        "retained_bytes": slot.retained_bytes,
        "wal_status": slot.wal_status,
        "safe_wal_size": slot.safe_wal_size,
        "active_pid": slot.active_pid,
        "limit_bytes": slot.limit_bytes,
        "disk_free_bytes": slot.disk_free_bytes,
        "blocked_by": list(slot.blocked_by),
    }


def _capture(capture: StateOfCapture | None) -> dict[str, Any] | None:
    if capture is None:
        return None
    return {
        "state": str(capture.state),
        "since": _text(capture.since),
        "why": capture.why,
        "fix": capture.fix,
    }


def _forecast(found: LogForecast | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "bytes_per_second": found.pace,
        "slot_limit_seconds": _seconds(found.slot_limit),
        "disk_full_seconds": _seconds(found.disk),
        "is_growing": found.is_growing,
    }


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()


def _latency(session: ScanSession | None) -> int | None:
    return None if session is None else session.latency


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "verdict": str(finding.verdict),
        "subject": finding.subject,
        "text": finding.text,
        "since": _text(finding.since),
        "fix": finding.fix,
    }


def _text(value: Lsn | datetime | None) -> str | None:
    if value is None:
        return None
    return value.isoformat() if isinstance(value, datetime) else str(value)
