"""A capture job, whatever it runs: under a lease, tried again when it fails, told of in row and history."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from threading import Lock

import structlog
from tenacity import RetryCallState, Retrying, retry_if_exception_type
from tenacity.stop import stop_when_event_set

from engine.agent.job_thread import JobThread
from engine.agent.run_history import RunHistory
from engine.control.database import ControlDatabase
from engine.control.leases import Lease, LeaseOf
from engine.control.renewal import renewing
from engine.errors import CdcError, ChangesNotWritten, ControlUnreachable, SourceUnreachable
from engine.model.job import Job, JobState, JobStep

_log = structlog.get_logger(__name__)

SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
"""Seconds until a job that failed tries again: between the first failure in a row and the ninth."""
OUTAGE_PAUSE = 1.0
"""The longest pause where the polling interval is less, and something is away that comes back by itself."""
_OUTAGES = (SourceUnreachable, ControlUnreachable, ChangesNotWritten)
_MOST_DOUBLINGS = 10
LOOKS_A_LEASE = 10
"""How often within the length of a lease an agent that waits for it looks whether it is free."""


def utc_now() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


class LeasedJob(JobThread):
    """A capture job, whatever it runs; ``_run_once`` is its work from a start to its end."""

    lease_of = LeaseOf.CAPTURE
    """Which lease it needs."""
    has_history = True
    """Whether its runs go into the history of jobs."""

    def __init__(
        self,
        job: Job,
        control: ControlDatabase,
        holder: str,
        lease_seconds: int,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(job.name)
        self.job = job
        self.parameters = job.configured
        self._control = control
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._asked = False
        self._ended = False
        self._reporting = Lock()
        self._failures = 0
        runs = control.capture_runs if self.has_history else None
        step = {} if job.step is None else {"step": str(job.step.subsystem)}
        self._history = RunHistory(runs, job.job_id, {**asdict(self.parameters), **step}, clock)

    def stop(self, asked: bool = False) -> None:
        """Asks it to end after what it is at; ``asked``: by the job's row, not because the agent ends."""
        self._asked = asked
        self._stop.set()
        if asked:
            self._report(JobState.STOPPING, "Stops after its cycle.")

    @property
    def running_step(self) -> JobStep | None:
        """The step that it was started with."""
        return None

    @abstractmethod
    def _run_once(self, lease: Lease) -> None:
        """Works under the lease until it is told to stop, or is done. Raises the CdcError that ends it."""

    # The thread

    def _run(self) -> None:
        retrying = Retrying(
            retry=retry_if_exception_type(CdcError),
            wait=self._pause,
            stop=stop_when_event_set(self._stop),
            sleep=self._sleep,
            before_sleep=self._failed,
            retry_error_callback=lambda _: self._report(JobState.STOPPED, "Stopped."),
        )
        try:
            retrying(self._try)
        except Exception as error:  # noqa: BLE001 - the supervisor's edge: the job ends, the agent does not
            _log.exception("capture job died", database=self.job.database)
            self._report(JobState.FAILED, _words(error))

    def _try(self) -> None:
        """Works until told to stop, or once. Raises the CdcError that ends it."""
        with self._lease() as lease:
            if lease is None:
                if self._asked:
                    self._report(JobState.STOPPED, "Stopped.")
                return
            if not self._failures:
                self._report(JobState.STARTING, "Starting.")
            with renewing(self._control.leases, lease, self._lease_seconds, self._lost), self._told(lease):
                self._run_once(lease)

    def _lost(self) -> None:
        """Another has taken the lease: whatever is written with it is refused."""

    @contextmanager
    def _told(self, lease: Lease) -> Iterator[None]:
        """A failure goes into the history before the lease is free for another."""
        try:
            yield
        except Exception as error:
            self._history.fail(lease, _words(error), self._output())
            raise

    def _output(self) -> str:
        """What a step printed at last."""
        return ""

    def _pause(self, attempt: RetryCallState) -> float:
        """Doubles with each failure since the last time that it went well.

        While source, control database or lake are away it is no longer than a polling interval: capture goes
        on within two of them once they are back.
        """
        self._failures += 1
        longest = LONGEST_PAUSE
        if attempt.outcome is not None and isinstance(attempt.outcome.exception(), _OUTAGES):
            longest = min(longest, max(OUTAGE_PAUSE, float(self.parameters.pollinginterval)))
        doublings = min(self._failures - 1, _MOST_DOUBLINGS)
        return float(min(SHORTEST_PAUSE * 2**doublings, longest))

    def _sleep(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def _failed(self, attempt: RetryCallState) -> None:
        assert attempt.outcome is not None
        error = attempt.outcome.exception()
        assert isinstance(error, CdcError)
        _log.error("capture job failed", database=self.job.database, error=error.line())
        pause = timedelta(seconds=0.0 if attempt.next_action is None else attempt.next_action.sleep)
        soon = f"attempt {self._failures + 1} at {self._clock() + pause:%Y-%m-%d %H:%M:%S} UTC"
        self._report(JobState.FAILED, f"{error.line().rstrip('.')}. Retrying: {soon}.")

    # Lease

    @contextmanager
    def _lease(self) -> Iterator[Lease | None]:
        lease = self._acquire()
        try:
            yield lease
        finally:
            if lease is not None:
                self._release(lease)

    def _acquire(self) -> Lease | None:
        """Waits until nobody else runs this job; None when told to stop meanwhile.

        The job's state is the other's to report.
        """
        waiting = False
        leases, database = self._control.leases, self.job.database
        while not self._stop.is_set():
            lease = leases.acquire(database, self._holder, self._lease_seconds, self.lease_of)
            if lease is not None:
                return lease
            if not waiting:
                waiting = True
                _log.info("another agent captures this database", database=database)
                self._waits()
            self._stop.wait(self._lease_seconds / LOOKS_A_LEASE)
        return None

    def _waits(self) -> None:
        """Another agent has the lease: time to prepare for its end."""

    def _release(self, lease: Lease) -> None:
        try:
            self._control.leases.release(lease)
        except ControlUnreachable:
            _log.warning("lease not released; it expires", database=lease.database)

    def _report(self, state: JobState, message: str) -> None:
        rests = state in (JobState.STOPPED, JobState.FAILED)
        running, step = (None, None) if rests else (self.parameters, self.running_step)
        try:
            # Told to stop while it ends by itself: that it has ended is the last word.
            with self._reporting:
                if self._ended:
                    return
                self._ended = state is JobState.STOPPED
                self._control.jobs.report(self.job.job_id, state, message, running, step)
        except ControlUnreachable:
            _log.warning("job state not reported", database=self.job.database, state=state, message=message)


def _words(error: BaseException) -> str:
    return error.line() if isinstance(error, CdcError) else f"{type(error).__name__}: {error}"
