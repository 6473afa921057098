"""The cleanup job of one database: a thread that runs it once, where it is to run now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import structlog

from engine.agent.cleanup_lease import CleanupLeaseThread
from engine.cleanup.run import RetentionCleanup
from engine.control.database import ControlDatabase
from engine.control.job_runs import ClaimedRun
from engine.control.leases import Lease
from engine.errors import CdcError, ControlUnreachable, LeaseLost
from engine.model.cleanup import RetentionOutcome
from engine.model.job import CleanupJob, RunOutcome, TableCleanup

_log = structlog.get_logger(__name__)


class CleanupRunner(CleanupLeaseThread):
    """Runs sp_MScdc_cleanup_job with what msdb.dbo.cdc_jobs says when it begins.

    following: when the schedule wants the run after this one.
    """

    subject = "cleanup job"

    def __init__(
        self,
        job: CleanupJob,
        control: ControlDatabase,
        cleanup: RetentionCleanup,
        holder: str,
        lease_seconds: int,
        clock: Callable[[], datetime],
        following: datetime | None,
    ) -> None:
        super().__init__(job.name, job.database, control, holder, lease_seconds, clock)
        self.job = job
        self._cleanup = cleanup
        self._following = following
        self._deleted = 0

    def _work(self, lease: Lease) -> None:
        run = self._control.runs.claim(self.job, lease, self._clock(), self._following)
        if run is not None:
            self._clean_up(run, lease)

    def _clean_up(self, run: ClaimedRun, lease: Lease) -> None:
        _log.info("cleanup job started", database=self.database)
        outcome, message = RunOutcome.FAILED, ""
        tables: tuple[TableCleanup, ...] = ()
        try:
            done = self._cleanup.run(
                lease, run.parameters, self._stop.is_set, lambda deleted: self._progress(run, deleted)
            )
            outcome, message = _told(done)
            tables = done.tables
        except (ControlUnreachable, LeaseLost):
            raise
        except CdcError as error:
            message = error.line()
        except Exception as error:  # noqa: BLE001 - the same edge: the history says how the run ended
            _log.exception("cleanup job died", database=self.database)
            message = f"{type(error).__name__}: {error}"
        self._control.runs.finish(run, self._clock(), outcome, message, self._deleted, tables)
        # Rewritten files are small ones, and those that went are still on disk.
        self._control.compactions.ask(self.database)
        _log.info("cleanup job ended", database=self.database, outcome=outcome, deleted=self._deleted)

    def _progress(self, run: ClaimedRun, deleted: int) -> None:
        self._deleted = deleted
        self._control.runs.progress(run, deleted)


def _told(done: RetentionOutcome) -> tuple[RunOutcome, str]:
    """How a run that came to its end, or was stopped, ended; in a sentence."""
    rows = "1 row" if done.deleted_rows == 1 else f"{done.deleted_rows:,} rows"
    if done.failures:
        return RunOutcome.FAILED, " ".join(done.failures)
    if done.stopped:
        return RunOutcome.STOPPED, f"Stopped after {rows}. Low endpoints have moved; the next run goes on."
    if done.low_endpoint is None:
        return RunOutcome.SUCCEEDED, "Nothing has been captured yet."
    notes = [f"Dropped client '{each.name}' of {each.capture_instance}: silent." for each in done.dropped]
    words = [f"Deleted {rows} below {done.low_endpoint}.", *(str(each) for each in done.held), *notes]
    return RunOutcome.SUCCEEDED, " ".join(words)
