"""Cleanup jobs of every database: started when they are asked for, or when their time has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

import structlog

from engine.agent.cleanup_job import CleanupRunner
from engine.cleanup.run import RetentionCleanup
from engine.control.database import ControlDatabase
from engine.model.job import CleanupJob, JobState
from engine.model.schedule import ScheduleUnreadable, next_run

_log = structlog.get_logger(__name__)


class Cleanups:
    """Runs cleanup jobs, each database's in a thread of its own beside its capture.

    A run that was missed because no agent ran is made up for, once. zone: whose hours schedules mean.
    """

    def __init__(
        self,
        control: ControlDatabase,
        cleanup: RetentionCleanup,
        holder: str,
        lease_seconds: int,
        clock: Callable[[], datetime],
        zone: tzinfo,
    ) -> None:
        self._control = control
        self._cleanup = cleanup
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._zone = zone
        self._running: dict[str, CleanupRunner] = {}

    def reconcile(self, jobs: Sequence[CleanupJob]) -> bool:
        """Starts what is to run and stops what is not; True when one waits for the end of another."""
        known = {job.database: job for job in jobs}
        for database, runner in list(self._running.items()):
            self._look_after(runner, known.get(database))
        waiting = False
        for job in jobs:
            following = self._following(job)
            if job.database in self._running:
                waiting = waiting or job.wanted
            elif self._is_to_run(job):
                self._start(job, following)
            elif job.next_run is None and following is not None:
                self._control.jobs.expect(job, following)
        return waiting

    def stop(self) -> None:
        """Asks every run to end after its statement."""
        for runner in self._running.values():
            runner.stop()

    def join(self) -> None:
        """Waits for the end of every run."""
        for runner in self._running.values():
            runner.join()

    def _look_after(self, runner: CleanupRunner, job: CleanupJob | None) -> None:
        if not runner.alive:
            runner.join()
            del self._running[runner.job.database]
        elif job is None or job.job_id != runner.job.job_id or job.state is JobState.STOPPING:
            runner.stop()

    def _is_to_run(self, job: CleanupJob) -> bool:
        """Asked for, or due; or left as running by an agent that ended, which the runner sets right."""
        is_due = job.schedule is not None and job.next_run is not None and job.next_run <= self._clock()
        return job.wanted or is_due or job.state in (JobState.RUNNING, JobState.STOPPING)

    def _following(self, job: CleanupJob) -> datetime | None:
        """When the schedule wants the job next, counted from now."""
        if job.schedule is None:
            return None
        try:
            return next_run(job.schedule, self._clock(), self._zone)
        except ScheduleUnreadable as error:  # not written by us
            _log.error("schedule of the cleanup job", database=job.database, error=str(error))
            return None

    def _start(self, job: CleanupJob, following: datetime | None) -> None:
        runner = CleanupRunner(
            job, self._control, self._cleanup, self._holder, self._lease_seconds, self._clock, following
        )
        self._running[job.database] = runner
        runner.start()
