"""A process that is kept alive: started again with back-off when it ends by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event, Lock, Thread

from tenacity import Retrying, retry_if_exception_type, stop_when_event_set, wait_exponential
from tenacity.nap import sleep_using_event

from engine.runtime.log_cut import put_aside

LOG_BYTES = 16 * 1024 * 1024
"""So long a log may become: then it is put aside, in the place of what was put aside before."""
STEADY_SECONDS = 60.0
"""A run that lasted so long was no failed start: the next back-off begins anew."""
LONGEST_PAUSE = 30.0


class EndedEarlyError(Exception):
    """The process ended soon after its start."""


def keep_running(run: Callable[[], None], stop: Event) -> None:
    """Calls ``run`` again and again until ``stop`` is set, pausing 0.5 s, 1 s, 2 s … after short runs."""
    back_off = Retrying(
        retry=retry_if_exception_type(EndedEarlyError),
        wait=wait_exponential(multiplier=0.5, max=LONGEST_PAUSE),
        stop=stop_when_event_set(stop),
        sleep=sleep_using_event(stop),
        retry_error_callback=lambda _: None,
    )
    while not stop.is_set():
        back_off(_timed, run, stop)


def _timed(run: Callable[[], None], stop: Event) -> None:
    begun = time.monotonic()
    run()
    if not stop.is_set() and time.monotonic() - begun < STEADY_SECONDS:
        raise EndedEarlyError


class Child:
    """One program with a log file of its own, in a session of its own (Ctrl-C does not reach it)."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environ: Mapping[str, str],
        log: Path,
        say: Callable[[str], None],
        started: Callable[[int], None],
        log_bytes: int = LOG_BYTES,
    ) -> None:
        """``say`` gets a line when it ends by itself, ``started`` the pid of each new process."""
        self.name = name
        self.log = log
        self._command = list(command)
        self._environ = dict(environ)
        self._say = say
        self._started = started
        self._log_bytes = log_bytes
        self._log_lock = Lock()
        self._kept = False
        self._stop = Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = Thread(target=keep_running, args=(self._run, self._stop), name=name, daemon=True)
        self.exit_code: int | None = None

    @property
    def pid(self) -> int | None:
        """Of the process that runs now."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def start(self) -> None:
        """Starts it. Until `keep`, an end is final: a program that cannot start says so once."""
        self._thread.start()

    def keep(self) -> None:
        """From now on it is started again whenever it ends."""
        self._kept = True

    def stop(self, seconds: float) -> None:
        """SIGTERM; after ``seconds`` SIGKILL for it and what it started."""
        self._stop.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                self._say(f"The {self.name} did not stop within {seconds:g} s and is killed.")
            _kill_group(process.pid)
        if self._thread.ident is not None:
            self._thread.join()

    def last_words(self) -> str:
        """The end of its log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - 4096))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError as error:
            return str(error)
        return "\n".join([line for line in lines if line.strip()][-5:])

    def limit_log(self) -> None:
        """Puts a log that has become too long aside as ``.log.1``; call it now and then.

        The process, and the JVM it may have, go on writing into the same file: what they opened for
        appending needs no word from us, and they do not depend on us for their output.
        """
        with self._log_lock:
            if not self.log.exists() or self.log.stat().st_size <= self._log_bytes:
                return
            try:
                put_aside(self.log, self.log.with_suffix(".log.1"))
            except OSError as error:
                self._say(f"The log of the {self.name} is cut without a copy: {error}")

    def _run(self) -> None:
        self.limit_log()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started(self._process.pid)
        if self._stop.is_set():  # stop() came before there was a process to end
            self._process.terminate()
        self.exit_code = self._process.wait()
        if not self._stop.is_set():
            _kill_group(self._process.pid)
            self._after_end(self.exit_code)

    def _after_end(self, exit_code: int) -> None:
        if self._kept:
            self._say(f"The {self.name} ended ({_how(exit_code)}) and is started again. Its log: {self.log}")
        else:
            self._stop.set()


def _kill_group(pid: int) -> None:
    """Ends what the process left behind in its session (a JVM, for one)."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _how(exit_code: int) -> str:
    if exit_code < 0:
        return signal.Signals(-exit_code).name
    return f"exit code {exit_code}"
