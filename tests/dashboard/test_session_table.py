"""Scan sessions on the page Capture: one of them selected, in the address, in full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.components.session_drawer import commands_per_second, errors_of
from engine.control import ControlDatabase
from engine.model.scan_session import ScanSession
from tests.dashboard.conftest import Dashboard
from tests.dashboard.test_errors_page import an_error
from tests.dashboard.test_sessions import scan

BEGUN = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)


class Scans:
    """Sessions of one agent run, ten seconds apart; each captures as many transactions as its number."""

    def __init__(self, control: ControlDatabase) -> None:
        self._control = control

    def add(self, **values: object) -> ScanSession:
        number = self._control.sessions.begin("hr", BEGUN)
        start = BEGUN + timedelta(seconds=10 * number)
        known: dict[str, object] = {
            "start_time": start,
            "end_time": start + timedelta(seconds=4),
            "last_commit_cdc_time": start + timedelta(seconds=1),
            "first_begin_cdc_lsn": "00000000:0000ab10:0000",
            "last_commit_cdc_lsn": "00000000:0000ab20:0000",
        }
        session = replace(scan(number, 0, trans=number), **(known | values))  # type: ignore[arg-type]
        self._control.sessions.save("hr", session)
        return session


@pytest.fixture
def scans(tracked: str, control_dsn: str) -> Iterator[Scans]:
    control = ControlDatabase.open(control_dsn)
    yield Scans(control)
    control.close()


def facts(dashboard: Dashboard) -> dict[str, str]:
    """What the drawer says, by the names of the view's columns."""
    tables = [table.value for table in dashboard.test.table]
    return {
        str(name).strip("`"): str(value)
        for table in tables
        if list(table.columns) == ["", " "]
        for name, value in table.itertuples(index=False)
    }


def test_the_session_in_the_address_is_shown_in_full(scans: Scans) -> None:
    for _ in range(3):
        scans.add()
    dashboard = Dashboard(k_sid="2")
    dashboard.open("capture")
    assert "## Session 2" in dashboard.text
    said = facts(dashboard)
    assert said["tran_count"] == "2"
    assert said["command_count"] == "6"
    assert said["command_count / duration"] == "1.5 cmd/s"
    assert said["latency"] == "2 s (3 s)"
    assert said["first_begin_cdc_lsn"] == "`0x000000000000AB100000`"
    assert said["start_lsn"] == "0, none"


def test_the_selected_session_stays_while_others_come(scans: Scans, dashboard: Dashboard) -> None:
    for _ in range(3):
        scans.add()
    dashboard.open("capture")
    assert "## Session" not in dashboard.text
    shown = dashboard.test.dataframe[-1].value["session_id"].tolist()
    dashboard.test.session_state["k_sessions"] = {"selection": {"rows": [shown.index(2)]}}
    dashboard.run()
    assert "## Session 2" in dashboard.text
    scans.add()
    scans.add(end_time=None, end_lsn=None, scan_phase="5 writing rows")
    dashboard.run()
    assert "## Session 2" in dashboard.text
    assert dashboard.test.query_params["k_sid"] == "2"
    shown = dashboard.test.dataframe[-1].value["session_id"].tolist()
    dashboard.test.session_state["k_sessions"] = {"selection": {"rows": [shown.index(5)]}}
    dashboard.run()
    assert facts(dashboard)["end_lsn"] == "NULL: active"


def test_a_session_that_is_not_there_is_said(scans: Scans) -> None:
    scans.add()
    dashboard = Dashboard(k_sid="77")
    dashboard.open("capture")
    assert "Session 77 is not among the newest 200 of this agent run" in dashboard.text
    assert "## Session" not in dashboard.text


def test_errors_are_those_of_the_session_and_not_of_its_namesake_of_an_earlier_run() -> None:
    session = replace(scan(7, 0), start_time=BEGUN, end_time=BEGUN + timedelta(seconds=9))
    mine = replace(an_error(), entry_time=BEGUN + timedelta(seconds=5))
    earlier = replace(mine, entry_time=BEGUN - timedelta(hours=1))
    other = replace(mine, session_id=8)
    assert errors_of(session, [earlier, mine, other]) == [mine]
    assert errors_of(replace(session, session_id=0), [replace(mine, session_id=0)]) == []


def test_the_aggregate_goes_by_its_duration_and_never_divides_by_zero() -> None:
    aggregate = replace(scan(0, 0, took=100, trans=10), duration=5)
    assert commands_per_second(aggregate) == 6
    assert commands_per_second(replace(aggregate, duration=0)) is None
