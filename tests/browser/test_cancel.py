"""Cancel in a browser ends the work itself: asked of Spark, which tells of its jobs by its own interface."""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from pyspark.errors import PySparkException

from engine.engine import Engine
from engine.runtime.ports import free_port
from engine.settings import Settings
from tests.browser.controls import button, press
from tests.browser.running import DEMO, PROCESS_SECONDS, RunningHome, started_home
from tests.browser.tables import rows

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Page]

CORES = 2
LONGER_THAN_ANY_TEST = 1000 * 3600
"""Milliseconds."""
INSTANCE = "HumanResources_Department"
SCRIPT = f"""DECLARE @low binary(10) = sys.fn_cdc_get_min_lsn('{INSTANCE}'), \
@high binary(10) = sys.fn_cdc_get_max_lsn();
SELECT GroupName, COUNT(*) AS changes FROM cdc.fn_cdc_get_all_changes_{INSTANCE}(@low, @high, 'all')
GROUP BY GroupName;"""


@dataclass(frozen=True, slots=True)
class Spark:
    """The Spark of a home, by its interface for monitoring."""

    url: str

    def running(self, tag: str = "") -> list[dict[str, Any]]:
        """Jobs that run, with the tags and tasks they have; ``tag``: those with such a one."""
        jobs = self._ask("jobs?status=running")
        return [job for job in jobs if any(tag in each for each in job.get("jobTags", [""]))]

    def tasks(self) -> int:
        """Tasks that work at this moment."""
        return sum(executor["activeTasks"] for executor in self._ask("executors"))

    def wait(self, condition: Callable[[], bool]) -> None:
        """Returns when it is so."""
        end = time.monotonic() + PROCESS_SECONDS
        while not condition():
            assert time.monotonic() < end, self.running()
            time.sleep(0.1)

    def _ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/applications", timeout=30) as answer:
            [application] = json.load(answer)
        address = f"{self.url}/api/v1/applications/{application['id']}/{path}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def spark() -> Spark:
    return Spark(f"http://127.0.0.1:{free_port()}")


@pytest.fixture(scope="module")
def running_home(tmp_path_factory: pytest.TempPathFactory, spark: Spark) -> Iterator[RunningHome]:
    """A home of its own, whose Spark tells of its jobs; one table is captured and has changes."""
    settings = {"spark.ui.enabled": "true", "spark.ui.port": spark.url.rpartition(":")[2]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "HIGHWATER_SPARK_SETTINGS", json.dumps(settings))
        patch.setitem(os.environ, "HIGHWATER_MASTER", f"local[{CORES}]")
        with started_home(tmp_path_factory.mktemp("cancel") / "home") as home:
            home.run("enable", "-d", DEMO, "HumanResources.Department")
            home.execute('UPDATE "HumanResources"."Department" SET "GroupName" = "GroupName" || \'!\'')
            yield home


@contextmanager
def no_core_free(home: RunningHome, spark: Spark) -> Iterator[None]:
    """While it is open every core is taken: whatever else Spark is asked for has a job, and waits."""
    engine = Engine.open(Settings(home=home.folder))
    session = engine.spark_session()

    def occupy() -> None:
        sleep = f"java_method('java.lang.Thread', 'sleep', {LONGER_THAN_ANY_TEST}L)"
        with pytest.raises(PySparkException):
            session.range(0, CORES, 1, CORES).selectExpr(sleep).collect()

    thread = threading.Thread(target=occupy)
    thread.start()
    try:
        spark.wait(lambda: spark.tasks() == CORES)
        yield
    finally:
        session.interruptAll()
        thread.join(PROCESS_SECONDS)
        engine.close()


def test_cancel_in_the_explorer_ends_its_job(
    open_page: OpenPage, running_home: RunningHome, spark: Spark
) -> None:
    page = open_page(f"/changes?c_ci={INSTANCE}&c_by=Range&live=paused")
    expect(rows(page).first).to_contain_text("update")
    with no_core_free(running_home, spark):
        page.get_by_text("Filter", exact=True).click()
        field = page.get_by_role("textbox", name="Text in any column")
        field.fill("!")
        field.press("Enter")
        spark.wait(lambda: spark.running("highwater-") != [])
        press(button(page, "Cancel"), page.get_by_text("Reading changes was cancelled."))
        spark.wait(lambda: spark.running("highwater-") == [])
        assert spark.tasks() == CORES, "only what was cancelled has ended"
    button(page, "Try again").click()
    expect(rows(page).first).to_contain_text("!")


def test_cancel_in_the_activity_ends_the_job_of_a_script(
    open_page: OpenPage, running_home: RunningHome, spark: Spark
) -> None:
    page, activity = open_page("/console"), open_page("/activity?live=2s")
    page.locator(".sql-editor:not([data-words='0'])").wait_for()
    page.get_by_role("textbox", name="T-SQL").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(SCRIPT)
    expect(page.get_by_role("textbox", name="T-SQL")).to_contain_text("GROUP BY")
    running = activity.locator(".st-key-a_running")
    with no_core_free(running_home, spark):
        button(page, "Run").click()
        spark.wait(lambda: spark.running("highwater_sql_") != [])
        expect(running).to_contain_text("Console: running")
        button(running, "Cancel").click()
        expect(running.get_by_text("Console")).to_have_count(0)
        expect(page.get_by_text("Query was canceled by user.").first).to_be_visible()
        spark.wait(lambda: spark.running("highwater_sql_") == [])
        assert spark.tasks() == CORES, "only what was cancelled has ended"
