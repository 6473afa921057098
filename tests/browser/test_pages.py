"""Each page in a real browser, light and dark, with real changes; what a DBA does first."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Locator, Page, expect

from engine.engine import Engine
from engine.settings import Settings
from tests.browser.charts import click_point
from tests.browser.controls import button, confirm, dismiss, expect_settled, press, wait_for_ticks
from tests.browser.running import DEMO, RunningHome
from tests.browser.tables import cells, expect_row_count, rows, select, table, texts

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
UPDATE = 'UPDATE "HumanResources"."Department" SET "GroupName" = \'{}\' WHERE "DepartmentID" = {}'


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/", "Latest changes"),
        ("/tables", "Enable tables"),
        ("/changes", "newest first"),
        ("/capture", "Scan sessions"),
        ("/cleanup", "Work out again"),
        ("/collector", "Collected into"),
        ("/history", "Compare with"),
        ("/errors", "No errors of demo"),
        ("/console", "Statements mean database"),
        ("/activity", "Everything that changes something"),
        ("/settings", "Users and roles"),
        ("/schema", "Every instance captures its table as it is"),
    ],
)
def test_each_page_draws_itself_in_both_themes(open_page: OpenPage, path: str, seen: str, theme: str) -> None:
    page = open_page(path, theme)
    expect(page.get_by_text(seen).first).to_be_visible()
    expect_settled(page)
    expect(page.get_by_role("heading", level=1)).to_have_text(path.strip("/").capitalize() or "Overview")
    page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_overview_says_healthy_and_shows_the_newest_change(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    running_home.execute(UPDATE.format("Overview Test", 1))
    page = open_page("/?live=2s")
    expect(page.get_by_role("heading", name=re.compile("Healthy"))).to_be_visible()
    expect(rows(page).filter(has_text="Overview Test").first).to_be_attached()


def test_on_a_telephone_the_verdict_is_seen_first_and_nothing_lies_beside_the_screen(
    open_page: OpenPage,
) -> None:
    page = open_page("/?live=paused", width=390, height=844)
    verdict = page.get_by_role("heading", level=2).first
    expect(verdict).to_contain_text(re.compile("Healthy|Attention|Failing"))
    expect(verdict).to_be_in_viewport(ratio=1)
    first = page.get_by_test_id("stMetric").first.bounding_box()
    seen = verdict.bounding_box()
    assert first is not None
    assert seen is not None
    assert seen["y"] < first["y"]
    expect(page.locator(".plot .main-svg").first).to_be_attached()
    widths = "document.querySelector('[data-testid=stMain]').scrollWidth <= window.innerWidth"
    page.wait_for_function(f"document.documentElement.scrollWidth <= window.innerWidth && {widths}")


def test_two_browsers_have_filters_of_their_own_over_the_same_state(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    running_home.execute(UPDATE.format("Two", 8))
    ours = open_page("/changes?c_ci=HumanResources_Department&c_op=update")
    theirs = open_page("/changes?c_ci=HumanResources_Department&c_key=8")
    expect(ours.get_by_text("operation update")).to_be_visible()
    expect(theirs.get_by_text("key 8")).to_be_visible()
    running_home.execute(UPDATE.format("Both see it", 8))
    for page in (ours, theirs):
        button(page, "Newer changes").click()
        expect(rows(page).first).to_contain_text("Both see it")
    expect(theirs.get_by_text("operation update")).to_have_count(0)


def test_an_update_shows_old_and_new_and_its_bits(open_page: OpenPage, running_home: RunningHome) -> None:
    running_home.execute(UPDATE.format("Before", 2), UPDATE.format("After", 2))
    page = open_page("/changes?c_ci=HumanResources_Department")
    newest = rows(page).first
    expect(cells(newest).first).to_have_text("› update")
    expect(cells(newest).get_by_text("Before → After", exact=True)).to_be_attached()
    select(page, newest)
    page.get_by_role("tab", name="Mask").click()
    expect(page.get_by_text("0x04")).to_be_visible()


def test_a_change_leads_to_its_transaction_and_to_what_else_befell_its_row(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    together = [UPDATE.format("Second", 9), UPDATE.format("Beside it", 10)]
    running_home.execute(UPDATE.format("First", 9), "; ".join(["BEGIN", *together, "COMMIT"]))
    page = open_page("/changes?c_ci=HumanResources_Department&live=paused")
    expect(rows(page).first).to_contain_text("Beside it")
    select(page, rows(page).nth(1))
    page.get_by_role("tab", name="Transaction").click()
    order = page.get_by_role("figure", name="A transaction of 2 changes in engine order")
    expect(order.locator(".main-svg").first).to_be_attached()
    expect(page.get_by_text(re.compile(r"committed .* → captured .*\(\+"))).to_be_visible()
    page.get_by_role("tab", name="Row").click()
    drawer = page.locator(".st-key-drawer")
    expect(drawer.get_by_text(re.compile("changes? of this row in the validity"))).to_be_visible()
    expect(drawer.locator("tbody [role=row]").nth(1)).to_contain_text("First")
    press(button(page, "Show only this row"), page.get_by_text("key DepartmentID=9"))
    expect(cells(rows(page).nth(1)).get_by_text("→ First")).to_be_attached()


def test_a_change_leads_to_the_table_as_of_its_lsn(
    open_page: OpenPage, running_home: RunningHome, tmp_path: Path
) -> None:
    running_home.execute(UPDATE.format("As it was", 11), UPDATE.format("As it is", 11))
    page = open_page("/changes?c_ci=HumanResources_Department&live=paused")
    expect(rows(page).first).to_contain_text("As it is")
    select(page, rows(page).nth(1))
    page.get_by_role("tab", name="As of").click()
    drawer = page.locator(".st-key-drawer")
    press(button(drawer, "Table as of this LSN"), drawer.get_by_text(re.compile("16 rows as of")))
    expect(drawer.locator("tbody [role=row]").filter(has_text="As it was")).to_have_count(1)
    expect(drawer.locator("tbody [role=row]").filter(has_text="As it is")).to_have_count(0)
    with page.expect_download() as download:
        button(drawer, "Parquet").click()
    download.value.save_as(tmp_path / "rows.parquet")
    saved = {
        row["DepartmentID"]: row["GroupName"] for row in pq.read_table(tmp_path / "rows.parquet").to_pylist()
    }
    assert (len(saved), saved[11]) == (16, "As it was")
    drawer.get_by_label("Key").fill("11")
    drawer.get_by_label("Key").press("Enter")
    press(button(drawer, "Table as of this LSN"), drawer.get_by_text(re.compile("1 row as of")))


def test_the_mask_matrix_shows_the_bits_and_opens_a_change(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    running_home.execute(UPDATE.format("Masked", 11))
    page = open_page("/changes?c_ci=HumanResources_Department&c_view=Mask%20matrix&live=paused")
    matrix = page.get_by_role("figure", name=re.compile("Masks of .* changes; of the updates set: GroupName"))
    expect(matrix.locator(".main-svg").first).to_be_attached()
    click_point(matrix, 1)
    expect(page.locator(".st-key-drawer").get_by_text("Masked").first).to_be_visible()


def test_a_bad_range_warns_before_the_query_and_can_be_clamped(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    running_home.execute(UPDATE.format("Within", 5))
    page = open_page("/changes?c_ci=HumanResources_Department&c_by=Range&c_from=0x00000000000000000001")
    expect(page.get_by_text("Msg 313")).to_be_visible()
    expect_settled(page)
    expect(table(page)).to_have_count(0)
    button(page, "Clamp").click()
    expect(table(page)).to_be_visible()
    expect(page.get_by_text("Msg 313")).to_have_count(0)


def test_a_copied_link_shows_the_same_rows(open_page: OpenPage, running_home: RunningHome) -> None:
    running_home.execute(UPDATE.format("Linked", 3))
    page = open_page("/changes?c_ci=HumanResources_Department&c_op=update")
    expect(rows(page).first).to_contain_text("Linked")
    page.get_by_role("button", name="Copy as").click()
    link = page.get_by_text(re.compile(r"http://.*c_from=0x.*c_to=0x[0-9A-F]{20}")).inner_text()
    shown = texts(page)
    running_home.execute(UPDATE.format("Later", 3))
    linked = open_page(link.removeprefix(running_home.url))
    expect(linked.get_by_text("operation update")).to_be_visible()
    for number, said in enumerate(shown):
        expect(cells(rows(linked).nth(number))).to_have_text(said)
    count = table(page).locator("table").get_attribute("aria-rowcount")
    expect(table(linked).locator("table")).to_have_attribute("aria-rowcount", str(count))


def test_a_download_has_a_line_for_each_row(
    open_page: OpenPage, running_home: RunningHome, tmp_path: Path
) -> None:
    running_home.execute(*(UPDATE.format(f"Row {n}", 4) for n in range(5)))
    page = open_page("/changes?c_ci=HumanResources_Department&c_n=50")
    button(page, "Download").click()
    saved = prepared(page, "CSV", tmp_path)
    with saved.open(newline="") as file:
        lines = list(csv.DictReader(file))
    codes = [line["__$operation"] for line in lines]
    assert set(codes) <= {"1", "2", "3", "4"}
    expect_row_count(page, len(lines) - codes.count("3"))  # an update is one row on the page
    saved = prepared(page, "Parquet", tmp_path)
    assert pq.read_table(saved)["__$operation"].to_pylist() == [int(code) for code in codes]


def prepared(page: Page, form: str, folder: Path) -> Path:
    """Has the file of the whole query made, and saves it."""
    extension = {"CSV": "csv", "Parquet": "parquet"}[form]
    button(page, f"Prepare {form}").click()
    save = page.get_by_role("link", name=re.compile(rf"Save .*\.{extension}$"))
    with page.expect_download() as download:
        save.click()
    download.value.save_as(folder / download.value.suggested_filename)
    return folder / download.value.suggested_filename


def test_a_change_of_a_large_transaction_is_found_again_by_its_link(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    """Its drawer counts what the transaction changed beyond what it lists."""
    all_rows = """UPDATE "HumanResources"."Department" SET "GroupName" = 'Round {}'"""
    running_home.execute("; ".join(["BEGIN", *(all_rows.format(n) for n in range(70)), "COMMIT"]))
    page = open_page("/changes?c_ci=HumanResources_Department&c_n=1000&live=paused")
    expect(rows(page).first).to_contain_text("Round 69")
    button(page, "Older page").click()
    expect(page.get_by_text("page 2", exact=True)).to_be_visible()
    row = rows(page).nth(3)
    said = cells(row).nth(3).inner_text()
    select(page, row)
    drawer = page.locator(".st-key-drawer")
    drawer.get_by_role("tab", name="Transaction").click()
    expect(drawer.get_by_text("The last 1,000 of 1,120 changes")).to_be_visible()
    expect(drawer.get_by_role("link", name="HumanResources_Department")).to_be_visible()
    drawer.get_by_role("tab", name="Where").click()
    link = drawer.get_by_text(re.compile(r"http://.*c_sel=0x")).inner_text()
    place = re.search(r"c_sel=(0x\w{20}-0x\w{20})", link)
    assert place is not None
    expect(page).to_have_url(re.compile(place[1]))
    change = drawer.get_by_role("heading").inner_text(), drawer.locator("code").first.inner_text()

    linked = open_page(link.removeprefix(running_home.url))
    found = linked.locator(".st-key-drawer")
    expect(found.get_by_role("heading")).to_have_text(change[0])
    expect(found.locator("code").first).to_have_text(change[1])
    expect(rows(linked).nth(3)).to_have_attribute("aria-selected", "true")
    expect(cells(rows(linked).nth(3)).nth(3)).to_have_text(said)


def choose_table(page: Page, name: str) -> None:
    """In the wizard's first step, its list in focus: types the name, and chooses it once it alone is left."""
    page.keyboard.type(name)
    expect(page.get_by_role("option")).to_have_count(1)
    expect(page.get_by_role("option")).to_contain_text(f"{name} (")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_text(f"{name} (")).to_be_visible()
    page.keyboard.press("Tab")
    expect(button(page, "Next")).to_be_enabled()


def test_the_wizard_enables_a_table_and_disabling_needs_its_name(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    page, name = open_page("/tables"), "Sales_Customer"
    button(page, "Enable tables").click()
    page.get_by_role("combobox", name="Tables to capture").click()
    choose_table(page, "Sales.Customer")
    button(page, "Next").click()
    # Streamlit draws a text box empty first and its value a moment later.
    expect(page.get_by_role("textbox", name="Capture instance")).to_have_value(name)
    button(page, "Review").click()
    expect(page.get_by_text("sp_cdc_enable_table").first).to_be_visible()
    button(page, "Run").click()
    expect(page.get_by_text("1 table enabled")).to_be_visible()
    confirm(page, "Close")

    row = rows(page).filter(has_text=name)
    expect(row).to_be_attached()
    select(page, row)
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    button(page, "Disable").click()
    dialog = page.get_by_role("dialog")
    expect(button(dialog, "Disable")).to_be_disabled()
    dialog.get_by_role("textbox").fill(name)
    expect(button(dialog, "Disable")).to_be_enabled()
    confirm(page, "Disable")
    expect(row).to_have_count(0)
    expect(rows(page).first).to_be_attached()


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
    choose_table(page, "Production.ProductInventory")
    for step in ("Next", "Review"):
        expect(button(page, step)).to_be_enabled()
        focus_by_tab(page, button(page, step))
        button(page, step).press("Space")
    focus_by_tab(page, button(page, "Run"))
    button(page, "Run").press("Enter")
    expect(page.get_by_text("1 table enabled")).to_be_visible()
    focus_by_tab(page, button(dialog, "Close").last)
    button(dialog, "Close").last.press("Enter")
    expect(dialog).to_have_count(0)
    expect(rows(page).filter(has_text="Production_ProductInventory")).to_be_attached()
    running_home.run("disable", "-d", DEMO, "Production.ProductInventory")


def type_number(page: Page, label: str, number: int) -> None:
    """Types a number into its field and Enter; returns when the field holds it."""
    field = page.get_by_label(label)
    field.fill(str(number))
    field.press("Enter")
    expect(field).to_have_value(str(number))


def test_stop_and_start_and_a_parameter_that_waits_for_a_restart(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    page = open_page("/capture?live=2s")
    page.get_by_text("Change parameters").click()
    type_number(page, "maxtrans", 700)
    button(page, "Save").click()
    expect(page.get_by_text("takes effect after restart").first).to_be_visible()
    ceiling = page.get_by_role("figure", name=re.compile("^Captured transactions per second"))
    expect(ceiling).to_have_accessible_name(re.compile("ceiling 1,000 tran/s"))
    button(page, "Restart now").click()
    confirm(page, "Restart")
    expect(page.get_by_text("takes effect after restart")).to_have_count(0)
    expect(ceiling).to_have_accessible_name(re.compile("ceiling 1,400 tran/s"))

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
        dismiss(page)


def test_a_dialog_that_ticks_pass_by_still_does_what_it_says(open_page: OpenPage) -> None:
    page = open_page("/capture?live=2s")
    since = page.get_by_text("since 20")
    expect(since).to_contain_text("at most")  # what it runs with: it is no longer starting
    running_since = since.inner_text().split(" (")[0]
    button(page, "Restart").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    wait_for_ticks(page, 2)
    confirm(page, "Restart")
    expect(since).not_to_contain_text(running_since)
    expect(button(page, "Stop")).to_be_enabled()


def test_the_first_minute_from_a_new_database_to_its_first_change(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    running_home.new_source("fresh", "CREATE TABLE visit (id int PRIMARY KEY, guest text)")

    page = open_page("/?db=fresh&live=2s")
    button(page, "Capture all tables").click()
    expect(page.get_by_text("No changes yet")).to_be_visible()
    running_home.execute("INSERT INTO visit VALUES (1, 'Ada')", database="fresh")
    expect(rows(page).filter(has_text="Ada").first).to_be_attached()
