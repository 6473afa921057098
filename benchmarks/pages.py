"""``python -m benchmarks.pages --home FOLDER``: how long the dashboard's pages take to be seen and to tick.

FOLDER is a home that `benchmarks.large_home` made. It is started as ``highwater start`` does, with the
capture jobs of all its databases, and looked at by Chromium. All times are the browser's own, from its clock:

- first heading: from the beginning of the navigation to an empty cache, to the page's title;
- page switch: from the click on the link to the title of the other page (the first part that the server draws
  for it), and to the end of the run that draws the page;
- tick: how long the app is said to be running for one redraw by its timer, every part of the page that ticks
  at that moment included, from the first word of it to the last;
- first rows: from the beginning of a navigation, to an empty cache, to rows in the explorer's table;
- ten browsers: the same ticks while ten browsers look at different pages, each of them every two seconds.

Each is the median of runs, with the smallest and the largest. Beside them: the processor seconds of
dashboard, agent, PostgreSQL and Chromium in that time, and the machine's load: without them times say little.
Targets are on the medians; exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from playwright.sync_api import Browser, BrowserContext, Locator, Page

from benchmarks.large_home import DATABASE, LARGE, SCHEMA, opened
from dashboard.navigation import SECTIONS
from engine.engine import Engine
from engine.model.job import Job, JobState, is_capture
from engine.runtime.home import Home
from engine.runtime.ports import free_port
from engine.settings import Settings
from tests.browser.running import chromium

PATIENCE = 600_000
"""Milliseconds that anything is waited for."""
HEADING, SWITCH, TICK, ROWS, CROWDED = 2.0, 1.0, 0.3, 3.0, 1.0
"""Targets in seconds."""
BROWSERS = 10
STARTS = 300.0
_FAST = "live=2s"
_STILL = ("console", "learn", "settings")
"""Pages of which nothing but the header ticks."""
_WATCH = """
window.__seen = {clicked: 0, title: '', titled: 0, rows: 0, runs: [], began: null};
const seen = window.__seen;
document.addEventListener('click', () => {
    Object.assign(seen, {clicked: performance.now(), titled: 0, rows: 0, runs: [], began: null});
}, true);
function look() {
    const now = performance.now(), title = document.querySelector('h1')?.textContent ?? '';
    if (title !== seen.title) Object.assign(seen, {title, titled: now});
    if (!seen.rows && document.querySelector('[data-testid=stDataFrame] tbody [role=row]')) seen.rows = now;
    const state = document.querySelector('[data-testid=stApp]')?.dataset.testScriptState;
    if (state !== 'notRunning' && state) seen.began ??= now;
    else if (state && seen.began !== null) { seen.runs.push([seen.began, now]); seen.began = null; }
}
new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true,
    attributeFilter: ['data-test-script-state']});
"""


@dataclass
class Times:
    """Seconds of one thing, by run."""

    what: str
    target: float | None = None
    seconds: list[float] = field(default_factory=list)

    def line(self) -> str:
        """Median, smallest and largest, and whether the target is met."""
        if not self.seconds:
            return f"{self.what}: not seen"
        least, most = min(self.seconds), max(self.seconds)
        text = (
            f"{self.what}: {median(self.seconds):.2f} s ({least:.2f} to {most:.2f}, {len(self.seconds)} runs)"
        )
        if self.target is None:
            return text
        return f"{text}; target {self.target:g} s {'missed' if self.missed else 'met'}"

    @property
    def missed(self) -> bool:
        """Whether the median is above the target, or nothing was seen."""
        return self.target is not None and (not self.seconds or median(self.seconds) > self.target)


class Report:
    """Prints each figure when it is there, with the processor seconds of its time."""

    def __init__(self, home: Home, chromium: psutil.Process) -> None:
        self._home = home
        self._chromium = chromium
        self.missed = False

    @contextmanager
    def of(self, *all_times: Times) -> Iterator[None]:
        """Prints these at the end."""
        began, before = time.monotonic(), self._used()
        yield
        seconds, after = time.monotonic() - began, self._used()
        for times in all_times:
            self.missed |= times.missed
            print(times.line(), flush=True)
        used = ", ".join(f"{name} {after[name] - before.get(name, 0):.1f}" for name in after)
        load = os.getloadavg()[0]
        print(f"    {seconds:.0f} s; of processors: {used} s; load {load:.1f}", flush=True)

    def _used(self) -> dict[str, float]:
        """Processor seconds so far, by process and its children."""
        found = {name: record.pid for name, record in self._home.processes().items()}
        used = {name: _seconds(psutil.Process(found[name])) for name in ("dashboard", "agent", "postgres")}
        return used | {"Chromium": _seconds(self._chromium)}


def main() -> int:
    """Measures and prints; exit code 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="heading, switch, tick, rows, crowd: some, by commas")
    arguments = parser.parse_args()
    parts = {"heading": _headings, "switch": _switches, "tick": _ticks, "rows": _rows, "crowd": _crowd}
    wanted = [each for each in arguments.only.split(",") if each] or list(parts)
    with _started(arguments.home) as url, chromium() as browser:
        report = Report(Home(arguments.home), _chromium_process())
        _warm_up(browser, url)
        for each in wanted:
            parts[each](browser, url, arguments.runs, report)
    return int(report.missed)


def _warm_up(browser: Browser, url: str) -> None:
    """A dashboard that has been looked at before: modules are loaded, a snapshot is there."""
    with _page(browser) as page:
        page.goto(f"{url}/?{_FAST}")
        _wait(page, "seen.runs.length > 2")


def _headings(browser: Browser, url: str, runs: int, report: Report) -> None:
    times = Times("first heading, Overview", HEADING)
    with report.of(times):
        for _ in range(runs):
            with _page(browser) as page:
                page.goto(url)
                times.seconds.append(_wait(page, "seen.title && seen.titled"))


def _switches(browser: Browser, url: str, runs: int, report: Report) -> None:
    """There and back again, so that each switch begins on another page."""
    titles = [title for pages in SECTIONS.values() for title, _ in pages.values()]
    with _page(browser) as page:
        page.goto(f"{url}/?live=paused")
        _wait(page, "seen.runs.length > 0 && seen.began === null")
        for section, pages in SECTIONS.items():
            for title, _ in pages.values():
                heading, whole = Times(f"switch to {title}", SWITCH), Times("    its whole page")
                with report.of(heading, whole):
                    for _ in range(runs):
                        _go(page, "", titles[1] if title == titles[0] else titles[0])
                        clicked = _go(page, section, title)
                        heading.seconds.append(
                            _wait(page, f"seen.title === '{title}' && seen.titled") - clicked
                        )
                        whole.seconds.append(_settled(page) - clicked)


def _go(page: Page, section: str, title: str) -> float:
    """Clicks a page's link, in its menu where it is in one; seconds of the page's clock."""
    link = page.get_by_role("link", name=title, exact=True)
    if section:
        _open_menu(page, section, link)
    link.click()
    _wait(page, f"seen.title === '{title}'")
    clicked = float(page.evaluate("window.__seen.clicked")) / 1000
    _settled(page)
    return clicked


def _open_menu(page: Page, section: str, link: Locator) -> None:
    """Until its link is there: the pointer may have opened the menu already, and a click then closes it."""
    menu = page.get_by_test_id("stTopNavSection").filter(has_text=section)
    for _ in range(10):
        if link.is_visible():
            return
        if menu.count():
            menu.click()
        page.wait_for_timeout(300)


def _settled(page: Page) -> float:
    """When the first run since the click has ended."""
    return _wait(page, "seen.runs.length > 0 && seen.began === null && seen.runs[0][1]")


def _ticks(browser: Browser, url: str, runs: int, report: Report) -> None:
    for pages in SECTIONS.values():
        for name, (title, _) in pages.items():
            times = Times(f"tick of {title}", TICK)
            with _page(browser) as page:
                page.goto(f"{url}/{'' if name == 'overview' else name}?{_FAST}")
                _wait(page, "seen.title && seen.runs.length > 1")
                page.wait_for_timeout(4000)  # what it reads once has been read
                page.evaluate("window.__seen.runs = []")
                with report.of(times):
                    times.seconds += _collected(page, runs + 1)


def _collected(page: Page, count: int) -> Sequence[float]:
    """How long so many redraws took."""
    _wait(page, f"seen.runs.length >= {count}")
    runs: list[list[float]] = page.evaluate("window.__seen.runs")
    return [(end - began) / 1000 for began, end in runs]


def _rows(browser: Browser, url: str, runs: int, report: Report) -> None:
    instance = f"db={DATABASE.format(1)}&c_ci={SCHEMA}_{LARGE}"
    times = Times("first rows of the explorer, the newest 200", ROWS)
    with report.of(times):
        for _ in range(runs):
            with _page(browser) as page:
                page.goto(f"{url}/changes?live=paused&{instance}")
                times.seconds.append(_wait(page, "seen.rows"))


def _crowd(browser: Browser, url: str, runs: int, report: Report) -> None:
    names = [name for pages in SECTIONS.values() for name in pages if name not in _STILL]
    contexts: list[BrowserContext] = []
    pages: dict[str, Page] = {}
    try:
        for name in names[:BROWSERS]:
            context = browser.new_context(viewport={"width": 1280, "height": 1000})
            contexts.append(context)
            pages[name] = page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.add_init_script(_WATCH)
            page.goto(f"{url}/{'' if name == 'overview' else name}?{_FAST}")
        for page in pages.values():
            _wait(page, "seen.title && seen.runs.length > 1")
        for page in pages.values():
            page.evaluate("window.__seen.runs = []")
        everything = Times(f"tick while {len(pages)} browsers look", CROWDED)
        single = {name: Times(f"    of {name}") for name in pages}
        with report.of(everything, *single.values()):
            for name, page in pages.items():
                single[name].seconds += _collected(page, runs * 2)
                everything.seconds += single[name].seconds
    finally:
        for context in contexts:
            context.close()


# Browser and home


@contextmanager
def _page(browser: Browser) -> Iterator[Page]:
    """A page of its own, with nothing in its cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.add_init_script(_WATCH)
        yield page
    finally:
        context.close()


def _wait(page: Page, condition: str) -> float:
    """Waits until it holds; where its value is a moment of the page's clock, in seconds."""
    found: Any = page.wait_for_function(
        f"() => {{ const seen = window.__seen; return seen && ({condition}); }}", polling=50
    ).json_value()
    return float(found) / 1000 if isinstance(found, int | float) else 0.0


def _chromium_process() -> psutil.Process:
    """The driver, below which all processes of the browser are."""
    [driver] = [each for each in psutil.Process().children() if "node" in each.name()]
    return driver


def _seconds(process: psutil.Process) -> float:
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


@contextmanager
def _started(home: Path) -> Iterator[str]:
    """The home as ``highwater start`` runs it; where its dashboard answers."""
    port = free_port()
    command = [sys.executable, "-m", "engine", "start", "--no-demo", "--home", str(home), "--port", str(port)]
    with (home / "start.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _until(lambda: b"Open http" in (home / "start.log").read_bytes(), process)
            with opened(Settings(home=home)) as engine:
                _until(lambda: all(job.state is JobState.RUNNING for job in _captures(engine)), process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _captures(engine: Engine) -> Iterator[Job]:
    """The capture jobs of all databases."""
    for database in engine.databases():
        yield from filter(is_capture, engine.help_jobs(database.name))


def _until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + STARTS
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError("the home did not start: see its start.log")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
