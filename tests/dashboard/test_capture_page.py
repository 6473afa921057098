"""The capture job on its page: tuned, dropped, added again."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from engine.engine import Engine
from engine.errors import SourceUnreachable
from engine.model.job import CaptureParameters, is_capture
from engine.sources.base import SourceTable
from tests.dashboard.conftest import PAGES, PATIENCE, Dashboard


@pytest.fixture
def tracked(engine: Engine, connect: Callable[[str], str]) -> str:
    """A database with a tracked table; no agent has read its log yet."""
    name = connect(
        "CREATE TABLE department (id int PRIMARY KEY, name text);"
        "CREATE TABLE room (id int PRIMARY KEY, name text NOT NULL UNIQUE)"
    )
    engine.enable_db(name)
    engine.enable_table(name, "public", "department", role_name=None)
    return name


def configured(engine: Engine) -> CaptureParameters:
    (job,) = filter(is_capture, engine.help_jobs("hr"))
    return job.configured


def test_what_the_fields_hold_is_saved_even_where_no_run_has_drawn_it(
    tracked: str, dashboard: Dashboard, engine: Engine
) -> None:
    dashboard.open("capture")
    assert dashboard.test.button("k_save").disabled
    dashboard.field("k_maxtrans").set_value(700)
    dashboard.run()
    assert not dashboard.test.button("k_save").disabled
    dashboard.field("k_maxscans").set_value(3)
    dashboard.field("k_pollinginterval").set_value(2)
    dashboard.click("k_save")
    assert configured(engine) == CaptureParameters(maxtrans=700, maxscans=3, pollinginterval=2)
    assert dashboard.test.toast[0].value.startswith("Saved.")
    assert dashboard.test.button("k_save").disabled

    dashboard.field("k_continuous").set_value(False)
    dashboard.run()
    assert dashboard.test.number_input("k_no_pollinginterval").disabled
    dashboard.click("k_save")
    assert configured(engine) == CaptureParameters(700, 3, continuous=False, pollinginterval=0)


def test_the_fields_follow_what_others_configure(tracked: str, dashboard: Dashboard, engine: Engine) -> None:
    dashboard.open("capture")
    dashboard.field("k_maxtrans").set_value(700)
    dashboard.run()
    engine.change_job("hr", maxtrans=900, pollinginterval=60)
    dashboard.run()
    assert dashboard.field("k_maxtrans").value == 900
    assert dashboard.field("k_pollinginterval").value == 60
    assert dashboard.test.button("k_save").disabled
    dashboard.field("k_maxtrans").set_value(700)
    dashboard.run()
    dashboard.open("overview")
    dashboard.open("capture")  # what was typed and not saved is gone, what is configured is there
    assert dashboard.field("k_maxtrans").value == 900
    assert dashboard.field("k_pollinginterval").value == 60


def test_without_its_job_every_page_stands_and_one_adds_it_again(
    tracked: str, dashboard: Dashboard, engine: Engine
) -> None:
    engine.drop_job("hr", "capture")
    for page in PAGES:
        dashboard.open(page)
        assert "No table of hr" not in dashboard.text
    dashboard.open("capture")
    assert "hr has no capture job" in dashboard.text
    assert "EXEC sys.sp_cdc_add_job @job_type = N'capture';" in dashboard.code
    dashboard.click("k_add_job")
    assert "no capture job" not in dashboard.text
    assert configured(engine) == CaptureParameters()

    dashboard.field("k_maxtrans").set_value(700)
    dashboard.run()
    engine.drop_job("hr", "capture")
    dashboard.click("k_save")  # that another has dropped it is said, and no more comes of it
    assert "hr has no capture job" in dashboard.text
    assert [job.name for job in engine.help_jobs("hr")] == ["cdc.hr_cleanup"]

    engine.add_job("hr", "capture", maxtrans=3)
    dashboard.click("k_add_job")  # nor of adding one that another has added
    assert configured(engine) == CaptureParameters(maxtrans=3)


def test_an_instance_that_capture_has_not_met_yet_can_be_looked_at(
    tracked: str, dashboard: Dashboard
) -> None:
    dashboard.open("changes")
    assert "capture has not reached this instance in the log" in dashboard.text
    dashboard.open("tables")
    assert "public_department" in dashboard.text
    dashboard.open("overview")
    assert "No changes yet" in dashboard.text


def test_back_in_the_wizard_keeps_what_was_entered(tracked: str, dashboard: Dashboard) -> None:
    dashboard.open("tables")
    dashboard.click("t_enable")
    dashboard.test.multiselect("wizard_tables").set_value(["public.room"])
    dashboard.run()
    dashboard.click("wizard_next")
    dashboard.test.text_input("wizard_role").input("readers")
    index = next(box for box in dashboard.test.selectbox if box.label == "Row identifier")
    index.set_value("room_name_key")
    name = next(box for box in dashboard.test.text_input if box.label == "Capture instance")
    name.input("rooms")
    dashboard.click("wizard_next")  # to the review, in one request with the last edit
    assert "@capture_instance = N'rooms'" in dashboard.code
    dashboard.click("wizard_back")
    dashboard.click("wizard_next")
    for argument in ("@capture_instance = N'rooms'", "@role_name = N'readers'", "@index_name = N'room_name"):
        assert argument in dashboard.code


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("now-3h … now-2h", ""),
        ("yesterday", "'yesterday' is not a time"),
        ("now-3d", "what was before is on the page History"),
    ],
)
def test_a_range_that_charts_cannot_span_is_said(tracked: str, typed: str, said: str) -> None:
    dashboard = Dashboard(range=typed)
    dashboard.open("capture")
    assert said in dashboard.text
    assert ("Charts show the last 15m" in dashboard.text) == bool(said)


def test_a_page_has_the_controls_that_mean_something_there(tracked: str, dashboard: Dashboard) -> None:
    found = {}
    for page in ("capture", "history", "changes", "collector", "settings", "learn"):
        dashboard.open(page)
        found[page] = {box.key for box in dashboard.test.selectbox} & {"db", "range", "tz", "live"}
    assert found == {
        "capture": {"db", "range", "tz", "live"},
        "history": {"db", "tz", "live"},
        "changes": {"db", "tz", "live"},
        "collector": {"range", "tz", "live"},
        "settings": {"live"},
        "learn": {"db", "live"},
    }


def test_the_wizard_waits_for_a_slow_source_without_holding_up_the_page(
    tracked: str, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on, read = threading.Event(), Engine.source_tables

    def slow(engine: Engine, database: str) -> list[SourceTable]:
        assert may_go_on.wait(PATIENCE)
        return read(engine, database)

    monkeypatch.setattr(Engine, "source_tables", slow)
    dashboard.open("tables")
    dashboard.click("t_enable")
    assert not dashboard.test.multiselect
    may_go_on.set()
    dashboard.wait()
    assert dashboard.test.multiselect("wizard_tables").options == ["public.room (2 columns)"]


def test_the_wizard_says_why_the_source_cannot_be_read(
    tracked: str, dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_engine: Engine, database: str) -> list[SourceTable]:
        raise SourceUnreachable(database, "it rests")

    monkeypatch.setattr(Engine, "source_tables", fail)
    dashboard.open("tables")
    dashboard.click("t_enable")
    dashboard.wait()
    assert "while reading the tables of hr" in dashboard.text
    assert "it rests" in dashboard.text
