"""The page Cleanup in a browser: what a preview says is what then goes, and nothing goes without its name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from engine.engine import Engine
from engine.settings import Settings
from tests.browser.controls import button, confirm
from tests.browser.running import RunningHome

pytestmark = pytest.mark.browser


def test_a_preview_is_what_then_goes_once_the_name_is_typed(
    open_page: Callable[..., Page], running_home: RunningHome
) -> None:
    running_home.new_source("tidy", "CREATE TABLE word (id int PRIMARY KEY)")
    running_home.run("enable", "-d", "tidy", "public.word")
    words = ("INSERT INTO word VALUES (1), (2), (3)", "INSERT INTO word VALUES (4)")
    running_home.execute(*words, database="tidy")
    engine = Engine.open(Settings(home=running_home.folder))
    newest = engine.newest_changes("tidy", 1, "public_word")
    engine.close()
    assert newest is not None
    low = newest["public_word"]["__$start_lsn"].to_pylist()[-1]

    page = open_page("/cleanup?db=tidy&live=2s")
    expect(page.get_by_text("Nothing would go")).to_be_visible()
    button(page, "Run now").click()
    dialog = page.get_by_role("dialog")
    expect(button(dialog, "Run")).to_be_disabled()
    dialog.get_by_role("textbox").fill("tidy")
    expect(button(dialog, "Run")).to_be_enabled()
    confirm(page, "Run")
    expect(page.get_by_text("Deleted 0 rows below").first).to_be_visible()
    expect(page.get_by_text("Effect of the run of").first).to_be_visible()

    button(page, "Clean up one instance").click()
    field = dialog.get_by_role("textbox", name="New low watermark")
    field.fill(low)
    field.press("Enter")
    expect(dialog.get_by_text("3 rows would go in 1 statement")).to_be_visible()
    expect(dialog.get_by_text("sp_cdc_cleanup_change_table").first).to_be_visible()
    expect(button(dialog, "Clean up")).to_be_disabled()
    dialog.get_by_role("textbox", name="to confirm").fill("public_word")
    expect(button(dialog, "Clean up")).to_be_enabled()
    confirm(page, "Clean up")
    expect(page.get_by_text("Cleanup of public_word: 3 rows deleted below")).to_be_visible()
    running_home.run("disable", "-d", "tidy")
    running_home.run("disconnect", "tidy")
