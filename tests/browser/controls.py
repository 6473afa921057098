"""Buttons and dialogs of a page."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, Position, TimeoutError, expect

SOON = 20_000
"""Milliseconds after which a click whose effect has not begun was beside its aim."""


def expect_settled(page: Page) -> None:
    """No run of the page is under way, and none has failed."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.get_by_test_id("stException")).to_have_count(0)


def wait_for_ticks(page: Page, count: int) -> None:
    """Returns once the page has been drawn anew so often, whether or not that changed what it says."""
    page.get_by_test_id("stApp").evaluate(
        """(app, count) => new Promise((done) => {
          const observer = new MutationObserver(() => {
            if (app.dataset.testScriptState === "notRunning" && --count === 0) {
              observer.disconnect()
              done()
            }
          })
          observer.observe(app, { attributeFilter: ["data-test-script-state"] })
        })""",
        count,
    )


def button(within: Page | Locator, name: str) -> Locator:
    """The button of exactly that name."""
    return within.get_by_role("button", name=name, exact=True)


def press(target: Locator, effect: Locator, position: Position | None = None) -> None:
    """Clicks; once more, as a user would, when a redraw has moved the target from under the pointer."""
    target.click(position=position)
    try:
        effect.wait_for(timeout=SOON)
    except TimeoutError:
        target.click(position=position)
    expect(effect).to_be_visible()


def open_go_to(page: Page) -> None:
    """Opens "Go to" by its keys, which are heard from when its button is drawn; the box has the focus."""
    expect(page.locator(".st-key-go_to button").first).to_be_visible()
    expect_settled(page)
    page.keyboard.press("Control+k")
    box = page.get_by_role("dialog").get_by_role("combobox")
    try:
        box.wait_for(timeout=SOON)
    except TimeoutError:
        page.keyboard.press("Control+k")
    expect(box).to_be_focused()


def confirm(page: Page, name: str) -> None:
    """Clicks a button of the open dialog (its last of that name); returns when the dialog is gone."""
    button(page.get_by_role("dialog"), name).last.click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def dismiss(page: Page) -> None:
    """Closes the open dialog with Escape, which it hears once it has the focus."""
    page.wait_for_function("document.querySelector('[role=dialog]')?.contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
