"""A started home, driven by its command line as scripts would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from engine.cli.main import application

START_SECONDS = 600


class RunningHome:
    """The processes of one home and the command that talks to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, *arguments: str) -> list[str]:
        """The command line of ``highwater`` on this home."""
        return [sys.executable, "-m", "engine", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "HIGHWATER_HOME": str(self.folder), "COLUMNS": "200"}

    def run(self, *arguments: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """Runs ``highwater``, whatever its exit code."""
        return subprocess.run(
            self.command(*arguments),
            capture_output=True,
            encoding="utf-8",
            env=self.environment,
            timeout=timeout,
            check=False,
        )

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The same within this process: without a second for imports, for tests of which there are many."""
        environment = dict(os.environ)
        result = CliRunner(env=self.environment).invoke(application(), arguments, prog_name="highwater")
        # A Connect client leaves a mark by which a classic session of other tests would become one too.
        os.environ.clear()
        os.environ.update(environment)
        unexpected = result.exception
        if unexpected is not None and not isinstance(unexpected, SystemExit):
            raise unexpected
        return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)

    def must(self, *arguments: str) -> str:
        """The standard output of a call that must succeed."""
        done = self.call(*arguments)
        assert done.returncode == 0, f"highwater {' '.join(arguments)}: {done.returncode}\n{done.stderr}"
        return done.stdout

    def changes(self, database: str, capture_instance: str, *options: str) -> list[dict[str, Any]]:
        """The rows of ``highwater changes --format json``; numbers with a fraction as Decimal."""
        text = self.must("changes", "-d", database, capture_instance, "--format", "json", *options)
        return [json.loads(line, parse_float=Decimal) for line in text.splitlines()]


@contextmanager
def running_home(folder: Path, *options: str) -> Iterator[RunningHome]:
    """Starts a home below ``folder`` and stops it in the end."""
    home = RunningHome(folder)
    log = folder.with_name(f"{folder.name}.log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            home.command("start", *options), stdout=output, stderr=subprocess.STDOUT, env=home.environment
        )
        try:
            _wait_until_ready(process, log)
            yield home
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while "Ctrl-C stops everything" not in log.read_text():
        assert process.poll() is None, f"the home ended:\n{log.read_text()}"
        assert time.monotonic() < end, f"the home was not ready in time:\n{log.read_text()}"
        time.sleep(0.1)
