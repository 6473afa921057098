"""Streamlit's tables in a browser: drawn on a canvas, beside an accessible table that says the same.

What is read once may be read while a page draws itself anew, so tests expect of locators; what must be
read as a whole is read in one call.
"""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from dashboard.theme import ROW_HEIGHT


def table(page: Page) -> Locator:
    """The first table of the page, but for the one of all databases."""
    return page.locator("[data-testid=stDataFrame]:not(.st-key-o_fleet *)").first


def rows(page: Page) -> Locator:
    """Its drawn rows."""
    return table(page).locator("tbody [role=row]")


def cells(row: Locator) -> Locator:
    """The cells of a row; what lies within a canvas has no role for Playwright, only for a screen reader."""
    return row.locator("[role=gridcell]")


def expect_row_count(page: Page, count: int) -> None:
    """It has so many rows, drawn or not."""
    expect(table(page).locator("table")).to_have_attribute("aria-rowcount", str(count + 1))


def texts(page: Page) -> list[list[str]]:
    """What all drawn rows say at one moment, cell by cell."""
    found: list[list[str]] = rows(page).evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('[role=gridcell]')].map(cell => cell.textContent))"
    )
    return found


def select(page: Page, row: Locator) -> None:
    """Clicks the marker of a row, which is on the canvas alone."""
    number = row.get_attribute("aria-rowindex")  # the header is row 1
    assert number is not None
    table(page).click(position={"x": 16, "y": int(ROW_HEIGHT * (int(number) - 0.5))})
    expect(row).to_have_attribute("aria-selected", "true")
