"""The page Schema in a browser: from ADD COLUMN to a capture instance that has it, without a lost change."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.controls import button, confirm
from tests.browser.running import RunningHome
from tests.browser.tables import expect_row_count, rows

pytestmark = pytest.mark.browser


def results(home: RunningHome, script: str) -> list[list[dict[str, object]]]:
    """The result sets of a T-SQL script, rows as dictionaries."""
    lines = [
        json.loads(line)
        for line in home.run("sql", "-d", "moving", "--format", "json", "-q", script).splitlines()
    ]
    sets = [line for line in lines if line["type"] == "resultset"]
    return [
        [dict(zip((c["name"] for c in each["columns"]), row, strict=True)) for row in each["rows"]]
        for each in sets
    ]


def test_an_added_column_is_listed_and_the_wizard_ends_with_one_instance_and_no_lost_change(
    open_page: Callable[..., Page], running_home: RunningHome
) -> None:
    running_home.new_source("moving", "CREATE TABLE item (id int PRIMARY KEY)")
    running_home.run("enable", "-d", "moving", "public.item")
    running_home.run("client", "register", "warehouse", "-d", "moving", "-c", "public_item")
    added = "ALTER TABLE item ADD COLUMN colour text"
    running_home.execute("INSERT INTO item VALUES (1)", added, database="moving")

    page = open_page("/schema?db=moving&live=2s")
    expect(rows(page).filter(has_text=added)).to_be_attached()
    expect_row_count(page, 1)
    expect(page.get_by_role("cell", name="colour text").first).to_be_visible()
    running_home.execute("INSERT INTO item VALUES (2, 'red')", database="moving")
    button(page, "Create the second instance").click()
    expect(page.get_by_text("Both can be asked from")).to_be_visible()

    page = open_page("/schema?db=moving&s_table=public.item&live=2s")  # somebody else goes on with it
    running_home.execute("INSERT INTO item VALUES (3, 'green')", database="moving")
    page.get_by_text("Statements for a consumer").click()
    text = page.get_by_test_id("stCode").filter(has_text="USE [moving]").first.inner_text()
    last = "sys.fn_cdc_decrement_lsn(sys.fn_cdc_get_min_lsn('public_item'))"
    first, *_ = results(running_home, text.replace("0x00000000000000000000", last))
    assert [row["id"] for row in first] == [1, 2, 3]

    drop = button(page, "Drop public_item")
    expect(drop).to_be_disabled()
    page.get_by_text("Every consumer that is not registered has read public_item up to").click()
    expect(page.get_by_role("cell", name="reads on in the old instance")).to_be_visible()
    expect(drop).to_be_disabled()
    running_home.run(
        "client", "ack", "warehouse", str(first[-1]["__$start_lsn"]), "-d", "moving", "-c", "public_item"
    )
    expect(page.get_by_role("cell", name="may change over")).to_be_visible()
    expect(drop).to_be_enabled()
    drop.click()
    dialog = page.get_by_role("dialog")
    expect(button(dialog, "Disable")).to_be_disabled()
    dialog.get_by_role("textbox").fill("public_item")
    expect(button(dialog, "Disable")).to_be_enabled()
    confirm(page, "Disable")
    expect(page.get_by_text("public_item_v2 is the only instance")).to_be_visible()

    running_home.execute("INSERT INTO item VALUES (4, 'blue')", database="moving")
    after = f"""DECLARE @from binary(10) = sys.fn_cdc_increment_lsn({first[-1]["__$start_lsn"]})
        SELECT * FROM cdc.fn_cdc_get_all_changes_public_item_v2(@from, sys.fn_cdc_get_max_lsn(), N'all')"""
    [rest] = results(running_home, after)
    assert [(row["id"], row["colour"]) for row in rest] == [(4, "blue")]
    running_home.run("disable", "-d", "moving")
    running_home.run("disconnect", "moving")
