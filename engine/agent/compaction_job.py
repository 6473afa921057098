"""Compaction of one database: a thread that runs it once, beside capture and in turn with cleanup."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import structlog

from engine.agent.cleanup_lease import CleanupLeaseThread
from engine.cleanup.compaction import Compaction
from engine.control.database import ControlDatabase
from engine.control.leases import Lease
from engine.errors import ControlUnreachable, LeaseLost
from engine.model.job import RunOutcome

_log = structlog.get_logger(__name__)


class CompactionRunner(CleanupLeaseThread):
    """Compacts a database once; what is left when it is stopped waits for the next run."""

    subject = "compaction"

    def __init__(
        self,
        database: str,
        control: ControlDatabase,
        compaction: Compaction,
        holder: str,
        lease_seconds: int,
        clock: Callable[[], datetime],
    ) -> None:
        super().__init__(f"compaction of {database}", database, control, holder, lease_seconds, clock)
        self._compaction = compaction

    def _work(self, lease: Lease) -> None:
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
