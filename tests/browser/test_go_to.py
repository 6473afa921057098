"""Go to, with the keyboard alone: a page, a table, an error number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import expect_settled, open_go_to
from tests.browser.running import DEMO, RunningHome
from tests.browser.tables import expect_row_count, rows

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Page]


def go(page: Page, text: str) -> None:
    """Opens the dialog and types at once."""
    open_go_to(page)
    page.keyboard.type(text)
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Enter")


def expect_page(page: Page, title: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect_settled(page)


def test_a_page_a_table_and_an_error_number_are_a_few_keys_away(open_page: OpenPage) -> None:
    page = open_page("/?live=2s")
    go(page, "cleanup")
    expect_page(page, "Cleanup")
    for name in ("Employee", "Department"):
        go(page, f"Table HumanResources.{name}")
        expect_page(page, "Tables")
        expect(page.get_by_role("heading", level=2, name=f"HumanResources_{name}")).to_be_visible()
        expect(page).to_have_url(re.compile(f"t_ci=HumanResources_{name}"))
    go(page, "Msg 22976")
    expect_page(page, "Errors")
    open_go_to(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect_page(page, "Errors")


def test_an_lsn_leads_to_its_changes_on_a_telephone_too(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    """Two instances have it in their validity interval: the one whose change it is can be chosen."""
    running_home.execute(
        'UPDATE "HumanResources"."Department" SET "GroupName" = \'By its LSN\' WHERE "DepartmentID" = 7',
        'UPDATE "HumanResources"."Department" SET "GroupName" = \'Later\' WHERE "DepartmentID" = 7',
    )
    said = running_home.run("changes", "-d", DEMO, "HumanResources_Department", "--format", "json")
    [change] = [row for row in map(json.loads, said.splitlines()) if row["GroupName"] == "By its LSN"]
    page = open_page("/?live=paused", width=390, height=844)
    expect_settled(page)
    page.locator(".st-key-go_to button").first.click()
    expect(page.get_by_role("dialog").get_by_role("combobox")).to_be_focused()
    page.keyboard.type(change["__$start_lsn"])
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Enter")
    which = page.get_by_role("dialog").get_by_role("combobox", name="Which")
    expect(which).to_be_focused()
    page.keyboard.type("Department")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect_page(page, "Changes")
    expect_row_count(page, 2)
    expect(rows(page).first).to_contain_text("By its LSN")
    page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
    expect(page).to_have_url(re.compile(f"c_from={change['__$start_lsn']}"))
