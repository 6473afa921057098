"""Jobs from outside: add, drop, start, stop, change, wait for them (reference/procedures.md, 3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from engine.control import JOBS, PUBLISHED, REPORTED, WAKE, ControlDatabase
from engine.errors import (
    AgentNotRunning,
    CaptureJobFailed,
    CdcError,
    CleanupFailed,
    JobMissing,
    JobNotAdded,
    NotABit,
    ScanAlreadyRunning,
    SourceUnreachable,
    SyncTimeout,
)
from engine.model.job import (
    AnyJob,
    CaptureParameters,
    CleanupParameters,
    Job,
    JobRun,
    JobState,
    JobType,
    is_capture,
)
from engine.model.lsn import Lsn
from engine.model.scan_call import CALLED_SESSION
from engine.procedures.databases import Databases
from engine.procedures.job_rules import (
    changed,
    check_capture_parameters,
    check_cleanup_parameters,
    cleanup_changed,
    job_type_of,
    schedule_of,
    step_of,
)

_Seen = TypeVar("_Seen", bound=AnyJob)

REPORT_SECONDS = 30.0
"""How long starting and stopping wait for the agent's word."""
JOB_EXISTS = 14261
"""The job agent's own error that error 22836 reports."""
_LOOK_AGAIN = 1.0
"""Seconds after which a wait looks at the rows without news: the other side may have died silently."""


class Jobs:
    """Jobs of databases."""

    def __init__(self, control: ControlDatabase, databases: Databases) -> None:
        self._control = control
        self._databases = databases

    def list(self, database: str) -> list[AnyJob]:
        """sys.sp_cdc_help_jobs, with what the agent says of each job."""
        self._databases.enabled(database)
        alive = self._control.agent_is_alive()
        seen = None if alive else self._control.agent_seen()
        return [as_seen(job, alive, seen) for job in self._control.jobs.list(database)]

    def history(self, database: str, job_type: str | None, limit: int) -> Sequence[JobRun]:
        """The newest runs, newest first; of one job type, or of all."""
        self._databases.enabled(database)
        kind = None if job_type is None else job_type_of(job_type)
        return self._control.runs.list(database, kind, limit)

    def add(
        self,
        database: str,
        job_type: str | None,
        start_job: bool | int,
        maxtrans: int | None,
        maxscans: int | None,
        continuous: bool | int | None,
        pollinginterval: int | None,
        retention: int | None,
        threshold: int | None,
        schedule: str | None,
    ) -> None:
        """sys.sp_cdc_add_job. The agent need not run: it starts the job when it sees the row."""
        kind = job_type_of(job_type)
        self._databases.enabled(database)
        if start_job not in (0, 1):
            raise NotABit("@start_job")
        check_cleanup_parameters(kind, retention, threshold, schedule)
        capture = changed(kind, CaptureParameters(), maxtrans, maxscans, continuous, pollinginterval)
        cleanup = cleanup_changed(CleanupParameters(), retention, threshold)
        added = self._control.jobs.add(
            database,
            capture if kind is JobType.CAPTURE else cleanup,
            wanted=bool(start_job),
            schedule="" if schedule is None else schedule_of(schedule),
        )
        if not added:
            # Of two that add the job at once, the row lets one in.
            name = f"cdc.{database}_{kind}"
            raise JobNotAdded(database, "sp_add_job", JOB_EXISTS, f"The job '{name}' already exists.")

    def drop(self, database: str, job_type: str | None) -> None:
        """sys.sp_cdc_drop_job: the agent stops the job after what it is at. Raises JobMissing."""
        job = self._existing(database, job_type)
        self._control.jobs.remove(database, job.job_type)

    def change(
        self,
        database: str,
        job_type: str,
        maxtrans: int | None,
        maxscans: int | None,
        continuous: bool | int | None,
        pollinginterval: int | None,
        retention: int | None,
        threshold: int | None,
        schedule: str | None,
    ) -> None:
        """sys.sp_cdc_change_job: takes effect when the job is stopped and started; a schedule at once."""
        kind = job_type_of(job_type)
        self._databases.enabled(database)
        check_cleanup_parameters(kind, retention, threshold, schedule)
        check_capture_parameters(kind, maxtrans, maxscans, continuous, pollinginterval)
        job = self._control.jobs.get(database, kind)
        if job is None:
            raise JobMissing(kind, database)
        if is_capture(job):
            parameters = changed(kind, job.configured, maxtrans, maxscans, continuous, pollinginterval)
            self._control.jobs.change(job, parameters)
        else:
            self._control.jobs.change(job, cleanup_changed(job.configured, retention, threshold))
        if schedule is not None:
            self._control.jobs.reschedule(database, kind, schedule_of(schedule))

    def set_step(self, database: str, subsystem: str | None, command: str | None) -> None:
        """What the capture job runs when it starts next: a script of one's own; without one, its scan.

        Raises JobMissing, SubsystemUnknown, StepInvalid.
        """
        job = self._existing(database, JobType.CAPTURE)
        self._control.jobs.set_step(job.database, step_of(subsystem, command))

    def start(self, database: str, job_type: str) -> None:
        """sys.sp_cdc_start_job: returns when the agent says that it runs, at once when it does already.

        Raises JobMissing, CaptureJobFailed, CleanupFailed; AgentNotRunning, but then it starts with it, and
        ScanAlreadyRunning while somebody's sp_cdc_scan runs, when that ends. (The original starts the job,
        which then fails with 22903; what its agent does then is not documented.)
        """
        job = self._existing(database, job_type)
        with self._control.listen(REPORTED) as listener:
            alive = self._control.agent_is_alive()
            if job.job_type is JobType.CLEANUP and alive and job.state is JobState.RUNNING:
                return
            self._control.jobs.want(database, job.job_type, True)
            if not alive:
                raise AgentNotRunning(f"{job.name} will start with it")
            if is_capture(job) and self._waits_for_call(job):
                raise ScanAlreadyRunning(f"{CALLED_SESSION}; {job.name} starts when it ends", database)

            def started(now: AnyJob) -> bool:
                if now.state is JobState.FAILED and (now.since, now.message) != (job.since, job.message):
                    raise _failure(now)
                # What runs once may have ended before we looked.
                once = now.job_type is JobType.CLEANUP or now.state is JobState.STOPPED
                return now.state is JobState.RUNNING or (once and not now.wanted)

            self._await(f"Starting {job.name}", job, started, listener.wait)

    def stop(self, database: str, job_type: str) -> None:
        """sys.sp_cdc_stop_job: returns when the agent says that it has stopped. Nothing is lost by it."""
        job = self._existing(database, job_type)
        with self._control.listen(REPORTED) as listener:
            if job.job_type is JobType.CLEANUP:
                self._control.jobs.stop(database, job.job_type)
            else:
                self._control.jobs.want(database, job.job_type, False)
            if not self._control.agent_is_alive():
                if job.job_type is JobType.CAPTURE or job.state in _AT_WORK:
                    self._control.jobs.report(job.job_id, JobState.STOPPED, "Stopped.", None)
                return

            def stopped(now: AnyJob) -> bool:
                if now.job_type is JobType.CLEANUP:
                    return now.state not in _AT_WORK  # failed: that is how its last run ended
                return now.state is JobState.STOPPED

            self._await(f"Stopping {job.name}", job, stopped, listener.wait)

    def sync(self, database: str, timeout: float, check: Callable[[], None] = lambda: None) -> None:
        """Returns when everything committed on the source before the call is published.

        check: called each second or more often; what it raises ends the wait.

        Without any capture instance there is nothing to publish. A source that is away and a job that
        fails are waited for: both may come back. Raises SyncTimeout, at once when the job was stopped.
        """
        source = self._databases.enabled(database)
        deadline = time.monotonic() + timeout
        mark: Lsn | None = None
        away = ""
        with self._control.listen(PUBLISHED, REPORTED) as listener:
            while True:
                check()
                job = self._control.jobs.get(database)
                if job is None and not self._control.instances.list(database):
                    return
                if mark is None:
                    mark, away = self._mark(source.name)
                if mark is not None and self._is_published(database, mark):
                    return
                left = deadline - time.monotonic()
                if left <= 0 or not self._is_scanned(database, job):
                    what = f"Publishing up to {mark or 'the end of the log'}"
                    raise SyncTimeout(what, timeout, self._reason(job, away))
                self._control.notify(WAKE, database)
                listener.wait(min(left, _LOOK_AGAIN))

    def _waits_for_call(self, job: Job) -> bool:
        """Whether a scan that somebody called keeps the job from its own; a script's scans are calls too."""
        running = (call for call in self._control.calls.list() if call.claimed and not call.ended)
        is_called = any(call.database == job.database for call in running)
        return is_called and job.step is None and job.state is not JobState.RUNNING

    def _is_scanned(self, database: str, job: Job | None) -> bool:
        """Whether the job is to run, or somebody scans in its place."""
        calls = self._control.calls
        return (job is not None and job.wanted) or any(call.database == database for call in calls.list())

    def _mark(self, database: str) -> tuple[Lsn | None, str]:
        """A mark in the source's log; None and the source's words while it does not answer."""
        try:
            return self._databases.admin(database).mark(), ""
        except SourceUnreachable as error:
            return None, str(error)

    def _is_published(self, database: str, mark: Lsn) -> bool:
        scanned = self._control.watermarks.get(database).scanned
        return scanned is not None and scanned >= mark

    def _existing(self, database: str, job_type: str | None) -> AnyJob:
        kind = job_type_of(job_type)
        job = self._control.jobs.get(self._databases.enabled(database).name, kind)
        if job is None:
            raise JobMissing(kind, database)
        return job

    def _await(
        self, what: str, job: AnyJob, reached: Callable[[AnyJob], bool], wait: Callable[[float], object]
    ) -> None:
        """Until ``reached`` holds of the job's row. A job that was dropped has reached everything."""
        deadline = time.monotonic() + REPORT_SECONDS
        while (now := self._control.jobs.get(job.database, job.job_type)) is not None and not reached(now):
            left = deadline - time.monotonic()
            if left <= 0:
                raise SyncTimeout(what, REPORT_SECONDS, self._reason(now))
            if wait(min(left, _LOOK_AGAIN)) is None:
                self._control.notify(JOBS, job.database)

    def _reason(self, job: AnyJob | None, away: str = "") -> str:
        """Why the agent has not done what it was asked, as far as the control database knows.

        away: the words of a source that does not answer.
        """
        if job is None:
            return "there is no capture job"
        if job.job_type is JobType.CAPTURE and not job.wanted:
            since = f"{job.since:%Y-%m-%d %H:%M:%S} UTC"
            return f"{job.name} is stopped since {since}. Start it: highwater capture start"
        if away:
            return away
        if not self._control.agent_is_alive():
            return "the agent is not running. Start it: highwater start"
        if job.state is JobState.FAILED:
            return f"{job.name} fails: {job.message}"
        return f"{job.name} is {job.state}; give it more time"


def as_seen(job: _Seen, agent_is_alive: bool, agent_seen: datetime | None) -> _Seen:
    """A job as it really is: what the agent said last does not hold when there is no agent.

    agent_seen: when a dead one gave its last sign, which is as good as known when the job stopped.
    """
    if agent_is_alive or job.state in (JobState.STOPPED, JobState.FAILED):
        return job
    since = job.since if agent_seen is None else max(job.since, agent_seen)
    return replace(
        job, state=JobState.STOPPED, since=since, running=None, message="The agent is not running."
    )


_AT_WORK = (JobState.STARTING, JobState.RUNNING, JobState.STOPPING)


def _failure(job: AnyJob) -> CdcError:
    failed = CaptureJobFailed if job.job_type is JobType.CAPTURE else CleanupFailed
    return failed(job.database, job.message)
