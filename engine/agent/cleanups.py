"""Cleanup jobs and compactions of every database: when they are asked for, or their time has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

from engine.agent.cleanup_job import CleanupRunner
from engine.agent.compaction_job import CompactionRunner
from engine.agent.schedules import plan_of
from engine.cleanup.compaction import Compaction
from engine.cleanup.run import RetentionCleanup
from engine.control.database import ControlDatabase
from engine.model.job import CleanupJob, JobState
from engine.model.schedule import Plan


class Cleanups:
    """Runs cleanup jobs and compactions, of each database one at a time, in a thread beside its capture.

    A compaction makes way for a cleanup, and goes on after it. A run that was missed because no agent ran is
    made up for, once. zone: whose hours schedules mean.
    """

    def __init__(
        self,
        control: ControlDatabase,
        cleanup: RetentionCleanup,
        compaction: Compaction,
        holder: str,
        lease_seconds: int,
        clock: Callable[[], datetime],
        zone: tzinfo,
    ) -> None:
        self._control = control
        self._cleanup = cleanup
        self._compaction = compaction
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._zone = zone
        self._running: dict[str, CleanupRunner | CompactionRunner] = {}

    def reconcile(self, jobs: Sequence[CleanupJob]) -> bool:
        """Starts what is to run and stops what is not; True when one waits for the end of another."""
        known = {job.database: job for job in jobs}
        for database, runner in list(self._running.items()):
            self._look_after(runner, known.get(database))
        waiting = False
        for job in jobs:
            plan = plan_of(job, self._clock(), self._zone)
            if job.database in self._running:
                waiting = self._makes_way(self._running[job.database], job, plan) or waiting or job.wanted
            elif _is_to_run(job, plan):
                self._start(job, None if plan is None else plan.next_run)
            elif plan is not None and plan.next_run != job.next_run:
                self._control.jobs.expect(job, plan.next_run)
        for database in self._control.compactions.wanted():
            if database in self._running:
                waiting = True
            else:
                self._compact(database)
        return waiting

    def stop(self) -> None:
        """Asks every run to end after its statement."""
        for runner in self._running.values():
            runner.stop()

    def join(self) -> None:
        """Waits for the end of every run."""
        for runner in self._running.values():
            runner.join()

    def _look_after(self, runner: CleanupRunner | CompactionRunner, job: CleanupJob | None) -> None:
        if not runner.alive:
            runner.join()
            del self._running[runner.database]
        elif isinstance(runner, CompactionRunner):
            pass  # it ends by itself, also where its database is disabled
        elif job is None or job.job_id != runner.job.job_id or job.state is JobState.STOPPING:
            runner.stop()

    def _makes_way(
        self, runner: CleanupRunner | CompactionRunner, job: CleanupJob, plan: Plan | None
    ) -> bool:
        """Stops a compaction that a cleanup waits for; True where one does."""
        if not isinstance(runner, CompactionRunner) or not _is_to_run(job, plan):
            return False
        runner.stop()
        return True

    def _start(self, job: CleanupJob, following: datetime | None) -> None:
        runner = CleanupRunner(
            job, self._control, self._cleanup, self._holder, self._lease_seconds, self._clock, following
        )
        self._running[job.database] = runner
        runner.start()

    def _compact(self, database: str) -> None:
        runner = CompactionRunner(
            database, self._control, self._compaction, self._holder, self._lease_seconds, self._clock
        )
        self._running[database] = runner
        runner.start()


def _is_to_run(job: CleanupJob, plan: Plan | None) -> bool:
    """Asked for, or due; or left as running by an agent that ended, which the runner sets right."""
    is_due = plan is not None and plan.is_due
    return job.wanted or is_due or job.state in (JobState.RUNNING, JobState.STOPPING)
