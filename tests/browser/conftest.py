"""One running home and one Chromium for all browser tests; a page of its own for each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from engine.engine import Engine
from engine.model.collection import DEFAULT_SET
from engine.settings import Settings
from tests.browser.running import DEMO, RunningHome, chromium, started_home

PATIENCE = 120_000
"""Milliseconds that a test waits for what it expects to see: only what is wrong takes that long."""


OPENED = pytest.StashKey[list[BrowserContext]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the pages showed when a test failed is told with its failure."""
    report = yield
    if report.when == "call" and report.failed:
        for context in item.stash.get(OPENED, []):
            for page in context.pages:
                report.sections.append((page.url, page.locator("body").aria_snapshot()))
    return report


@pytest.fixture(scope="session")
def running_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHome]:
    """A home with the demo database, two of its tables captured.

    Its collection set was to collect each minute when it was stopped: the first test of the collector finds
    the gap that this leaves.
    """
    with started_home(tmp_path_factory.mktemp("browser") / "home") as home:
        home.run("enable", "-d", DEMO, "HumanResources.Department")
        home.run("enable", "-d", DEMO, "HumanResources.Employee")
        home.sync()
        stop_collecting(home)
        yield home


def stop_collecting(home: RunningHome) -> None:
    """Stops the collection set after a snapshot that the next was to follow within a minute."""
    engine = Engine.open(Settings(home=home.folder))
    engine.update_collection_set(DEFAULT_SET, schedule="* * * * *")
    engine.collect(DEFAULT_SET)
    engine.stop_collection_set(DEFAULT_SET)
    engine.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium with a fresh profile."""
    expect.set_options(timeout=PATIENCE)
    with chromium() as started:
        yield started


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
def open_page(
    browser: Browser, running_home: RunningHome, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Page]]:
    """Opens a path of the dashboard in a fresh context; the console must be clean at the end."""
    contexts = request.node.stash[OPENED] = []
    consoles: list[Console] = []

    def open_(
        path: str = "/", theme: str = "light", width: int = 1280, height: int = 1000, script: str = ""
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,  # type: ignore[arg-type]
            accept_downloads=True,
        )
        contexts.append(context)
        page = context.new_page()
        if script:
            page.add_init_script(script)
        page.set_default_timeout(PATIENCE)
        consoles.append(Console(page))
        page.goto(running_home.url + path)
        page.get_by_role("heading", level=1).wait_for()
        return page

    yield open_
    for context in contexts:
        context.close()
    assert [error for console in consoles for error in console.errors] == []
