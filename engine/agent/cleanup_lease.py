"""What runs in turn with cleanup in one database: a thread under the lease of its cleanup."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from datetime import datetime

import structlog

from engine.agent.job_thread import JobThread
from engine.control.database import ControlDatabase
from engine.control.leases import Lease, LeaseOf
from engine.control.renewal import renewing
from engine.errors import ControlUnreachable, LeaseLost

_log = structlog.get_logger(__name__)


class CleanupLeaseThread(JobThread):
    """Works once, where it is to be done now: only one agent does, and the one that captures if any does."""

    subject: str
    """What the log calls this work."""

    def __init__(
        self,
        name: str,
        database: str,
        control: ControlDatabase,
        holder: str,
        lease_seconds: int,
        clock: Callable[[], datetime],
    ) -> None:
        super().__init__(name)
        self.database = database
        self._control = control
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._clock = clock

    @abstractmethod
    def _work(self, lease: Lease) -> None:
        """Works to its end, or until told to stop. Raises ControlUnreachable, LeaseLost."""

    def stop(self) -> None:
        """Asks it to end after what it is at; what is left waits for the next run."""
        self._stop.set()

    # The thread

    def _run(self) -> None:
        try:
            if not self._control.leases.held_by_another(self.database, self._holder):
                self._run_alone()
        except (ControlUnreachable, LeaseLost) as error:
            # What the run has not said, the next holder of the lease says in its place: interrupted.
            _log.warning(f"{self.subject} given up", database=self.database, error=str(error))
        except Exception:  # noqa: BLE001 - the supervisor's edge: the work ends, the agent does not
            _log.exception(f"{self.subject} died", database=self.database)

    def _run_alone(self) -> None:
        leases = self._control.leases
        lease = leases.acquire(self.database, self._holder, self._lease_seconds, LeaseOf.CLEANUP)
        if lease is None:
            return
        try:
            with renewing(leases, lease, self._lease_seconds):
                self._work(lease)
        finally:
            leases.release(lease)
