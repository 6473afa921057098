"""An agent that is killed, in a browser: said on every page, over by itself, and never drawn across."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import psutil
import pytest
from playwright.sync_api import Page, expect

from engine.engine import Engine
from engine.runtime.home import Home
from engine.settings import Settings
from tests.browser.controls import expect_settled
from tests.browser.drawing import at, drawn
from tests.browser.running import DEMO, RunningHome

pytestmark = pytest.mark.browser

UPDATE = 'UPDATE "HumanResources"."Department" SET "GroupName" = \'{}\' WHERE "DepartmentID" = 9'
STRETCH = timedelta(seconds=2)
"""Of a range of ten minutes; the one in which a restart lies is drawn with what came after."""


@contextmanager
def agent_killed(home: RunningHome) -> Iterator[None]:
    """Without its agent, which the supervisor may start again only once the block has ended."""
    processes = Home(home.folder).processes()
    supervisor = psutil.Process(processes["supervisor"].pid)
    supervisor.suspend()
    try:
        psutil.Process(processes["agent"].pid).kill()
        yield
    finally:
        supervisor.resume()


def test_a_killed_agent_is_told_comes_back_and_breaks_the_line_of_the_history(
    open_page: Callable[..., Page], running_home: RunningHome
) -> None:
    running_home.execute(UPDATE.format("Before"))
    running_home.run("collector", "collect-now")
    overview = open_page("/?live=2s")
    healthy = overview.get_by_role("heading", level=2, name=re.compile("Healthy"))
    expect(healthy).to_be_visible()
    with agent_killed(running_home):
        away = overview.get_by_role(
            "heading", level=2, name=re.compile("Attention — The agent is being started")
        )
        expect(away).to_contain_text(re.compile(rf"cdc\.{DEMO}_capture.* cannot run, and sources keep"))
        expect(overview.get_by_text(re.compile(r"^.*Agent.* · since 20"))).to_be_visible()
        changes = open_page("/changes?c_ci=HumanResources_Department&c_mode=Net")
        expect(changes.get_by_text("The agent is not running: queries need it.")).to_be_visible()
        for page in (overview, changes):
            expect_settled(page)
            expect(page.get_by_text("Traceback")).to_have_count(0)
    expect(healthy).to_be_visible()

    running_home.execute(UPDATE.format("After"))
    running_home.run("collector", "collect-now")
    engine = Engine.open(Settings(home=running_home.folder))
    began = engine.collection_runs(limit=1)[0].agent_start
    engine.close()
    page = open_page("/history?h_range=now-10m&live=paused")
    expect(page.get_by_text(re.compile("restart.*dashed"))).to_be_visible()
    for name in ("Transactions", "Log held, most"):
        chart = drawn(page.get_by_role("figure", name=re.compile(f"^{name}: at most")))
        assert at(began) in chart.dashed()
        ends = [piece[-1] for piece in chart.pieces if piece[0] + STRETCH <= began]
        assert ends, "nothing is drawn of the time before"
        assert max(ends) + STRETCH <= began, "a line goes on over the restart"
        assert any(piece[0] + STRETCH > began for piece in chart.pieces)
