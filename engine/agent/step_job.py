"""A capture job with a step of its own: a script in a process of its own, which calls sp_cdc_scan itself.

Whatever the script does, the agent lives; its scans are those of sp_cdc_scan calls, with their own lease.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from threading import Event, Lock, Thread
from typing import IO

from engine.agent.leased_job import LeasedJob, utc_now
from engine.control.database import ControlDatabase
from engine.control.leases import Lease, LeaseOf
from engine.errors import LeaseLost, StepFailed
from engine.model.job import Job, JobState, JobStep, RunOutcome
from engine.settings import PREFIX, Settings

OUTPUT_BYTES = 4000
"""How much of the end of what a script printed is kept, as msdb keeps of a step's message."""
STEADY_SECONDS = 60.0
"""A script that ran so long did not fail at its start: the next back-off begins anew."""
STOP_SECONDS = 10.0
"""How long a script that is asked to end may take."""
_LOOK = 0.1
_TELL_OUTPUT = 5.0


class StepJob(LeasedJob):
    """Runs the job's script until it ends or is stopped; one that ends well rests until it is started."""

    lease_of = LeaseOf.STEP

    def __init__(
        self,
        job: Job,
        control: ControlDatabase,
        holder: str,
        lease_seconds: int,
        environment: Mapping[str, str],
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """``environment``: the script's, by which `engine.settings` finds the home (`step_environment`)."""
        super().__init__(job, control, holder, lease_seconds, clock)
        assert job.step is not None
        self._step = job.step
        self._environment = environment
        self._lease_lost = Event()
        self._tail = _Tail()

    @property
    def running_step(self) -> JobStep | None:
        """The script."""
        return self._step

    def _run_once(self, lease: Lease) -> None:
        self._lease_lost.clear()
        self._tail = _Tail()
        with self._script() as script:
            if not self._failures:
                self._history.begin(lease)
            self._report(JobState.RUNNING, f"The {self._step.subsystem} step runs.")
            self._watch(script, lease)
        if self._lease_lost.is_set():
            raise LeaseLost(lease.database, lease.token)
        if not self._stop.is_set() and script.returncode:
            raise StepFailed(self.job.name, _how(script.returncode), self._tail.last_line())
        self._told_end(lease)

    def _told_end(self, lease: Lease) -> None:
        done = not self._stop.is_set()
        if done:
            self._control.jobs.want(self.job.database, self.job.job_type, False)
        message = "The step has finished." if done else "Stopped."
        outcome = RunOutcome.SUCCEEDED if done else RunOutcome.STOPPED
        self._history.begin(lease)
        self._history.end(lease, outcome, message, self._output())
        self._report(JobState.STOPPED, message)

    def _output(self) -> str:
        return self._tail.text()

    def _lost(self) -> None:
        self._lease_lost.set()

    def _watch(self, script: subprocess.Popen[bytes], lease: Lease) -> None:
        """Returns when the script has ended, or is to be ended."""
        begun = told = time.monotonic()
        while script.poll() is None and not self._lease_lost.is_set() and not self._stop.wait(_LOOK):
            now = time.monotonic()
            if self._failures and now - begun > STEADY_SECONDS:
                self._failures = 0
                self._history.begin(lease)
            if now - told > _TELL_OUTPUT:
                told = now
                self._history.printed(lease, self._output())

    @contextmanager
    def _script(self) -> Iterator[subprocess.Popen[bytes]]:
        """The script's process; in the end it and all that it started are gone."""
        script = subprocess.Popen(
            [sys.executable, "-u", "-m", "engine.agent.step_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**self._environment, f"{PREFIX}DATABASE": self.job.database},
            start_new_session=True,
        )
        assert script.stdin is not None
        assert script.stdout is not None
        reader = Thread(target=self._tail.follow, args=(script.stdout,), name=f"{self.job.name} output")
        reader.start()
        try:
            with suppress(BrokenPipeError):  # one that ended at once says why in what it printed
                script.stdin.write(self._order())
                script.stdin.flush()
            yield script
        finally:
            _end(script)
            reader.join()
            with suppress(BrokenPipeError):
                script.stdin.close()

    def _order(self) -> bytes:
        told = {
            "subsystem": self._step.subsystem,
            "database": self.job.database,
            "command": self._step.command,
        }
        return json.dumps(told).encode() + b"\n"


class _Tail:
    """The end of what a process prints."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._bytes = b""

    def follow(self, output: IO[bytes]) -> None:
        """Reads until the process and whatever it started have closed it."""
        with output:
            while chunk := os.read(output.fileno(), 65536):
                with self._lock:
                    self._bytes = (self._bytes + chunk)[-OUTPUT_BYTES:]

    def text(self) -> str:
        """It as text without the zero bytes that the control database cannot keep."""
        with self._lock:
            return self._bytes.decode(errors="replace").replace("\0", "�").strip()

    def last_line(self) -> str:
        """The last line that is not empty."""
        return next((line.strip() for line in reversed(self.text().splitlines()) if line.strip()), "")


def step_environment(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """What a script needs to open the home that the agent serves, as that one has it."""
    found = {**environ, f"{PREFIX}HOME": str(settings.home), f"{PREFIX}LAKE_ROOT": settings.lake}
    if settings.control_dsn is not None:
        found[f"{PREFIX}CONTROL_DSN"] = settings.control_dsn.get_secret_value()
    return found


def _end(script: subprocess.Popen[bytes]) -> None:
    """SIGTERM, SIGKILL after a while, then whatever is left of its session."""
    if script.poll() is None:
        _signal(script.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            script.wait(STOP_SECONDS)
    _signal(script.pid, signal.SIGKILL)
    script.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def _how(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
