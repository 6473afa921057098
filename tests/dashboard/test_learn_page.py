"""The page Learn where the tour may not be taken, and where it may."""

from __future__ import annotations

from collections.abc import Callable

from engine.demo import install
from engine.engine import Engine
from tests.dashboard.conftest import Dashboard


def test_without_a_database_it_says_how_to_connect_one(dashboard: Dashboard) -> None:
    dashboard.open("learn")
    assert "No database is connected yet" in dashboard.text


def test_somebodys_database_is_left_alone_and_a_demo_gets_the_tour(
    dashboard: Dashboard, engine: Engine, connect: Callable[[str], str], source_dsn: str
) -> None:
    connect("CREATE TABLE note (id int PRIMARY KEY)")
    dashboard.open("learn")
    assert "hr** is not a demo database" in dashboard.text
    assert "highwater demo -d hr" in dashboard.code
    assert not [name for name in dashboard.buttons if "table" in name]
    install(source_dsn)
    engine.disconnect("hr")
    engine.connect("company", source_dsn)
    dashboard.open("learn")
    assert "1 of 9" in dashboard.text
    assert "Create and enable the table" in dashboard.buttons
    assert "EXEC sys.sp_cdc_enable_table" in dashboard.code
