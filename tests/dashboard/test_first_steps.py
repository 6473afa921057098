"""What each page says before anything is captured, and the one next action that it offers."""

from __future__ import annotations

from collections.abc import Callable

from dashboard import state
from engine.engine import Engine
from tests.dashboard.conftest import PAGES, PATIENCE, Dashboard

Connect = Callable[[str], str]
TABLES = "CREATE TABLE department (id int PRIMARY KEY, name text); CREATE TABLE note (text text)"


def enabled_everything() -> None:
    """Waits until "Capture all tables" has ended."""
    operation = state.all_operations().get("enable_everything:hr")
    assert operation is not None
    assert operation.wait(PATIENCE)


OF_A_DATABASE = [page for page in PAGES if page != "collector"]
"""The collector is there before any database."""
OF_CAPTURED_TABLES = [page for page in OF_A_DATABASE if page != "history"]
"""What was collected stays when tables are disabled."""


def test_without_a_database_each_page_says_how_to_connect_one(dashboard: Dashboard) -> None:
    for page in OF_A_DATABASE:
        dashboard.open(page)
        assert "No database is connected yet" in dashboard.text, page
        assert "Connect" in dashboard.buttons
        assert "highwater connect " in dashboard.code


def test_a_database_is_connected_from_the_page(dashboard: Dashboard, engine: Engine, source_dsn: str) -> None:
    dashboard.open("tables")
    dashboard.test.text_input("connect_name").input(" hr ")
    dashboard.test.text_input("connect_dsn").input("postgresql://nobody@localhost:1/none?connect_timeout=1")
    dashboard.click("Connect")
    assert "Msg 50001" in dashboard.text
    assert engine.databases() == []
    dashboard.test.text_input("connect_dsn").input(source_dsn)
    dashboard.click("Connect")
    assert "No table of hr is captured yet" in dashboard.text
    assert "Msg" not in dashboard.text
    assert dashboard.test.selectbox("db").value == "hr"


def test_before_the_first_table_each_page_offers_to_capture_all_or_to_choose(
    dashboard: Dashboard, engine: Engine, connect: Connect
) -> None:
    connect(TABLES)
    for prepare in (lambda: None, lambda: engine.enable_db("hr")):
        prepare()
        for page in OF_CAPTURED_TABLES:
            dashboard.open(page)
            assert "No table of hr is captured yet" in dashboard.text, page
            assert {"Capture all tables", "Choose tables"} <= set(dashboard.buttons), page
            assert "Enable tables" not in dashboard.buttons
    dashboard.click("enable_all")
    enabled_everything()
    names = {instance.capture_instance for instance in engine.help_change_data_capture("hr")}
    assert names == {"public_department", "public_note"}
    for page in PAGES:
        dashboard.open(page)
        assert "No table of hr" not in dashboard.text, page
        assert "could not be enabled" not in dashboard.text


def test_a_database_without_tables_is_left_as_it_is(
    dashboard: Dashboard, engine: Engine, connect: Connect
) -> None:
    connect("SELECT 1")
    dashboard.open("overview")
    dashboard.click("enable_all")
    assert "no table that could be captured" in dashboard.text
    assert not engine.database("hr").is_cdc_enabled


def test_a_table_that_was_refused_is_named_until_that_was_seen(
    dashboard: Dashboard, engine: Engine, connect: Connect
) -> None:
    long = "x" * 60
    connect(f"{TABLES}; CREATE SCHEMA {long}; CREATE TABLE {long}.{long} (id int PRIMARY KEY)")
    dashboard.open("overview")
    dashboard.click("enable_all")
    enabled_everything()
    for page in ("overview", "tables"):
        dashboard.open(page)
        assert "1 table of hr could not be enabled" in dashboard.text
        assert f"{long}.{long}" in dashboard.text
    assert engine.database("hr").is_cdc_enabled
    dashboard.click("refused_seen")
    assert "could not be enabled" not in dashboard.text
