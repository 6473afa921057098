"""The page History in a browser: a range of one's own is in the address, and its CSV has what is drawn."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.charts import click_cell, drag, point_at
from tests.browser.controls import button, expect_settled, wait_for_ticks
from tests.browser.running import RunningHome

pytestmark = pytest.mark.browser


def test_a_range_of_ones_own_is_in_the_address_and_its_csv_has_what_is_drawn(
    open_page: Callable[..., Page], running_home: RunningHome, tmp_path: Path
) -> None:
    update = 'UPDATE "HumanResources"."Department" SET "GroupName" = \'History\' WHERE "DepartmentID" = 6'
    running_home.execute(update)
    running_home.run("collector", "collect-now")
    page = open_page("/history?h_range=now-1h&h_cmp=period+before")
    expect(page.get_by_role("figure", name="Transactions: at most")).to_be_visible()
    expect(page.get_by_text("in stretches of 10 s")).to_be_visible()
    field = page.get_by_role("combobox", name="Range")
    field.fill("now-2h")
    field.press("Enter")
    expect(page.get_by_text("in stretches of 30 s")).to_be_visible()
    page.wait_for_url("**h_range=now-2h**")
    expect_settled(page)
    with page.expect_download() as download:
        button(page, "CSV").click()
    download.value.save_as(tmp_path / "history.csv")
    with (tmp_path / "history.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["period"] for line in lines].count("earlier") == len(lines) / 2
    known = [float(line["transactions_per_second"]) for line in lines if line["transactions_per_second"]]
    assert 0 < len(known) < len(lines)
    assert max(known) > 0


def test_dragging_a_live_chart_sets_the_range_which_ticks_leave_and_back_takes_away(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/capture?live=2s")
    chart = page.get_by_role("figure").first
    drag(page, chart, 0.5, 0.9)
    page.wait_for_url(re.compile("range=20"))
    all_as_long = (
        "width => {"
        " const axes = [...document.querySelectorAll('.plot')].map(plot => plot.layout.xaxis.range);"
        " return axes.every(range => `${range}` === `${axes[0]}` && new Date(range[1]) - new Date(range[0])"
        " < width) && axes[0] }"
    )
    # Of the quarter of an hour two fifths were dragged over.
    dragged = page.wait_for_function(all_as_long, arg=600_000).json_value()
    wait_for_ticks(page, 5)
    page.wait_for_function(
        "([plot, was]) => `${plot.layout.xaxis.range}` === `${was}`", arg=[chart.element_handle(), dragged]
    )
    address = page.url
    drag(page, chart, 0.3, 0.6)
    expect(page).not_to_have_url(address)
    page.wait_for_function(all_as_long, arg=180_000)
    page.go_back()
    expect(page).to_have_url(address)
    page.wait_for_function(
        "([plot, was]) => `${plot.layout.xaxis.range}` === `${was}`", arg=[chart.element_handle(), dragged]
    )
    page.go_back()
    expect(page).not_to_have_url(re.compile("range="))
    page.wait_for_function(
        "([plot, was]) => plot.layout.xaxis.range[0] !== was", arg=[chart.element_handle(), dragged[0]]
    )


def test_the_scale_of_latency_is_in_the_address_and_stays_at_ticks(open_page: Callable[..., Page]) -> None:
    page = open_page("/capture?live=2s")
    chart = page.get_by_role("figure", name=re.compile("^Latency"))
    expect(chart.locator(".nsewdrag").first).to_be_attached()
    drawn = "([plot, wanted]) => plot._fullLayout.yaxis.type === wanted"
    for scale in ("log", "linear"):
        page.get_by_role("radio", name=scale, exact=True).click()
        page.wait_for_url(f"**k_scale={scale}**")
        page.wait_for_function(drawn, arg=[chart.element_handle(), scale])
    wait_for_ticks(page, 2)
    page.wait_for_function(drawn, arg=[chart.element_handle(), "linear"])


def test_what_was_changed_is_marked_and_listed(
    open_page: Callable[..., Page], running_home: RunningHome
) -> None:
    running_home.run("jobs", "change", "cleanup", "-d", "demo", "--retention", "4321")
    running_home.run("collector", "collect-now")
    page = open_page("/history?h_range=now-1h&live=paused")
    chart = page.get_by_role("figure", name=re.compile("^Transactions: .* configuration change"))
    point_at(chart, "configuration")
    expect(chart.locator(".hoverlayer").get_by_text("retention = 4321")).to_be_attached()
    page.get_by_text("What happened meanwhile").click()
    expect(page.get_by_text(re.compile("retention = 4321")).first).to_be_attached()


def test_a_cell_of_the_heat_map_leads_to_the_changes_of_its_table_and_time(
    open_page: Callable[..., Page], running_home: RunningHome
) -> None:
    running_home.run("collector", "collect-now")
    update = 'UPDATE "HumanResources"."Department" SET "GroupName" = \'Heat\' WHERE "DepartmentID" = 7'
    running_home.execute(update)
    running_home.run("collector", "collect-now")
    page = open_page("/history?h_range=now-10m&live=paused")
    chart = page.get_by_role("figure", name=re.compile("^Rows captured by table and time"))
    expect(page.get_by_role("figure")).to_have_count(7)
    expect_settled(page)
    click_cell(chart, "HumanResources_Department")
    expect(page.get_by_role("heading", level=1)).to_have_text("Changes")
    expect(page).to_have_url(re.compile("c_by=Range&c_from="))
    expect(page.get_by_text(", newest first").first).to_be_visible()
    expect(button(page, "Clamp")).to_have_count(0)


def test_the_tuner_says_what_other_parameters_would_have_done(
    open_page: Callable[..., Page], running_home: RunningHome
) -> None:
    page = open_page("/capture?live=2s")
    page.get_by_text("Tuner: what would other parameters have done?").click()
    expect(page.get_by_text("A model, not a replay")).to_be_visible()
    expect(page.get_by_role("cell", name="recommended").first).to_be_visible()
