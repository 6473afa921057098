"""The state of everything at one moment: what ``highwater status`` and the dashboard's verdict say."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from engine.control import ControlDatabase
from engine.errors import CdcError, SourceUnreachable
from engine.model.job import AnyJob, CaptureParameters, CleanupParameters, JobRun, is_cleanup
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanSession
from engine.model.source_database import SourceDatabase
from engine.monitoring.diagnosis import DatabaseFacts, Finding, Verdict, diagnose, verdict_of
from engine.procedures.jobs import as_seen
from engine.runtime.processes import AGENT_AWAY_SINCE
from engine.sources.base import SlotState, SourceProblem
from engine.sources.registry import Sources

SOURCE_SECONDS = 2.0
"""How long the status waits for sources, all together."""
TRACKING_SECONDS = 15.0
"""How long tracked tables that were found in order are taken to be so."""


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """A living process of the home; ``facts`` are its ports and the like."""

    name: str
    pid: int
    started: datetime
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """One database. Jobs are as they really are, not as a dead agent left them."""

    facts: DatabaseFacts
    jobs: tuple[AnyJob, ...]

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
    ) -> None:
        self._control = control
        self._sources = sources
        self._processes = processes
        self._clock = clock
        self._tracking_known: dict[str, tuple[float, Sequence[SourceProblem]]] = {}

    def read(self) -> EngineStatus:
        """The status now. Raises ControlUnreachable; nothing else keeps it from answering."""
        alive = self._control.agent_is_alive()
        registered = self._control.sources.list()
        looks = self._look_at([database for database in registered if database.is_cdc_enabled])
        facts = [
            self._facts(database, looks.get(database.name, _Look(None, None, None)))
            for database in registered
        ]
        seen = None if alive else self._control.agent_seen()
        now = self._clock()
        processes = tuple(self._processes())
        findings = diagnose(facts, alive, now, agent_awaited_since=_agent_awaited_since(processes))
        return EngineStatus(
            taken=now,
            verdict=verdict_of(findings),
            findings=findings,
            agent_is_alive=alive,
            processes=processes,
            databases=tuple(
                DatabaseStatus(each, tuple(as_seen(job, alive, seen) for job in each.jobs)) for each in facts
            ),
        )

    def slot(self, database: SourceDatabase) -> SlotState:
        """What the source keeps for capture. Raises SourceUnreachable, LogBroken."""
        log = self._sources.log(database)
        try:
            return log.slot_state()
        finally:
            log.close()

    def _look_at(self, databases: Sequence[SourceDatabase]) -> dict[str, _Look]:
        if not databases:
            return {}
        pool = ThreadPoolExecutor(max_workers=len(databases), thread_name_prefix="status")
        try:
            looks = {database.name: pool.submit(self._look, database) for database in databases}
            answers = {}
            for name, look in looks.items():
                try:
                    answers[name] = look.result(SOURCE_SECONDS)
                except NotInTime:
                    words = f"Source database '{name}' does not answer within {SOURCE_SECONDS:g} s."
                    answers[name] = _Look(None, None, words)
            return answers
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _look(self, database: SourceDatabase) -> _Look:
        log = self._sources.log(database)
        try:
            return _Look(log.slot_state(), log.log_end(), None, self._tracking(database))
        except SourceUnreachable as error:
            return _Look(None, None, str(error))
        except CdcError as error:
            return _Look(None, None, None, broken=str(error))
        finally:
            log.close()

    def _tracking(self, database: SourceDatabase) -> Sequence[SourceProblem]:
        """Asked now and then: it takes a connection of its own, and pages ask every few seconds."""
        at, known = self._tracking_known.get(database.name, (-TRACKING_SECONDS, ()))
        if time.monotonic() - at < TRACKING_SECONDS:
            return known
        instances = self._control.instances.list(database.name)
        problems = tuple(self._sources.admin(database).tracking_problems(instances))
        # What is wrong is looked at again until it is mended.
        self._tracking_known[database.name] = (-TRACKING_SECONDS if problems else time.monotonic(), problems)
        return problems

    def _facts(self, database: SourceDatabase, look: _Look) -> DatabaseFacts:
        newest = self._control.sessions.list(database.name, limit=1)
        return DatabaseFacts(
            database=database,
            instances=self._control.instances.list(database.name),
            jobs=self._control.jobs.list(database.name),
            watermarks=self._control.watermarks.get(database.name),
            latest=newest[0] if newest else None,
            errors=self._control.errors.list(database.name),
            slot=look.slot,
            log_end=look.log_end,
            unreachable=look.unreachable,
            tracking_problems=look.tracking_problems,
            broken=look.broken,
        )


@dataclass(frozen=True, slots=True)
class _Look:
    """What a source said, or why it did not."""

    slot: SlotState | None
    log_end: Lsn | None
    unreachable: str | None
    tracking_problems: Sequence[SourceProblem] = ()
    broken: str | None = None


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
    }


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
