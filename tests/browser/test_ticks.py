"""What ticks must leave alone: where things stand on the page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from dashboard.reading import LATEST
from tests.browser.controls import expect_settled, wait_for_ticks
from tests.browser.running import RunningHome

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
UPDATE = 'UPDATE "HumanResources"."Department" SET "GroupName" = \'{}\' WHERE "DepartmentID" = {}'
SHIFTS = """
window.__shifts = [];
new PerformanceObserver(list => {
    for (const shift of list.getEntries()) {
        const moved = shift.sources.map(each => {
            const part = each.node?.closest?.('[class*=st-key-]');
            return `${part?.className.match(/st-key-\\S+/)?.[0] ?? each.node?.nodeName}: `
                + `${each.previousRect.top} to ${each.currentRect.top}: ${each.node?.textContent}`;
        });
        if (!shift.hadRecentInput) window.__shifts.push([shift.value, ...moved]);
    }
}).observe({type: 'layout-shift'});
"""
LEAST_SEEN = 0.01
"""Layout shift, as browsers count it, that nobody sees: a digit more in a number."""


@pytest.mark.parametrize("path", ["/", "/tables", "/capture", "/cleanup"])
def test_nothing_jumps_at_a_tick_though_changes_come(
    open_page: OpenPage, running_home: RunningHome, path: str
) -> None:
    # As many changes as the list of the newest has room for: it grows with the first of a new database.
    running_home.execute(*(UPDATE.format(f"Before {number}", 12) for number in range(LATEST)))
    running_home.sync()
    page = open_page(f"{path}?live=2s")
    expect_settled(page)
    wait_for_ticks(page, 4)  # what it shows first may be what was read for another visit
    page.evaluate(SHIFTS)
    for number in range(2):
        running_home.execute(UPDATE.format(f"Still {number}", 12))
        wait_for_ticks(page, 2)
    shifts = page.evaluate("window.__shifts")
    assert sum(value for value, *_moved in shifts) < LEAST_SEEN, shifts
