"""sys.sp_cdc_scan called by a user: the same scan as the capture job's, tried once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from uuid import uuid4

import structlog

from engine.agent.capture_job import CaptureJob
from engine.capture.scan import Scan
from engine.control.database import ControlDatabase
from engine.control.leases import Lease
from engine.errors import AgentNotRunning, CdcError, LogRecordsNotProcessed, ScanAlreadyRunning
from engine.model.job import CaptureParameters, Job, JobState, JobType
from engine.model.scan_call import ScanCall

_log = structlog.get_logger(__name__)


def job_without_a_row(database: str, parameters: CaptureParameters, now: datetime) -> Job:
    """What a `CaptureJob` runs where msdb.dbo.cdc_jobs has no row for it."""
    return Job(uuid4(), database, JobType.CAPTURE, parameters, None, False, JobState.STOPPED, now, "")


class CalledScan(CaptureJob):
    """Scans as its call says. The error that ends it is the caller's, and nothing is tried again."""

    has_history = False

    def __init__(
        self,
        call: ScanCall,
        control: ControlDatabase,
        open_scan: Callable[[Lease], AbstractContextManager[Scan]],
        clear: Callable[[str], None],
        holder: str,
        lease_seconds: int,
        interval_floor: float,
        now: datetime,
    ) -> None:
        """Parameters as those of `CaptureJob`."""
        job = job_without_a_row(call.database, call.parameters, now)
        super().__init__(job, control, open_scan, clear, holder, lease_seconds, interval_floor)
        self.call = call

    def _run(self) -> None:
        error: CdcError | None = None
        try:
            self._try()
            if self.stopping and not self._asked:
                error = AgentNotRunning("it was stopped, and the scan with it")
        except CdcError as failure:
            error = failure
        except Exception as failure:  # noqa: BLE001 - the supervisor's edge: the scan ends, the agent does not
            _log.exception("called scan died", database=self.call.database)
            error = LogRecordsNotProcessed(f"{type(failure).__name__}: {failure}")
        self._control.calls.end(self.call, error)

    def _acquire(self) -> Lease | None:
        """Raises ScanAlreadyRunning where another agent captures this database."""
        lease = self._control.leases.acquire(self.job.database, self._holder, self._lease_seconds)
        if lease is None:
            raise ScanAlreadyRunning("another agent's", self.job.database)
        return lease

    def _report(self, state: JobState, message: str) -> None:
        """A called scan has no row in msdb.dbo.cdc_jobs; its sessions tell how far it is."""
