"""The page of errors in a browser: what failed, in which phase, where in the log, and the way there."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import button
from tests.browser.running import RunningHome

pytestmark = pytest.mark.browser


def test_a_forced_error_shows_its_phase_and_lsn_and_leads_to_the_changes_before_it(
    open_page: Callable[..., Page], running_home: RunningHome
) -> None:
    dsn = running_home.new_source("broken", "CREATE TABLE word (id int PRIMARY KEY, v text)")
    running_home.run("enable", "-d", "broken", "public.word")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO word VALUES (1, 'no number')")
        running_home.sync("broken")
        connection.execute("ALTER TABLE word ALTER v TYPE int USING length(v)")

    page = open_page("/errors?db=broken&live=2s")
    expect(page.get_by_role("heading", name="Msg 22976, Level 16, State 1")).to_be_visible()
    expect(page.get_by_text("goes on").first).to_be_visible()
    expect(page.get_by_text("6 schema versioning").first).to_be_visible()
    expect(page.get_by_text("start_lsn 0x")).to_be_visible()
    expect(page.get_by_text("highwater disable -d broken public.word")).to_be_visible()
    page.get_by_role("link", name="changes before this LSN").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Changes")
    expect(page.get_by_text("1 change", exact=True)).to_be_visible()
    expect(button(page, "Clamp")).to_have_count(0)

    running_home.run("disable", "-d", "broken", "public.word")
    running_home.sync("broken")
    page = open_page("/errors?db=broken&live=2s")
    expect(page.get_by_text("No table of broken is captured yet")).to_have_count(0)
    expect(page.get_by_text("over").first).to_be_visible()
    running_home.run("disable", "-d", "broken")
    running_home.run("disconnect", "broken")
