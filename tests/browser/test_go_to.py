"""Go to, with the keyboard alone: a page, a table, an error number."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import expect_settled, open_go_to

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
