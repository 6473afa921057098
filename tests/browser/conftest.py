"""One running home and one Chromium for all browser tests; a page of its own for each."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

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
PATIENCE = 120_000
"""Milliseconds that a test waits for what it expects to see: only what is wrong takes that long."""
PROCESS_SECONDS = 300
"""The same for a process to start, answer or end."""
DEMO = "demo"


@dataclass(frozen=True, slots=True)
class RunningHome:
    """A started home: where its dashboard answers, and its command line."""

    folder: Path
    url: str

    def run(self, *arguments: str) -> str:
        """Runs ``highwater`` on this home; its standard output."""
        command = [sys.executable, "-m", "engine", *arguments, "--home", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PROCESS_SECONDS)
        assert done.returncode == 0, f"highwater {' '.join(arguments)}: {done.returncode}\n{done.stderr}"
        return done.stdout

    def sync(self, database: str = DEMO) -> None:
        """Returns when all that was committed is captured."""
        self.run("sync", "-d", database, "--timeout", str(PROCESS_SECONDS))

    def dsn(self, database: str = DEMO) -> str:
        """The libpq URI of a source."""
        return self.run("dsn", "-d", database).strip()

    def execute(self, *statements: str, database: str = DEMO) -> None:
        """Commits each statement on a source by itself; returns when all are captured."""
        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[arg-type]
        self.sync(database)


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def running_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHome]:
    """A home with the demo database, two of its tables captured."""
    folder, port = tmp_path_factory.mktemp("browser") / "home", free_port()
    log = (folder.parent / "start.log").open("w")
    command = [sys.executable, "-m", "engine", "start", "--home", str(folder), "--port", str(port)]
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    home = RunningHome(folder, f"http://127.0.0.1:{port}")
    try:
        wait_for_health(home.url, process, Path(log.name))
        home.run("enable", "-d", DEMO, "HumanResources.Department")
        home.run("enable", "-d", DEMO, "HumanResources.Employee")
        home.sync()
        yield home
    finally:
        process.terminate()
        process.wait(PROCESS_SECONDS)
        log.close()


def wait_for_health(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
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
    pytest.fail(f"the home did not start:\n{log.read_text()[-4000:]}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium with a fresh profile."""
    found = [path for name in CHROMIUMS if (path := shutil.which(name))]
    executable = os.environ.get("HIGHWATER_CHROMIUM") or (found[0] if found else None)
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE)
        started = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield started
        started.close()


class Console:
    """What a page wrote to the console, but for the two known probes of a deep link."""

    def __init__(self, page: Page) -> None:
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))
        page.on("console", self._message)

    def _message(self, message: Any) -> None:
        address = str((message.location or {}).get("url", ""))
        if message.type == "error" and "_stcore" not in address:
            self.errors.append(f"{message.text} ({address})")


@pytest.fixture
def open_page(browser: Browser, running_home: RunningHome) -> Iterator[Callable[..., Page]]:
    """Opens a path of the dashboard in a fresh context; the console must be clean at the end."""
    contexts = []
    consoles: list[Console] = []

    def open_(path: str = "/", theme: str = "light") -> Page:
        context = browser.new_context(
            viewport={"width": 1280, "height": 1000},
            color_scheme=theme,  # type: ignore[arg-type]
            accept_downloads=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        consoles.append(Console(page))
        page.goto(running_home.url + path)
        page.get_by_role("link", name="Overview").wait_for()
        return page

    yield open_
    for context in contexts:
        context.close()
    assert [error for console in consoles for error in console.errors] == []
