"""A started home and a Chromium: for browser tests, for pictures of the pages, for times of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import psycopg
from playwright.sync_api import Browser, sync_playwright

from engine.runtime.ports import free_port

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PROCESS_SECONDS = 300
"""How long a process may take to start, answer or end: only what is wrong takes that long."""
DEMO = "demo"


@dataclass(frozen=True, slots=True)
class RunningHome:
    """A started home: where its dashboard answers, and its command line."""

    folder: Path
    url: str

    def command(self, *arguments: str) -> list[str]:
        """``highwater`` on this home, as a command line."""
        return [sys.executable, "-m", "engine", *arguments, "--home", str(self.folder)]

    def run(self, *arguments: str) -> str:
        """Runs ``highwater`` on this home; its standard output."""
        command = self.command(*arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PROCESS_SECONDS)
        assert done.returncode == 0, f"highwater {' '.join(arguments)}: {done.returncode}\n{done.stderr}"
        return done.stdout

    def sync(self, database: str = DEMO) -> None:
        """Returns when all that was committed is captured."""
        self.run("sync", "-d", database, "--timeout", str(PROCESS_SECONDS))

    def dsn(self, database: str = DEMO) -> str:
        """The libpq URI of a source."""
        return self.run("dsn", "-d", database).strip()

    def new_source(self, name: str, *statements: str) -> str:
        """A connected database of its own beside the demo, after these statements; its libpq URI."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        dsn = self.dsn().replace(f"/{DEMO}", f"/{name}", 1)
        with psycopg.connect(dsn, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
        self.run("connect", name, dsn)
        return dsn

    def execute(self, *statements: str, database: str = DEMO) -> None:
        """Commits each statement on a source by itself; returns when all are captured."""
        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
        self.sync(database)


@contextmanager
def started_home(folder: Path) -> Iterator[RunningHome]:
    """A fresh home with the demo database, nothing captured; it ends with the block."""
    port = free_port()
    home = RunningHome(folder, f"http://127.0.0.1:{port}")
    with (folder.parent / "start.log").open("w") as log:
        command = home.command("start", "--port", str(port))
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_for_health(home.url, process, Path(log.name))
            yield home
        finally:
            process.terminate()
            process.wait(PROCESS_SECONDS)


def _wait_for_health(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when the home says that its page answers, and it does; fails with the log otherwise."""
    end = time.monotonic() + PROCESS_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        if "Open http" not in log.read_text():
            time.sleep(0.1)
            continue
        try:
            with urllib.request.urlopen(f"{url}/api/health", timeout=5) as answer:
                if json.load(answer)["status"] == "ok":
                    return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    raise AssertionError(f"the home did not start:\n{log.read_text()[-4000:]}")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium with a fresh profile: that of ``HIGHWATER_CHROMIUM``, else the machine's own."""
    found = [path for name in CHROMIUMS if (path := shutil.which(name))]
    executable = os.environ.get("HIGHWATER_CHROMIUM") or (found[0] if found else None)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield started
        started.close()
