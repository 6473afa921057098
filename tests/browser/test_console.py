"""The console in a browser: typed, run, cancelled, downloaded; two tabs are two sessions."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Locator, Page, TimeoutError, expect

from tests.browser.controls import SOON, button, expect_settled
from tests.browser.running import RunningHome
from tests.browser.tables import expect_row_count, rows

pytestmark = pytest.mark.browser
OpenPage = Callable[..., Page]


def type_script(page: Page, text: str) -> None:
    """Puts the text in the place of what the editor holds, once it knows its names: then it stands still."""
    page.locator(".sql-editor:not([data-words='0'])").wait_for()
    editor = page.get_by_role("textbox", name="T-SQL")
    editor.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)
    expect(editor).to_contain_text(text.splitlines()[-1])


def complete(page: Page, option: Locator) -> None:
    """Asks for completions; once more, as a user would, where they are not there at once."""
    page.keyboard.press("Control+Space")
    try:
        option.wait_for(timeout=SOON)
    except TimeoutError:
        page.keyboard.press("Control+Space")
    expect(option).to_be_visible()


def test_a_script_gives_results_and_messages_and_a_download_of_all(
    open_page: OpenPage, running_home: RunningHome, tmp_path: Path
) -> None:
    page = open_page("/console")
    order = "ROW_NUMBER() OVER (ORDER BY a.BusinessEntityID, b.BusinessEntityID)"
    tables = "HumanResources.Employee a CROSS JOIN HumanResources.Employee b"
    type_script(page, f"SELECT TOP 3000 {order} AS number FROM {tables}\nSELECT 1/0")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Msg 8134, Level 16, State 1, Line 2").first).to_be_visible()
    page.get_by_role("tab", name="Result 1").click()
    expect(page.get_by_text("3,000 rows; the first 1,000 are shown")).to_be_visible()
    expect_row_count(page, 1000)
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    download.value.save_as(tmp_path / "result.csv")
    with (tmp_path / "result.csv").open(newline="") as file:
        assert [line["number"] for line in csv.DictReader(file)] == [str(n) for n in range(1, 3001)]


def test_what_is_selected_runs_alone_and_a_procedure_call_can_be_inserted(open_page: OpenPage) -> None:
    page = open_page("/console")
    type_script(page, "PRINT 'the first'\nPRINT 'the second'")
    page.keyboard.press("Shift+Home")
    button(page, "Run selection").click()
    expect(page.get_by_text("the second", exact=True).last).to_be_visible()
    expect(page.get_by_test_id("stCode").filter(has_text="the first")).to_have_count(0)
    page.get_by_role("combobox", name="Insert a call").click()
    page.get_by_role("option", name="sp_cdc_help_jobs").click()
    expect(page.get_by_role("textbox", name="T-SQL")).to_contain_text("EXEC sys.sp_cdc_help_jobs;")


def test_a_running_script_is_cancelled_and_tabs_do_not_meet(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    page, other = open_page("/console"), open_page("/console")
    type_script(page, "BEGIN TRANSACTION\nWAITFOR DELAY '05:00:00'")
    button(page, "Run").click()
    expect(page.get_by_text("Running for")).to_be_visible()
    type_script(other, "SELECT @@TRANCOUNT AS open_transactions")
    button(other, "Run").click()
    other.get_by_role("tab", name="Result 1").click()
    expect(rows(other).first).to_have_text("0")
    page.get_by_role("button", name=re.compile("Cancel")).click()
    expect(page.get_by_text("Query was canceled by user.").first).to_be_visible()
    expect(button(page, "Run")).to_be_enabled()
    type_script(page, "SELECT @@TRANCOUNT AS open_transactions")
    button(page, "Run").click()
    # Streamlit's tabs now and then keep the one that was open before, whatever the default of new ones is.
    page.get_by_role("tab", name="Result 1").click()
    expect(rows(page).first).to_have_text("1")
    expect_settled(page)


SOCKETS = """
window.sockets = []
window.WebSocket = class extends WebSocket {
  constructor(address, protocols) {
    super(address, window.isForgotten ? protocols.slice(0, 2) : protocols)
    window.sockets.push(this)
  }
}
"""


def lose_connection(page: Page) -> None:
    """Returns once the page has a new connection to the server; its own script lists them."""
    page.evaluate("window.sockets.at(-1).close()")
    page.wait_for_function("window.sockets.length > 1 && window.sockets.at(-1).readyState === 1")
    expect_settled(page)


def drop(home: RunningHome, table: str) -> None:
    """Waits for the transaction that has the table; a session whose browser is away is kept for longer."""
    with psycopg.connect(home.dsn(), autocommit=True) as connection:
        connection.execute("SET lock_timeout = '100s'")
        connection.execute(f"DROP TABLE {table}".encode())


def test_a_transaction_outlasts_a_lost_connection(open_page: OpenPage) -> None:
    page = open_page("/console", script=SOCKETS)
    type_script(page, "BEGIN TRANSACTION\nSELECT @@TRANCOUNT AS open_transactions")
    button(page, "Run").click()
    expect(rows(page).first).to_have_text("1")
    lose_connection(page)
    expect(rows(page).first).to_have_text("1")
    type_script(page, "BEGIN TRANSACTION\nSELECT @@TRANCOUNT AS open_transactions")
    button(page, "Run").click()
    expect(rows(page).first).to_have_text("2")
    expect(page.get_by_text("This is a new session")).to_have_count(0)


def test_a_session_that_is_lost_is_told_and_its_statement_runs_only_once(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    running_home.execute("CREATE TABLE public.run_once (id int)")
    page = open_page("/console", script=SOCKETS)
    type_script(page, "BEGIN TRANSACTION\nINSERT public.run_once VALUES (1)")
    button(page, "Run").click()
    expect(page.get_by_text("(1 row affected)")).to_be_visible()
    page.evaluate("window.isForgotten = true")
    lose_connection(page)
    expect(page.get_by_text("This is a new session")).to_be_visible()
    type_script(page, "SELECT COUNT(*) AS inserted FROM public.run_once")
    button(page, "Run").click()
    expect(rows(page).first).to_have_text("0")
    expect(page.get_by_text("This is a new session")).to_have_count(0)
    drop(running_home, "public.run_once")


def test_a_closed_tab_ends_its_transaction(open_page: OpenPage, running_home: RunningHome) -> None:
    running_home.execute("CREATE TABLE public.left_open (id int)")
    page = open_page("/console")
    type_script(page, "BEGIN TRANSACTION\nINSERT public.left_open VALUES (1)")
    button(page, "Run").click()
    expect(page.get_by_text("(1 row affected)")).to_be_visible()
    page.close()
    drop(running_home, "public.left_open")


def test_names_are_completed_and_tab_leaves_the_editor(
    open_page: OpenPage, running_home: RunningHome
) -> None:
    page = open_page("/console")
    type_script(page, "EXEC sys.sp_cdc_")
    page.keyboard.type("help_j")
    complete(page, page.get_by_role("option", name="sys.sp_cdc_help_jobs"))
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(button(page, "Run")).to_be_focused()
