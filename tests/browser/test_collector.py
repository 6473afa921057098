"""The page Collector in a browser: a snapshot on demand, and a stop that says what it leaves."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from engine.collector.schedules import SCHEDULES
from engine.engine import Engine
from engine.model.collection import DEFAULT_SET
from engine.settings import Settings
from tests.browser.controls import button, confirm, press
from tests.browser.drawing import at, drawn
from tests.browser.running import RunningHome

pytestmark = pytest.mark.browser


def test_a_stop_leaves_a_grey_gap_that_no_line_crosses(
    open_page: Callable[..., Page], running_home: RunningHome
) -> None:
    engine = Engine.open(Settings(home=running_home.folder))
    before = engine.collection_runs(DEFAULT_SET, 1)[0]
    page = open_page("/collector?live=2s&range=1h")
    expect(page.get_by_text("History is not collected: the set is stopped")).to_be_visible()
    snapshots = page.get_by_role("figure", name=re.compile("0 failed, 1 gap"))
    expect(snapshots).to_be_visible()  # a snapshot is missing once one and a half minutes have gone
    engine.update_collection_set(DEFAULT_SET, schedule=SCHEDULES[0].name)
    press(button(page, "Start"), page.get_by_role("dialog"))
    confirm(page, "Start")
    expect(page.get_by_text("History is collected")).to_be_visible()
    after = engine.collection_runs(DEFAULT_SET, 1)[0]
    engine.close()
    assert after.snapshot_id > before.snapshot_id
    gap = (at(before.snapshot_time), at(after.snapshot_time))
    assert drawn(snapshots).bands() == [gap]

    page = open_page("/history?h_range=now-1h&live=paused")
    expect(page.get_by_text(re.compile("1 gap, shown grey"))).to_be_visible()
    held = drawn(page.get_by_role("figure", name=re.compile("^Log held, most: at most")))
    assert held.bands() == [gap]
    assert [piece for piece in held.pieces if piece[0] < before.snapshot_time < piece[-1]] == []
    assert held.pieces[-1][0] > before.snapshot_time


def test_a_snapshot_is_taken_on_demand_and_a_stop_says_that_nothing_is_collected(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/collector?live=2s")
    expect(button(page, "Collect now")).to_be_enabled()
    button(page, "Collect now").click()
    expect(page.get_by_text("was taken on demand")).to_be_visible()
    expect(page.get_by_text("cdc_log_scan_data").first).to_be_attached()
    button(page, "Stop").click()
    expect(page.get_by_role("dialog").get_by_text("sp_syscollector_stop_collection_set")).to_be_visible()
    confirm(page, "Stop")
    expect(page.get_by_text("the set is stopped")).to_be_visible()
    press(button(page, "Start"), page.get_by_role("dialog"))
    confirm(page, "Start")
    expect(page.get_by_text("History is collected")).to_be_visible()
