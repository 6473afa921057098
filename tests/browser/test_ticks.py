"""What ticks must leave alone: where things stand on the page, the row that was chosen, what was typed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import button, expect_settled, wait_for_ticks
from tests.browser.running import RunningHome
from tests.browser.tables import cells, rows, select

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
UPDATE = 'UPDATE "HumanResources"."Department" SET "GroupName" = \'{}\' WHERE "DepartmentID" = {}'
SHIFTS = """
window.__shifts = [];
new PerformanceObserver(list => {
    for (const shift of list.getEntries()) {
        const moved = shift.sources.map(each => each.node?.closest?.('[class*=st-key-]')?.className ?? each.node?.nodeName);
        if (!shift.hadRecentInput) window.__shifts.push([shift.value, ...moved]);
    }
}).observe({type: 'layout-shift'});
"""
LEAST_SEEN = 0.01
"""Layout shift, as browsers count it, that nobody sees: a digit more in a number."""


@pytest.mark.parametrize("path", ["/", "/tables", "/capture", "/cleanup", "/errors", "/schema", "/changes"])
def test_nothing_jumps_at_a_tick_though_changes_come(
    open_page: OpenPage, running_home: RunningHome, path: str
) -> None:
    page = open_page(f"{path}?live=2s")
    expect_settled(page)
    wait_for_ticks(page, 2)
    page.evaluate(SHIFTS)
    for number in range(2):
        running_home.execute(UPDATE.format(f"Still {number}", 12))
        wait_for_ticks(page, 2)
    shifts = page.evaluate("window.__shifts")
    assert sum(value for value, *_moved in shifts) < LEAST_SEEN, shifts
