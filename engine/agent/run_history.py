"""What a capture job writes into the history of jobs as it begins, fails, tries again and ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

import structlog

from engine.control.capture_runs import CaptureRun, CaptureRunRepository, RunParameters
from engine.control.leases import Lease
from engine.errors import ControlUnreachable, LeaseLost
from engine.model.job import RunOutcome

_log = structlog.get_logger(__name__)


class RunHistory:
    """The runs of one start of a job. A failure ends a run, and tries in vain after it are its retries.

    runs: None where nothing is to be kept. What could not be written, for the control database was away,
    is written with the next word.
    """

    def __init__(
        self,
        runs: CaptureRunRepository | None,
        job_id: UUID,
        parameters: RunParameters,
        clock: Callable[[], datetime],
    ) -> None:
        self._runs = runs
        self._job_id = job_id
        self._parameters = parameters
        self._clock = clock
        self._run: CaptureRun | None = None
        self._unwritten = False

    @property
    def goes_on(self) -> bool:
        """Whether a run has begun and not ended."""
        return self._run is not None and self._run.outcome is RunOutcome.RUNNING

    def begin(self, lease: Lease) -> None:
        """It runs; nothing where it did already."""
        if self.goes_on:
            return
        if self._unwritten:
            self._save(lease)
        self._run = self._new()
        self._save(lease)

    def fail(self, lease: Lease, message: str, output: str = "") -> None:
        """It failed, or tried again in vain."""
        run = self._run or self._new()
        retries = run.retries + (run.outcome is RunOutcome.FAILED)
        ended = replace(run, outcome=RunOutcome.FAILED, message=message, output=output)
        self._run = replace(ended, end_time=self._clock(), retries=retries)
        self._save(lease)

    def end(self, lease: Lease, outcome: RunOutcome, message: str, output: str = "") -> None:
        """It was stopped, or has done what it was to do; nothing where it had failed."""
        if self._run is not None and self.goes_on:
            self._run = replace(
                self._run, outcome=outcome, message=message, end_time=self._clock(), output=output
            )
            self._save(lease)

    def printed(self, lease: Lease, output: str) -> None:
        """What the step of a run that goes on has printed so far."""
        if self._run is not None and self.goes_on and self._run.output != output:
            self._run = replace(self._run, output=output)
            self._save(lease)

    def _new(self) -> CaptureRun:
        return CaptureRun(self._job_id, self._clock(), self._parameters)

    def _save(self, lease: Lease) -> None:
        assert self._run is not None
        if self._runs is None:
            return
        try:
            self._run = replace(self._run, run_id=self._runs.save(self._run, lease))
            self._unwritten = False
        except ControlUnreachable:
            self._unwritten = True
            _log.warning("run not written into the history", database=lease.database)
        except LeaseLost:
            # The new holder has said that it was interrupted.
            self._run, self._unwritten = None, False
