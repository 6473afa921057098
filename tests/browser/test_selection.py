"""What is selected in a list that grows, in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import wait_for_ticks
from tests.browser.running import DEMO, RunningHome
from tests.browser.tables import cells, expect_row_count, rows, select, table

pytestmark = pytest.mark.browser
CLIENT = ("-d", DEMO, "-c", "HumanResources_Employee")


def test_the_selected_row_stays_selected_while_newer_ones_come_on_top(
    open_page: Callable[..., Page], running_home: RunningHome
) -> None:
    for name in ("first", "second"):
        running_home.run("client", "register", name, *CLIENT)
    page = open_page("/activity?live=2s")
    drawer = page.locator(".st-key-a_drawer")
    expect(drawer.get_by_text("'second'")).to_be_visible()
    select(page, rows(page).filter(has_text="'first'"))
    expect(drawer.get_by_text("'first'")).to_be_visible()
    for name in ("second", "first"):
        running_home.run("client", "drop", name, *CLIENT)
    expect(rows(page).first).to_contain_text("drop_client")
    expect(rows(page).nth(3)).to_have_attribute("aria-selected", "true")
    wait_for_ticks(page, 3)
    expect(rows(page).nth(3)).to_have_attribute("aria-selected", "true")
    expect(rows(page).nth(3)).to_contain_text("register_client")
    expect(drawer.get_by_text("register_client").first).to_be_visible()
    expect(drawer.get_by_text("'first'")).to_be_visible()
    select(page, rows(page).nth(2))
    expect(drawer.get_by_text("'second'")).to_be_visible()


def test_a_table_is_searched_for_and_selected_in_the_address(open_page: Callable[..., Page]) -> None:
    page = open_page("/tables?live=2s")
    select(page, rows(page).filter(has_text="HumanResources_Employee"))
    expect(page).to_have_url(re.compile("t_ci=HumanResources_Employee"))
    page.get_by_role("textbox", name="Search").fill("human empl")
    expect_row_count(page, 1)
    expect(page.get_by_text("1 of 2 capture instances")).to_be_visible()
    expect(rows(page).first).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile("t_q=human(%20|[+])empl"))
    expect(page.get_by_text(re.compile(r"\d rows?, \d+ files?, ")).first).to_be_visible()
    again = open_page(page.url[page.url.index("/tables") :])
    expect_row_count(again, 1)
    expect(rows(again).first).to_have_attribute("aria-selected", "true")
    page.get_by_role("textbox", name="Search").fill("department")
    expect(page.get_by_role("heading", name="HumanResources_Department")).to_be_visible()
    expect(page).not_to_have_url(re.compile("t_ci="))


def test_the_selected_scan_session_stays_and_its_address_shows_it(
    open_page: Callable[..., Page], running_home: RunningHome
) -> None:
    change = 'UPDATE "HumanResources"."Department" SET "GroupName" = \'{}\' WHERE "DepartmentID" = 6'
    running_home.execute(change.format("One session"))
    page = open_page("/capture?live=2s")
    newest = rows(page).nth(1)  # the first row is the aggregate
    number = cells(newest).first.inner_text()
    select(page, newest)
    drawer = page.locator(".st-key-k_drawer")
    expect(drawer.get_by_role("heading", name=f"Session {number}")).to_be_visible()
    expect(page).to_have_url(re.compile(f"k_sid={number}$"))
    running_home.execute(change.format("Another"))
    running_home.execute(change.format("And another"))
    selected = table(page).locator("tbody [role=row][aria-selected=true]")
    expect(cells(rows(page).nth(1)).first).not_to_have_text(number)
    expect(cells(selected).first).to_have_text(number)
    wait_for_ticks(page, 3)
    expect(cells(selected).first).to_have_text(number)
    expect(drawer.get_by_role("heading", name=f"Session {number}")).to_be_visible()
    again = open_page(f"/capture?k_sid={number}")
    expect(again.get_by_role("heading", name=f"Session {number}")).to_be_visible()
