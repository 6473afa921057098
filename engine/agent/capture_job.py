"""The capture job of one database: a thread that scans until it is told to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from threading import Event

from engine.agent.leased_job import LeasedJob, utc_now
from engine.capture.scan import Scan
from engine.control.database import ControlDatabase
from engine.control.leases import Lease
from engine.model.job import Job, JobState, RunOutcome


class CaptureJob(LeasedJob):
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
        clock: Callable[[], datetime] = utc_now,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        """``prepare`` is called when another agent has the lease: for what its successor needs."""
        super().__init__(job, control, holder, lease_seconds, clock)
        self._open_scan = open_scan
        self._clear = clear
        self._prepare = prepare
        self._interval_floor = interval_floor
        self._news = Event()
        self._woken = False
        self._tables_dropped = True

    def stop(self, asked: bool = False) -> None:
        """Asks it to end after its cycle; ``asked``: by the job's row, not because the agent ends."""
        super().stop(asked)
        self._news.set()

    def wake(self) -> None:
        """Somebody waits: scan now, whatever the polling interval says."""
        self._woken = True
        self._news.set()

    def tables_dropped(self) -> None:
        """Instances were disabled: their change tables can go."""
        self._tables_dropped = True

    # The thread

    def _waits(self) -> None:
        self._prepare()

    def _run_once(self, lease: Lease) -> None:
        with self._open_scan(lease) as scan:
            finished = self._scan(scan, lease)
        message = "The one-shot scan has finished." if finished else "Stopped."
        self._history.end(lease, RunOutcome.SUCCEEDED if finished else RunOutcome.STOPPED, message)
        # Before the lease is free: what a successor reports must come later.
        self._report(JobState.STOPPED, message)

    def _scan(self, scan: Scan, lease: Lease) -> bool:
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
                self._history.begin(lease)
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
