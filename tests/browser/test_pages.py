"""Each page in a real browser, light and dark, with real changes; what a DBA does first."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Locator, Page, expect

from engine.engine import Engine
from engine.settings import Settings
from tests.browser.conftest import DEMO, RunningHome

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
UPDATE = 'UPDATE "HumanResources"."Department" SET "GroupName" = \'{}\' WHERE "DepartmentID" = {}'


def rows(page: Page) -> Locator:
    """The table of changes; its cells are drawn on a canvas with an accessible table beside it."""
    return page.locator("[data-testid=stDataFrame]").first


def texts(page: Page) -> list[list[str]]:
    """What the first table of the page says, row by row, as a screen reader hears it."""
    rows(page).wait_for()
    drawn = rows(page).locator("tbody [role=row]")
    expect(drawn.first).to_be_attached()
    return [row.locator("[role=gridcell]").all_text_contents() for row in drawn.all()]


def row_count(page: Page) -> int:
    """How many rows the first table has, drawn or not."""
    rows(page).wait_for()
    return int(rows(page).locator("table").get_attribute("aria-rowcount") or 0) - 1


def select_first(page: Page) -> None:
    """Selects the first row of the first table."""
    box = rows(page).bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 16, box["y"] + 38 + 17)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/", "Latest changes"),
        ("/tables", "Enable tables"),
        ("/changes", "newest first"),
        ("/capture", "Scan sessions"),
    ],
)
def test_each_page_draws_itself_in_both_themes(open_page: OpenPage, path: str, seen: str, theme: str) -> None:
    page = open_page(path, theme)
    expect(page.get_by_text(seen).first).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_overview_says_healthy_and_shows_the_newest_change(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    running_home.execute(UPDATE.format("Overview Test", 1))
    page = open_page("/?live=2s")
    expect(page.get_by_role("heading", name=re.compile("Healthy"))).to_be_visible()
    expect(rows(page).get_by_text("Overview Test").first).to_be_attached()


def test_an_update_shows_old_and_new_and_its_bits(open_page: OpenPage, running_home: RunningHome) -> None:
    running_home.execute(UPDATE.format("Before", 2), UPDATE.format("After", 2))
    page = open_page("/changes?c_ci=HumanResources_Department")
    assert texts(page)[0][0] == "› update"
    assert "Before → After" in texts(page)[0]
    select_first(page)
    page.get_by_role("tab", name="Mask").click()
    expect(page.get_by_text("0x04")).to_be_visible()


def test_a_bad_range_warns_before_the_query_and_can_be_clamped(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    running_home.execute(UPDATE.format("Within", 5))
    page = open_page("/changes?c_ci=HumanResources_Department&c_by=Range&c_from=0x00000000000000000001")
    expect(page.get_by_text("Msg 313")).to_be_visible()
    expect(rows(page)).to_have_count(0)
    page.get_by_role("button", name="Clamp").click()
    expect(rows(page)).to_be_visible()
    expect(page.get_by_text("Msg 313")).to_have_count(0)


def test_a_copied_link_shows_the_same_rows(open_page: OpenPage, running_home: RunningHome) -> None:
    running_home.execute(UPDATE.format("Linked", 3))
    page = open_page("/changes?c_ci=HumanResources_Department")
    shown = texts(page)
    page.get_by_role("button", name="Copy as").click()
    link = page.get_by_text(re.compile(r"http://.*c_from=0x")).inner_text()
    running_home.execute(UPDATE.format("Later", 3))
    assert texts(open_page(link.removeprefix(running_home.url))) == shown


def test_a_download_has_a_line_for_each_row(
    open_page: OpenPage, running_home: RunningHome, tmp_path: Path
) -> None:
    running_home.execute(*(UPDATE.format(f"Row {n}", 4) for n in range(5)))
    page = open_page("/changes?c_ci=HumanResources_Department&c_n=50")
    page.get_by_role("button", name="Download", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    download.value.save_as(tmp_path / "changes.csv")
    with (tmp_path / "changes.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    codes = [line["__$operation"] for line in lines]
    assert len(lines) - codes.count("3") == row_count(page)  # an update is one row on the page
    assert set(codes) <= {"1", "2", "3", "4"}


def test_the_wizard_enables_a_table_and_disabling_needs_its_name(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    page = open_page("/tables")
    page.get_by_role("button", name="Enable tables").click()
    page.get_by_role("combobox", name="Tables to capture").click()
    page.keyboard.type("Sales.Customer")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Next").click()
    name = page.get_by_role("textbox", name="Capture instance").input_value()
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_text("sp_cdc_enable_table").first).to_be_visible()
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("1 table enabled")).to_be_visible()
    page.get_by_role("button", name="Close").last.click()
    expect(rows(page).get_by_text(name).first).to_be_attached()

    index = [row[1] for row in texts(page)].index(name)
    box = rows(page).bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 16, box["y"] + 38 + 35 * index + 17)
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    page.get_by_role("button", name="Disable").click()
    confirm = page.get_by_role("dialog").get_by_role("button", name="Disable")
    expect(confirm).to_be_disabled()
    page.get_by_role("dialog").get_by_role("textbox").fill(name)
    expect(confirm).to_be_enabled()
    confirm.click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(rows(page).get_by_text(name)).to_have_count(0)


def focus_by_tab(page: Page, target: Locator) -> None:
    """Presses Tab until the target has the focus; fails when it never gets it."""
    target.wait_for()
    for _stop in range(60):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab never reaches {target}")


def test_the_wizard_works_with_the_keyboard_alone(open_page: OpenPage, running_home: RunningHome) -> None:
    page = open_page("/tables")
    focus_by_tab(page, button(page, "Enable tables"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    focus_by_tab(page, dialog.get_by_role("combobox", name="Tables to capture"))
    page.keyboard.type("Production.ProductInv")
    expect(page.get_by_role("option", name=re.compile(r"Production\.ProductInventory \("))).to_be_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    for step in ("Next", "Review"):
        expect(dialog.get_by_role("button", name=step)).to_be_enabled()
        focus_by_tab(page, dialog.get_by_role("button", name=step))
        page.keyboard.press("Space")
    focus_by_tab(page, dialog.get_by_role("button", name="Run"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 table enabled")).to_be_visible()
    focus_by_tab(page, dialog.get_by_role("button", name="Close").last)
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(rows(page).get_by_text("Production_ProductInventory").first).to_be_attached()
    running_home.run("disable", "-d", DEMO, "Production.ProductInventory")


def button(page: Page, name: str) -> Locator:
    """The button of exactly that name on the page itself, or in its dialog while one is open."""
    return page.get_by_role("button", name=name, exact=True)


def confirm(page: Page, name: str) -> None:
    """Clicks a button of the open dialog; returns when the dialog is gone."""
    page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_stop_and_start_and_a_parameter_that_waits_for_a_restart(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    page = open_page("/capture?live=2s")
    page.get_by_text("Change parameters").click()
    page.get_by_label("maxtrans").fill("700")
    page.keyboard.press("Enter")
    button(page, "Save").click()
    expect(page.get_by_text("takes effect after restart").first).to_be_visible()
    button(page, "Restart now").click()
    confirm(page, "Restart")
    expect(page.get_by_text("takes effect after restart")).to_have_count(0)

    button(page, "Stop").click()
    confirm(page, "Stop")
    expect(button(page, "Start")).to_be_visible()
    overview = open_page("/?live=2s")
    expect(overview.get_by_role("heading", name=re.compile("Attention|Failing"))).to_be_visible()
    button(page, "Start").click()
    confirm(page, "Start")
    expect(button(page, "Stop")).to_be_visible()
    expect(overview.get_by_role("heading", name=re.compile("Healthy"))).to_be_visible()


def test_a_job_that_was_dropped_can_be_added_again(open_page: OpenPage, running_home: RunningHome) -> None:
    engine = Engine.open(Settings(home=running_home.folder))
    engine.drop_job(DEMO, "capture")
    page = open_page("/capture?live=2s")
    expect(page.get_by_role("heading", name=f"{DEMO} has no capture job")).to_be_visible()
    button(page, "Add the job").click()
    expect(button(page, "Stop")).to_be_visible()
    engine.close()


def test_a_click_opens_its_dialog_each_time_while_the_page_draws_itself_anew(open_page: OpenPage) -> None:
    page = open_page("/capture?live=2s")
    for name, title in [("Stop", "Stop capture"), ("Restart", "Restart capture")] * 4:
        button(page, name).click()
        expect(page.get_by_role("dialog").get_by_text(title)).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_dialog_that_ticks_pass_by_still_does_what_it_says(open_page: OpenPage) -> None:
    page = open_page("/capture?live=2s")
    running_since = page.get_by_text("since 20").inner_text().split(" (")[0]
    button(page, "Restart").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    for _tick in range(2):
        drawn = page.get_by_text("since 20").inner_text()
        expect(page.get_by_text("since 20")).not_to_have_text(drawn)
    confirm(page, "Restart")
    expect(page.get_by_text("since 20")).not_to_contain_text(running_since)
    expect(button(page, "Stop")).to_be_enabled()


def test_the_first_minute_from_a_new_database_to_its_first_change(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    with psycopg.connect(running_home.dsn(DEMO), autocommit=True) as connection:
        connection.execute("CREATE DATABASE fresh")
    dsn = running_home.dsn(DEMO).replace(f"/{DEMO}", "/fresh", 1)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE visit (id int PRIMARY KEY, guest text)")
    running_home.run("connect", "fresh", dsn)

    page = open_page("/?db=fresh&live=2s")
    page.get_by_role("button", name="Capture all tables").click()
    expect(page.get_by_text("No changes yet")).to_be_visible()
    running_home.execute("INSERT INTO visit VALUES (1, 'Ada')", database="fresh")
    expect(rows(page).get_by_text("Ada").first).to_be_attached()
