"""Compaction of one database: a thread that runs it once, beside capture and in turn with cleanup."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import structlog

from engine.agent.job_thread import JobThread
from engine.cleanup.compaction import Compaction
from engine.control.database import ControlDatabase
from engine.control.leases import Lease, LeaseOf
from engine.control.renewal import renewing
from engine.errors import ControlUnreachable, LeaseLost
from engine.model.job import RunOutcome

_log = structlog.get_logger(__name__)


class CompactionRunner(JobThread):
    """Compacts a database under the lease of its cleanup, in the agent that captures it if any does."""

    def __init__(
        self,
        database: str,
        control: ControlDatabase,
        compaction: Compaction,
        holder: str,
        lease_seconds: int,
        clock: Callable[[], datetime],
    ) -> None:
        super().__init__(f"compaction of {database}")
        self.database = database
        self._control = control
        self._compaction = compaction
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._clock = clock

    def stop(self) -> None:
        """Asks it to end after what it is writing; what is left waits for the next run."""
        self._stop.set()

    def _run(self) -> None:
        try:
            if not self._control.leases.held_by_another(self.database, self._holder):
                self._run_alone()
        except (ControlUnreachable, LeaseLost) as error:
            _log.warning("compaction given up", database=self.database, error=str(error))
        except Exception:  # noqa: BLE001 - the supervisor's edge: the compaction ends, the agent does not
            _log.exception("compaction died", database=self.database)

    def _run_alone(self) -> None:
        leases = self._control.leases
        lease = leases.acquire(self.database, self._holder, self._lease_seconds, LeaseOf.CLEANUP)
        if lease is None:
            return
        try:
            with renewing(leases, lease, self._lease_seconds):
                self._compact(lease)
        finally:
            leases.release(lease)

    def _compact(self, lease: Lease) -> None:
        self._control.compactions.begin(self.database, self._clock())
        outcome, message, again = RunOutcome.FAILED, "", False
        try:
            done = self._compaction.run(self.database, self._stop.is_set)
            message, again = str(done), done.stopped
            if done.stopped:
                outcome = RunOutcome.STOPPED
            elif not done.failures:
                outcome = RunOutcome.SUCCEEDED
        except (ControlUnreachable, LeaseLost):
            raise
        except Exception as error:  # noqa: BLE001 - the same edge: the row says how it ended
            _log.exception("compaction died", database=self.database)
            message = f"{type(error).__name__}: {error}"
        self._control.compactions.finish(self.database, self._clock(), outcome, message, again)
        _log.info("compaction ended", database=self.database, outcome=outcome, message=message)
