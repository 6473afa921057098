"""Collector on its page: is history collected, since when not, and the statements of what one may do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.charts.chart import TimeRange
from dashboard.charts.snapshots import snapshots_chart
from dashboard.collecting import collected
from dashboard.components.collector_page import forget
from engine.engine import Engine
from engine.model.collection import DEFAULT_SET, CollectionRun
from engine.model.job import RunOutcome
from tests.dashboard.conftest import Dashboard

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = TimeRange(NOON, NOON + timedelta(hours=1))


def a_run(minute: int, outcome: RunOutcome = RunOutcome.SUCCEEDED, message: str = "") -> CollectionRun:
    taken = NOON + timedelta(minutes=minute)
    return CollectionRun(minute + 1, 1, taken, taken, outcome, message, 60, 300, NOON)


@given(st.sets(st.integers(0, 60)), st.integers(60, 70))
def test_what_is_between_two_snapshots_is_a_gap_or_short(minutes: set[int], until: int) -> None:
    runs = [a_run(minute) for minute in minutes]
    found = collected(runs, NOON + timedelta(minutes=until))
    ends = [*sorted(minutes), until] if minutes else []
    late = sum(1 for one, other in pairwise(ends) if other - one > 7)
    assert len(found.gaps) == late
    assert (found.newest is None) == (not minutes)


def test_a_gap_is_a_band_with_the_reason_of_what_failed_and_never_a_zero() -> None:
    runs = [a_run(0), a_run(5), a_run(10, RunOutcome.FAILED, "Disk full."), a_run(30)]
    found = collected(runs, NOON + timedelta(minutes=31))
    [gap] = found.gaps
    assert gap.reason == "Disk full."
    chart = snapshots_chart(runs, found.gaps, HOUR)
    assert [shape.name for shape in chart.figure.layout.shapes] == ["gap"]
    assert list(chart.figure.data[0].y) == [60, 60, 60]
    assert chart.alt == "3 snapshots, 1 failed, 1 gap."


@pytest.fixture
def tracked(tracked: str) -> str:
    forget()
    return tracked


def test_a_set_is_stopped_started_and_changed_with_its_statement_shown(
    tracked: str, dashboard: Dashboard, engine: Engine
) -> None:
    dashboard.open("collector")
    assert "the agent is away, nothing was ever collected" in dashboard.text
    dashboard.wait()
    assert "cdc_log_scan_data" in str(dashboard.test.dataframe[-1].value)
    dashboard.click("o_stop")
    assert "EXEC msdb.dbo.sp_syscollector_stop_collection_set" in dashboard.code
    dashboard.click("o_stop_confirm")
    assert "the set is stopped" in dashboard.text
    assert not engine.collection_sets()[0].is_running

    dashboard.field("o_days").set_value(7)
    dashboard.field("o_schedule").set_value("CollectorSchedule_Every_15min")
    dashboard.run()
    assert "@schedule_name = N'CollectorSchedule_Every_15min', @days_until_expiration = 7" in dashboard.code
    dashboard.click("o_save")
    [found] = engine.collection_sets()
    assert (found.name, found.schedule, found.days_until_expiration) == (DEFAULT_SET, "*/15 * * * *", 7)
    dashboard.click("o_start")
    dashboard.click("o_start_confirm")
    assert engine.collection_sets()[0].is_running
