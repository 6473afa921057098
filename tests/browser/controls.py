"""Buttons and dialogs of a page."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect


def expect_settled(page: Page) -> None:
    """No run of the page is under way, and none has failed."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.get_by_test_id("stException")).to_have_count(0)


def button(within: Page | Locator, name: str) -> Locator:
    """The button of exactly that name."""
    return within.get_by_role("button", name=name, exact=True)


def confirm(page: Page, name: str) -> None:
    """Clicks a button of the open dialog (its last of that name); returns when the dialog is gone."""
    button(page.get_by_role("dialog"), name).last.click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def dismiss(page: Page) -> None:
    """Closes the open dialog with Escape, which it hears once it has the focus."""
    page.wait_for_function("document.querySelector('[role=dialog]')?.contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
