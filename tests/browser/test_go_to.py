"""Go to, with the keyboard alone: a page, a table, an error number."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import expect_settled, open_go_to
from tests.browser.running import DEMO, RunningHome
from tests.browser.tables import rows

UPDATE = 'UPDATE "HumanResources"."Department" SET "GroupName" = \'Gone to\' WHERE "DepartmentID" = 5'

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


def test_an_lsn_leads_to_its_changes(open_page: OpenPage, running_home: RunningHome) -> None:
    running_home.execute(UPDATE)
    script = (
        "SELECT TOP 1 CONVERT(varchar(22), [__$start_lsn], 1) AS lsn"
        " FROM cdc.HumanResources_Department_CT WHERE [GroupName] = 'Gone to' ORDER BY [__$start_lsn] DESC"
    )
    lsn = running_home.run("sql", "-d", DEMO, "--format", "csv", "-q", script).split()[-1]
    page = open_page("/?live=paused")
    go(page, lsn)
    which = page.get_by_role("dialog").get_by_role("combobox", name="Which")
    which.or_(page.get_by_role("heading", level=1, name="Changes")).first.wait_for()
    if which.count():  # the other table has this LSN in its validity interval, too
        expect(which).to_be_focused()
        page.keyboard.type("HumanResources_Department")
        expect(page.get_by_role("option")).to_have_count(1)
        page.keyboard.press("Enter")
    expect_page(page, "Changes")
    expect(page).to_have_url(re.compile(f"c_from={lsn}&c_to={lsn}"))
    expect(rows(page).filter(has_text="Gone to").first).to_be_attached()


def test_on_a_telephone_it_opens_by_its_button(open_page: OpenPage) -> None:
    page = open_page("/?live=paused", width=390, height=844)
    page.locator(".st-key-go_to button:visible").click()
    box = page.get_by_role("dialog").get_by_role("combobox")
    expect(box).to_be_focused()
    page.keyboard.type("cleanup")
    page.get_by_role("option", name="Page Cleanup").click()
    expect_page(page, "Cleanup")
    beside = "document.documentElement.scrollWidth > window.innerWidth"
    assert not page.evaluate(beside)
