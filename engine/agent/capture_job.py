"""The capture job of one database: a thread that scans until it is told to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Lock

import structlog
from tenacity import RetryCallState, Retrying, retry_if_exception_type
from tenacity.stop import stop_when_event_set

from engine.agent.job_thread import JobThread
from engine.capture.scan import Scan
from engine.control.database import ControlDatabase
from engine.control.leases import Lease
from engine.control.renewal import renewing
from engine.errors import CdcError, ControlUnreachable
from engine.model.job import Job, JobState

_log = structlog.get_logger(__name__)

SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
"""Seconds until a job that failed tries again: between the first failure in a row and the tenth."""


class CaptureJob(JobThread):
    """Runs sp_cdc_scan as msdb.dbo.cdc_jobs said when it was started.

    open_scan: gives a `Scan` for a lease and closes its source afterwards.
    clear: removes change tables of instances that were disabled; asked between scans.
    """

    def __init__(
        self,
        job: Job,
        control: ControlDatabase,
        open_scan: Callable[[Lease], AbstractContextManager[Scan]],
        clear: Callable[[str], None],
        holder: str,
        lease_seconds: int,
        interval_floor: float,
    ) -> None:
        super().__init__(job.name)
        self.job = job
        self.parameters = job.configured
        self._control = control
        self._open_scan = open_scan
        self._clear = clear
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._interval_floor = interval_floor
        self._news = Event()
        self._woken = False
        self._asked = False
        self._ended = False
        self._reporting = Lock()
        self._tables_dropped = True
        self._failures = 0

    def stop(self, asked: bool = False) -> None:
        """Asks it to end after its cycle; ``asked``: by the job's row, not because the agent ends."""
        self._asked = asked
        self._stop.set()
        self._news.set()
        if asked:
            self._report(JobState.STOPPING, "Stops after its cycle.")

    def wake(self) -> None:
        """Somebody waits: scan now, whatever the polling interval says."""
        self._woken = True
        self._news.set()

    def tables_dropped(self) -> None:
        """Instances were disabled: their change tables can go."""
        self._tables_dropped = True

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
            retrying(self._capture)
        except Exception as error:  # noqa: BLE001 - the supervisor's edge: the job ends, the agent does not
            _log.exception("capture job died", database=self.job.database)
            self._report(JobState.FAILED, f"{type(error).__name__}: {error}")

    def _pause(self, attempt: RetryCallState) -> float:
        """Doubles with each failure since the last scan that went well."""
        self._failures += 1
        return float(min(SHORTEST_PAUSE * 2 ** (self._failures - 1), LONGEST_PAUSE))

    def _sleep(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def _failed(self, attempt: RetryCallState) -> None:
        assert attempt.outcome is not None
        error = attempt.outcome.exception()
        assert isinstance(error, CdcError)
        _log.error("capture job failed", database=self.job.database, error=error.line())
        self._report(JobState.FAILED, error.line())

    def _capture(self) -> None:
        """Scans until told to stop, or once. Raises the CdcError that ends it."""
        with self._lease() as lease:
            if lease is None:
                if self._asked:
                    self._report(JobState.STOPPED, "Stopped.")
                return
            if not self._failures:
                self._report(JobState.STARTING, "Starting.")
            with self._open_scan(lease) as scan, renewing(self._control.leases, lease, self._lease_seconds):
                finished = self._scan(scan)
            # Before the lease is free: what a successor reports must come later.
            self._report(JobState.STOPPED, "The one-shot scan has finished." if finished else "Stopped.")

    def _scan(self, scan: Scan) -> bool:
        """Scans until told to stop; True when it was to scan once and has."""
        self._clear_dropped()
        reported = False
        while not self._stop.is_set():
            begun = time.monotonic()
            woken, self._woken = self._woken, False
            self._news.clear()
            self._clear_dropped()
            if woken or self.parameters.pollinginterval or scan.has_work():
                scan.run(self.parameters, self._stop.is_set, woken)
                self._failures = 0
            if not reported:
                self._report(JobState.RUNNING, "Running.")
                reported = True
            if not self.parameters.continuous:
                self._finished_once()
                return True
            self._wait(begun)
        return False

    def _finished_once(self) -> None:
        """A one-shot job is not wanted again until somebody starts it; one without a row never was."""
        if self.job.wanted:
            self._control.jobs.want(self.job.database, self.job.job_type, False)

    def _wait(self, begun: float) -> None:
        """Until the next scan: the polling interval, or what is left of the floor that groups commits."""
        interval = float(self.parameters.pollinginterval)
        if interval == 0:
            # Readers share the machine: a scan that takes long leaves them a while all the same.
            interval = max(begun + self._interval_floor - time.monotonic(), self._interval_floor / 2)
        if interval > 0 and not self._woken:
            self._news.wait(interval)

    def _clear_dropped(self) -> None:
        if self._tables_dropped:
            self._tables_dropped = False
            self._clear(self.job.database)

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
        """Waits until nobody else captures this database; None when told to stop meanwhile.

        The job's state is the other's to report.
        """
        waiting = False
        while not self._stop.is_set():
            lease = self._control.leases.acquire(self.job.database, self._holder, self._lease_seconds)
            if lease is not None:
                return lease
            if not waiting:
                waiting = True
                _log.info("another agent captures this database", database=self.job.database)
            self._stop.wait(self._lease_seconds / 4)
        return None

    def _release(self, lease: Lease) -> None:
        try:
            self._control.leases.release(lease)
        except ControlUnreachable:
            _log.warning("lease not released; it expires", database=lease.database)

    def _report(self, state: JobState, message: str) -> None:
        running = None if state in (JobState.STOPPED, JobState.FAILED) else self.parameters
        try:
            # Told to stop while it ends by itself: that it has ended is the last word.
            with self._reporting:
                if self._ended:
                    return
                self._ended = state is JobState.STOPPED
                self._control.jobs.report(self.job.job_id, state, message, running)
        except ControlUnreachable:
            _log.warning("job state not reported", database=self.job.database, state=state, message=message)
