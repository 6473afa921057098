"""The agent: obeys the rows of msdb.dbo.cdc_jobs and keeps what it does there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from threading import Event, Thread

import structlog

from engine.agent.alert_watch import AlertWatch
from engine.agent.called_scan import CalledScan, job_without_a_row
from engine.agent.capture_job import CaptureJob
from engine.agent.checkpoints import Checkpoints
from engine.agent.cleanups import Cleanups
from engine.agent.collections import Collections
from engine.agent.schedules import plan_of
from engine.agent.step_job import StepJob, step_environment
from engine.capture.crash_points import CrashPoints
from engine.capture.scan import Scan, ScanLimits
from engine.cleanup.compaction import Compaction
from engine.cleanup.run import RetentionCleanup
from engine.collector.collection import Collection
from engine.control.database import ControlDatabase
from engine.control.leases import Lease
from engine.control.notifications import JOBS, WAKE, Listener
from engine.errors import (
    CdcError,
    ControlUnreachable,
    ObjectsNotCreated,
    ScanAlreadyRunning,
    SourceUnreachable,
    UnknownDatabase,
)
from engine.lake.compaction import Compactor
from engine.lake.failures import jvm_failures
from engine.lake.file_deletion import FileDeletion
from engine.lake.publisher import Publisher
from engine.lake.tables import Lake
from engine.model.job import WAITS_FOR_SCAN, CaptureParameters, Job, JobState, is_capture, is_cleanup
from engine.model.scan_call import CALLED_SESSION, ScanCall
from engine.model.scan_report import Told, tell_nobody
from engine.model.source_database import SourceDatabase
from engine.monitoring.status import StatusReader
from engine.settings import Settings
from engine.sources.registry import Sources

_log = structlog.get_logger(__name__)

LOOK_AGAIN = 5.0
"""Seconds after which jobs are looked at without news: a notification may have been lost."""
TEND_EVERY = 30.0
"""Seconds between scans of an enabled database without a capture job, whose log nobody else lets go."""
PRUNE_EVERY = 3600.0
"""Seconds between two looks for actions that the record of who did what need not keep any more."""
LOOK_SOON = 0.2
"""The same while a job is ending: another may wait for its place."""
RECONNECT_PAUSE = 0.5


class SparkEnded(CdcError):  # noqa: N818 - named like the errors of engine.errors
    """The agent's JVM has ended, killed or out of memory."""

    number = 50021
    shape = "The agent's Spark process has ended. The agent ends too, to be started anew."


class Agent:
    """Runs the jobs of every database of one control database until told to stop."""

    def __init__(
        self,
        control: ControlDatabase,
        sources: Sources,
        publisher: Publisher,
        lake: Lake,
        settings: Settings,
        holder: str,
        clock: Callable[[], datetime],
        crash: CrashPoints,
        spark_is_alive: Callable[[], bool] = lambda: True,
        told: Told = tell_nobody,
    ) -> None:
        """``holder`` names this agent in leases: the same name takes over from itself at once.

        ``told`` hears of scan sessions that ended.
        """
        self._control = control
        self._sources = sources
        self._publisher = publisher
        self._lake = lake
        self._settings = settings
        self._holder = holder
        self._clock = clock
        self._crash = crash
        self._spark_is_alive = spark_is_alive
        self._told = told
        self._engine_start = clock()
        self._checkpoints = Checkpoints(publisher, control.compactions.ask)
        self._jobs: dict[str, CaptureJob] = {}
        self._steps: dict[str, StepJob] = {}
        self._cleanups = Cleanups(
            control,
            RetentionCleanup(
                control,
                lake,
                publisher.spark,
                clock,
                crash,
                publisher.holding,
                FileDeletion(publisher.files),
            ),
            Compaction(
                control,
                lake,
                Compactor(publisher.files, publisher.holding, reach=crash.reach),
                settings.vacuum_after_hours,
            ),
            holder,
            settings.lease_seconds,
            clock,
            settings.zone,
        )
        status = StatusReader(control, sources, lambda: (), clock, lake)
        self._alerts = AlertWatch(control, status, clock)
        self._is_warm = False
        self._collections = Collections(
            control,
            Collection(control, sources, publisher.spark, lake, self._engine_start, crash),
            clock,
            settings.zone,
            self._engine_start,
        )
        self._something_waits = False
        self._tended: dict[str, float] = {}
        self._pruned: float | None = None

    def run(self, stop: Event) -> None:
        """Obeys until ``stop`` is set; then stops all jobs, each after the cycle it is in.

        Raises SparkEnded when the JVM is gone: only a new process has a new one.
        """
        self._checkpoints.start()
        self._alerts.start()
        try:
            while not stop.is_set():
                try:
                    self._obey(stop)
                except ControlUnreachable as error:
                    _log.warning("control database away", error=str(error))
                    stop.wait(RECONNECT_PAUSE)
        finally:
            self._stop_all()
            self._alerts.stop()
            self._checkpoints.stop()

    def _obey(self, stop: Event) -> None:
        with self._control.listen(JOBS, WAKE) as listener:
            while not stop.is_set():
                if not self._spark_is_alive():
                    raise SparkEnded
                self._reconcile()
                self._take_news(listener, stop)

    def _take_news(self, listener: Listener, stop: Event) -> None:
        """Returns when a job's row changed, or after a while. Short waits, so that a stop is seen."""
        settled = all(job.alive and not job.stopping for job in self._jobs.values())
        settled = settled and all(step.alive and not step.stopping for step in self._steps.values())
        settled = settled and not self._something_waits
        deadline = time.monotonic() + (LOOK_AGAIN if settled else LOOK_SOON)
        while not stop.is_set() and time.monotonic() < deadline:
            news = listener.wait(0.25)
            if news is None:
                continue
            job = self._jobs.get(news.payload)
            if news.channel == WAKE:
                if job is not None:
                    job.wake()
                continue
            if job is not None:
                job.tables_dropped()
            return

    # Jobs

    def _reconcile(self) -> None:
        """Starts what should run, stops what should not."""
        jobs = self._control.jobs.list()
        cleanup_waits = self._cleanups.reconcile([job for job in jobs if is_cleanup(job)])
        collection_waits = self._collections.reconcile(self._control.collection_sets.list())
        self._something_waits = cleanup_waits or collection_waits
        wanted = {job.database: job for job in jobs if is_capture(job)}
        calls = self._control.calls.list()
        asked = {call.call_id for call in calls if call.wanted}
        for database, running in list(self._jobs.items()):
            self._look_after(running, wanted.get(database), asked)
        self._steps = {name: step for name, step in self._steps.items() if _goes_on(step, wanted.get(name))}
        for job in wanted.values():
            self._start_in_time(job)
            if job.wanted and not self._is_run(job):
                self._start(job)
            else:
                self._report_waiting(job)
        for call in calls:
            if call.wanted and not call.claimed:
                self._answer(call, wanted)
        self._control.calls.forget_abandoned()
        self._tend(wanted)
        self._prune_activity()

    def _look_after(self, running: CaptureJob, job: Job | None, asked: set[int]) -> None:
        if not running.alive:
            running.join()
            del self._jobs[running.job.database]
        elif not running.stopping and not _is_wanted(running, job, asked):
            running.stop(asked=True)

    def _report_waiting(self, job: Job) -> None:
        """A job that is to run while a called scan does starts when that ends, unless stopped before."""
        is_called = isinstance(self._jobs.get(job.database), CalledScan)
        waits = job.wanted and is_called and job.step is None and job.database not in self._steps
        if waits and job.state in (JobState.STOPPED, JobState.FAILED):
            self._control.jobs.report(job.job_id, JobState.STARTING, WAITS_FOR_SCAN, None)
        elif not job.wanted and job.state is JobState.STARTING and job.message == WAITS_FOR_SCAN:
            self._control.jobs.report(job.job_id, JobState.STOPPED, "Stopped.", None)

    def _answer(self, call: ScanCall, jobs: Mapping[str, Job]) -> None:
        """Starts the scan that somebody called, once a scan that is ending here has ended."""
        running = self._jobs.get(call.database)
        is_called = isinstance(running, CalledScan)
        if running is not None and (running.stopping or not (is_called or call.database in jobs)):
            return  # the latter scans once, for a database without a job
        if not self._control.calls.claim(call.call_id):
            return
        if running is not None:
            session = CALLED_SESSION if is_called else running.job.name
            self._control.calls.end(call, ScanAlreadyRunning(session, call.database))
            return
        scan = CalledScan(
            call,
            self._control,
            self._scans_of(call.database),
            self._clear_dropped,
            self._holder,
            self._settings.lease_seconds,
            self._settings.scan_interval_floor,
            self._clock(),
        )
        self._jobs[call.database] = scan
        scan.start()
        _log.info("scan called", database=call.database)

    def _start_in_time(self, job: Job) -> None:
        """Asks for a capture job that its schedule wants now, and says when it is wanted next."""
        plan = plan_of(job, self._clock(), self._settings.zone)
        if plan is None:
            return
        if plan.is_due:
            self._control.jobs.start_due(job, plan.next_run)
        elif plan.next_run != job.next_run:
            self._control.jobs.expect(job, plan.next_run)

    def _is_run(self, job: Job) -> bool:
        """Whether the job runs here, or its place is taken: a script scans by calls, as others do."""
        scanning = self._jobs.get(job.database)
        if job.database in self._steps:
            return True
        return scanning is not None and (job.step is None or not isinstance(scanning, CalledScan))

    def _start(self, job: Job) -> None:
        if job.step is not None:
            self._steps[job.database] = step = self._step(job)
            step.start()
        else:
            self._jobs[job.database] = started = self._job(job)
            started.start()
        _log.info("capture job started", database=job.database)

    def _job(self, job: Job) -> CaptureJob:
        return CaptureJob(
            job,
            self._control,
            self._scans_of(job.database),
            self._clear_dropped,
            self._holder,
            self._settings.lease_seconds,
            self._settings.scan_interval_floor,
            self._clock,
            self._warm_up,
        )

    def _step(self, job: Job) -> StepJob:
        environment = step_environment(self._settings, os.environ)
        return StepJob(
            job, self._control, self._holder, self._settings.lease_seconds, environment, self._clock
        )

    def _warm_up(self) -> None:
        """Spark is made ready to append once, beside the wait: a successor is to publish within seconds."""
        if self._is_warm:
            return
        self._is_warm = True

        def warm() -> None:
            try:
                with jvm_failures():
                    self._publisher.warm_up()
            except (CdcError, OSError) as error:
                _log.warning("Spark is not warmed up", error=str(error))

        Thread(target=warm, name="warm up", daemon=True).start()

    def _stop_all(self) -> None:
        self._cleanups.stop()
        self._collections.stop()
        jobs = [*self._steps.values(), *self._jobs.values()]
        for job in jobs:
            job.stop()
        for job in jobs:
            job.join()
        self._cleanups.join()
        self._collections.join()

    def _prune_activity(self) -> None:
        now, days = time.monotonic(), self._settings.activity_days
        if days and (self._pruned is None or now - self._pruned >= PRUNE_EVERY):
            self._pruned = now
            if gone := self._control.activity.prune(days):
                _log.info("old actions forgotten", actions=gone, days=days)

    # Databases without a job

    def _tend(self, jobs: dict[str, Job]) -> None:
        """An enabled database without a tracked table has no job, but a slot that holds its log."""
        now = time.monotonic()
        registered = self._control.sources.list()
        for database in registered:
            if database.name in jobs or database.name in self._jobs:
                continue
            if now - self._tended.get(database.name, -TEND_EVERY) >= TEND_EVERY:
                self._tended[database.name] = now
                self._tend_one(database)
        self._clear_disconnected({database.name for database in registered})

    def _clear_disconnected(self, registered: set[str]) -> None:
        """What is left of databases that were disconnected, once nothing of theirs runs any more."""
        listed = {table.database for table in self._control.instances.dropped()}
        for database in listed - registered - set(self._jobs):
            self._tended.pop(database, None)
            self._clear_dropped(database)

    def _tend_one(self, database: SourceDatabase) -> None:
        self._clear_dropped(database.name)
        if database.is_cdc_enabled:
            once = replace(CaptureParameters(), continuous=False, pollinginterval=0)
            tending = self._job(job_without_a_row(database.name, once, self._clock()))
            self._jobs[database.name] = tending
            tending.start()

    # What jobs need

    def _scans_of(self, database: str) -> Callable[[Lease], AbstractContextManager[Scan]]:
        @contextmanager
        def open_scan(lease: Lease) -> Iterator[Scan]:
            registered = self._control.sources.get(database)
            if registered is None:
                raise UnknownDatabase(database, "It was disconnected.")
            self._upgrade_source(registered)
            source = self._sources.log(registered)
            try:
                yield Scan(
                    database,
                    source,
                    self._publisher,
                    self._lake,
                    self._control,
                    lease,
                    self._engine_start,
                    self._clock,
                    ScanLimits(int(self._settings.piece_bytes), self._settings.idle_tick_seconds),
                    self._crash,
                    partial(self._checkpoints.committed, database),
                    self._told,
                )
            finally:
                source.close()

        return open_scan

    def _upgrade_source(self, database: SourceDatabase) -> None:
        """What an earlier version made at the source. Capture works with it all the same."""
        try:
            if self._sources.admin(database).upgrade(self._control.instances.list(database.name)):
                _log.info("source upgraded from an earlier version", database=database.name)
        except (ObjectsNotCreated, SourceUnreachable) as error:
            # The scan says better of a source that is away; the status says what wants an upgrade.
            _log.warning("source not upgraded", database=database.name, error=error.line())

    def _clear_dropped(self, database: str) -> None:
        """Removes the folders of change tables whose instances are gone, unless a namesake lives there.

        While the log is read, the scan has to know what is gone until it meets the end of it there.
        """
        registered = self._control.sources.get(database)
        is_read = registered is not None and registered.is_cdc_enabled
        for table in self._control.instances.dropped(database):
            path = (
                self._lake.lsn_time_mapping(database)
                if table.capture_instance is None
                else self._lake.change_table(database, table.capture_instance)
            )
            if not self._in_use(database, table.capture_instance) and self._publisher.drop(path):
                _log.info("change table removed", database=database, path=path)
            if table.capture_instance is None or not is_read:
                self._control.instances.forget_dropped(table.object_id)
        if not is_read:
            self._publisher.remove_empty(self._lake.folders(database))

    def _in_use(self, database: str, capture_instance: str | None) -> bool:
        if capture_instance is None:
            return self._control.watermarks.identity(database) is not None
        return self._control.instances.get(database, capture_instance) is not None


def _goes_on(step: StepJob, job: Job | None) -> bool:
    """Whether a script still runs; one that nobody asks for any more is told to end."""
    if not step.alive:
        step.join()
        return False
    if not step.stopping and (job is None or not job.wanted or job.job_id != step.job.job_id):
        step.stop(asked=True)
    return True


def _is_wanted(running: CaptureJob, job: Job | None, asked: set[int]) -> bool:
    """Whether the job's row, or the call, still asks for what runs."""
    if isinstance(running, CalledScan):
        return running.call.call_id in asked
    return job is not None and job.wanted and job.job_id == running.job.job_id
