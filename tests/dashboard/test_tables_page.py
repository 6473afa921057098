"""The page Tables: found among many, how far back each can be asked, how large it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.components.table_list import matching
from engine.control import ControlDatabase
from engine.engine import Engine
from engine.model.job import CaptureParameters, CleanupParameters
from engine.model.lsn import Lsn
from tests.control.conftest import an_instance
from tests.dashboard.conftest import Dashboard

MANY = 500


@given(st.lists(st.sampled_from(["department", "note", "Room", "room_key"]), unique=True), st.text())
def test_a_search_finds_each_instance_by_its_own_name_and_nothing_else(names: list[str], text: str) -> None:
    instances = [an_instance(number, f"hr_{name}", name) for number, name in enumerate(names)]
    assert matching(instances, "") == instances
    for each in instances:
        assert each in matching(instances, each.capture_instance.upper())
        assert each in matching(instances, f" {each.source_table}  hr.")
    assert set(matching(instances, text)) <= set(instances)


def test_a_search_finds_gating_roles() -> None:
    gated = replace(an_instance(2, "hr_note", "note"), role_name="Readers")
    assert matching([an_instance(), gated], "read note") == [gated]
    assert matching([an_instance(), gated], "read department") == []


def test_the_address_says_what_is_searched_for(tracked: str, dashboard: Dashboard) -> None:
    dashboard.test.query_params["t_q"] = "nothing like it"
    dashboard.open("tables")
    assert "0 of 1 capture instance" in dashboard.text
    assert "No capture instance is like that" in dashboard.text
    dashboard.test.text_input("t_q").set_value("DEPART")
    dashboard.run()
    assert dashboard.test.dataframe[0].value["capture instance"].tolist() == ["public_department"]
    assert "## public_department" in dashboard.text


def test_an_instance_that_is_gone_is_said(tracked: str, dashboard: Dashboard) -> None:
    dashboard.test.query_params["t_ci"] = "public_gone"
    dashboard.open("tables")
    assert "There is no capture instance public\\_gone any more" in dashboard.text
    dashboard.run()
    assert "any more" not in dashboard.text


def test_an_instance_that_capture_has_not_met_has_no_endpoints_and_no_size(
    tracked: str, dashboard: Dashboard
) -> None:
    dashboard.open("tables")
    dashboard.wait()
    [row] = dashboard.test.dataframe[0].value.to_dict("records")
    assert (row["low endpoint"], row["high endpoint"]) == ("not established yet", "—")
    facts = dict(dashboard.test.table[0].value.itertuples(index=False))
    assert facts["Size"].startswith("no rows yet")
    assert facts["Low endpoint"] == "not established yet"


@pytest.fixture
def crowded(engine: Engine, connect: Callable[[str], str], control_dsn: str) -> str:
    """A database with many instances, as its metadata would have them."""
    name = connect("SELECT 1")
    engine.enable_db(name)
    control = ControlDatabase.open(control_dsn)
    for number in range(MANY):
        made = an_instance(number + 1, f"hr_table_{number:03}", f"table_{number:03}")
        instance = replace(made, source_object_id=number, start_lsn=Lsn.at(number + 1))
        with control.instances.add(
            replace(instance, source_object_id=number, start_lsn=Lsn.at(number + 1)),
            CaptureParameters(),
            CleanupParameters(),
        ):
            pass
    control.close()
    return name


def test_many_instances_are_listed_quickly(crowded: str, dashboard: Dashboard) -> None:
    dashboard.open("tables")
    assert len(dashboard.test.dataframe[0].value) == MANY
    begun = time.process_time()
    dashboard.test.run()
    assert time.process_time() - begun < 2, "it takes a twentieth of a second"
    dashboard.test.text_input("t_q").set_value("table_007")
    dashboard.run()
    assert len(dashboard.test.dataframe[0].value) == 1
