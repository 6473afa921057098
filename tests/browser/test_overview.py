"""The Overview of several databases: which is worst, and what cleanup and clients mean to its intervals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from dashboard.theme import ROW_HEIGHT
from tests.browser.charts import click_lane, drag, point_at
from tests.browser.controls import expect_settled, press, wait_for_ticks
from tests.browser.running import RunningHome
from tests.browser.tables import cells

pytestmark = pytest.mark.browser


@pytest.fixture
def outlet(running_home: RunningHome) -> Iterator[str]:
    """A database beside the demo, with a client at its low watermark."""
    name = "outlet"  # the name alone would put it below the demo
    running_home.new_source(name, "CREATE TABLE visit (id int PRIMARY KEY)")
    running_home.run("enable", "-d", name, "public.visit")
    running_home.execute("INSERT INTO visit VALUES (1)", database=name)
    running_home.run("client", "register", "etl", "-c", "public_visit", "-d", name)
    yield name
    running_home.run("disable", "-d", name)
    running_home.run("disconnect", name)


def test_the_worst_database_is_first_and_a_click_shows_it_with_its_client_and_what_cleanup_keeps(
    open_page: Callable[..., Page], running_home: RunningHome, outlet: str
) -> None:
    running_home.run("capture", "stop", "-d", outlet)
    page = open_page("/?db=demo&live=2s")
    table = page.locator(".st-key-o_fleet")
    row = table.locator("tbody [role=row]").filter(has_text=outlet)
    expect(cells(row).nth(1)).to_have_text("! Attention")
    expect(cells(row).nth(2)).to_have_text("stopped")
    expect(row).to_have_attribute("aria-rowindex", "2")  # the header is row 1
    intervals = page.get_by_role("figure", name=re.compile("public_visit.*client etl at"))
    press(table, intervals, position={"x": 30, "y": int(ROW_HEIGHT * 1.5)})
    expect(page).to_have_url(re.compile(f"[?&]db={outlet}"))
    expect(page.get_by_role("combobox", name="Database")).to_have_value(outlet)
    expect(intervals.locator(".annotation", has_text="low after cleanup")).to_be_attached()

    phone = open_page(f"/?db={outlet}&live=paused", width=390, height=844)
    first = cells(phone.locator(".st-key-o_fleet tbody [role=row]").first)
    expect(first.first).to_have_text(outlet)
    expect(first.nth(1)).to_have_text("! Attention")
    phone.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
    intervals = phone.get_by_role("figure", name=re.compile("public_visit.*client etl at"))
    expect_settled(phone)
    point_at(intervals, "client")
    # The client stands on the low watermark, which cleanup would leave where it is.
    explained = re.compile("Client etl of public_visit has|public_visit.*cleanup would take nothing now")
    expect(intervals.locator(".hoverlayer")).to_contain_text(explained)


def test_a_lane_leads_to_its_table_and_a_zoomed_timeline_stays_so(open_page: Callable[..., Page]) -> None:
    page = open_page("/?db=demo&live=2s")
    timeline = page.get_by_role("figure", name=re.compile("^Validity intervals:"))
    expect(timeline.locator(".annotation", has_text="retention horizon earlier")).to_be_attached()
    address = page.url
    drag(page, timeline, 0.2, 0.6)
    read = "plot => plot.layout.xaxis.range.map(String).join()"
    page.wait_for_function("plot => plot.zoomed", arg=timeline.element_handle())
    zoomed = timeline.evaluate(read)
    wait_for_ticks(page, 3)
    assert timeline.evaluate(read) == zoomed
    assert page.url == address

    expect_settled(page)
    click_lane(timeline, "HumanResources_Employee", by_name=True)
    expect(page).to_have_url(re.compile("/tables.*[?&]t_ci=HumanResources_Employee"))
    expect(page.get_by_role("heading", name="HumanResources_Employee")).to_be_visible()
    expect_settled(page)
    click_lane(timeline, "HumanResources_Department")
    expect(page).to_have_url(re.compile("/tables.*[?&]t_ci=HumanResources_Department"))
    expect(page.get_by_role("heading", name="HumanResources_Department")).to_be_visible()
