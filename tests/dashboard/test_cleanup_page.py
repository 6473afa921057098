"""Cleanup on its page: the job, its parameters, its runs, its clients; what a plan says. No agent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.charts.cleanup_effect import MAPPING, cleanup_chart
from dashboard.components.cleanup_runs import runs_of
from engine.control import ControlDatabase
from engine.control.leases import LeaseOf
from engine.engine import Engine
from engine.errors import AgentNotRunning
from engine.model.job import CleanupParameters, RunOutcome, TableCleanup, is_cleanup
from engine.model.lsn import Lsn
from tests.dashboard.conftest import Dashboard

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def a_table(name: str | None = "hr_department", rows: int = 7, **values: object) -> TableCleanup:
    table = TableCleanup(
        name, Lsn.at(1), Lsn.at(9), NOON - timedelta(days=4), NOON - timedelta(days=3), rows, 2
    )
    return replace(table, **values)  # type: ignore[arg-type]


def test_a_chart_of_cleanup_has_both_ends_of_each_instance_and_a_bar_of_its_rows() -> None:
    held = a_table("hr_held", 0, low_after=Lsn.at(1), time_after=NOON - timedelta(days=4), waits_for="etl")
    mapping = a_table(None, 3, low_before=None, time_before=None, failed=True)
    chart = cleanup_chart([a_table(), held, mapping])
    line, before, after, bars = chart.figure.data
    assert list(line.y) == ["hr_department", "hr_department"]
    assert set(before.y) == set(after.y) == {"hr_department", "hr_held"}
    assert dict(zip(bars.y, bars.x, strict=True)) == {"hr_department": 7, "hr_held": 0, MAPPING: 3}
    assert [note.text for note in chart.figure.layout.annotations] == ["waits for etl"]
    assert chart.alt == (f"1 low watermark moved, 10 rows deleted; hr_held waits for etl; {MAPPING} failed.")
    assert chart.table["result"].tolist() == ["", "", "some rows left"]


def test_of_many_tables_those_with_the_most_rows_are_drawn_and_all_are_listed() -> None:
    chart = cleanup_chart([a_table(f"t{number:03}", number) for number in range(500)])
    assert max(chart.figure.data[-1].x) == 499
    assert len(chart.figure.data[-1].x) == 20
    assert len(chart.table) == 500


@pytest.fixture
def tracked(engine: Engine, tracked: str) -> Iterator[str]:
    """With a registered client, too."""
    engine.register_client(tracked, "warehouse", "public_department")
    runs_of.clear()
    yield tracked
    runs_of.clear()


def configured(engine: Engine) -> CleanupParameters:
    (job,) = filter(is_cleanup, engine.help_jobs("hr"))
    return job.configured


def test_parameters_are_saved_and_what_nothing_captured_would_lose_is_nothing(
    tracked: str, dashboard: Dashboard, engine: Engine
) -> None:
    dashboard.open("cleanup")
    dashboard.wait()
    assert "Nothing has been captured yet, so nothing would go." in dashboard.text
    assert "It has not run yet." in dashboard.text
    assert "None yet. Each run is listed here" in dashboard.text
    assert dashboard.test.button("l_save").disabled
    dashboard.field("l_retention").set_value(1440)
    dashboard.run()
    assert "EXEC sys.sp_cdc_change_job @job_type = N'cleanup'" in dashboard.code
    dashboard.click("l_what")
    assert "What would go with retention 1,440 min (24 h 00 m), threshold 5,000, not saved" in dashboard.text
    dashboard.click("l_save")
    assert configured(engine) == CleanupParameters(1440, 5000)
    assert "not saved" not in dashboard.text
    dashboard.field("l_schedule").input("every night")
    dashboard.run()
    assert "That is no schedule: it must have five fields" in dashboard.text
    dashboard.click("l_save")
    assert "Msg 50015" in dashboard.text
    dashboard.field("l_schedule").input("30 3 * * *")
    dashboard.run()
    assert "@job_type = N'cleanup',\n    @schedule = N'30 3 * * *';" in dashboard.code
    dashboard.click("l_save")
    (job,) = filter(is_cleanup, engine.help_jobs("hr"))
    assert job.schedule == "30 3 * * *"
    assert "schedule `30 3 * * *`" in dashboard.text


def test_without_its_job_the_page_says_so_and_adds_it_again(
    tracked: str, dashboard: Dashboard, engine: Engine
) -> None:
    engine.drop_job("hr", "cleanup")
    dashboard.open("cleanup")
    assert "hr has no cleanup job" in dashboard.text
    assert "@job_type = N'cleanup', @start_job = 0;" in dashboard.code
    dashboard.click("l_add_job")
    assert "no cleanup job" not in dashboard.text
    assert configured(engine) == CleanupParameters()


def test_a_run_is_listed_with_what_it_came_to(
    tracked: str, dashboard: Dashboard, engine: Engine, control_dsn: str
) -> None:
    control = ControlDatabase.open(control_dsn)
    engine.change_job("hr", "cleanup", retention=60)
    with pytest.raises(AgentNotRunning):
        engine.start_job("hr", "cleanup")  # it is asked for all the same
    (job,) = filter(is_cleanup, control.jobs.list("hr"))
    lease = control.leases.acquire("hr", "test", 3600, LeaseOf.CLEANUP)
    assert lease is not None
    run = control.runs.claim(job, lease, NOON, None)
    assert run is not None
    message = "Deleted 10 rows below 0x07."
    control.runs.finish(run, NOON, RunOutcome.SUCCEEDED, message, 10, [a_table(), a_table(None, 3)])
    control.close()
    dashboard.open("cleanup")
    assert "Effect of the run of 2026-11-21 12:00:00.000 UTC" in dashboard.text
    assert [run.deleted_rows for run in runs_of("hr")] == [10]
    assert list(runs_of("hr")[0].tables) == [a_table(), a_table(None, 3)]


def test_clients_are_listed_and_registered_with_the_statement_shown_before(
    tracked: str, dashboard: Dashboard, engine: Engine
) -> None:
    dashboard.open("cleanup")
    dashboard.click("l_client_register")
    dashboard.test.text_input("l_register_name").input("etl")
    dashboard.run()
    assert "EXEC highwater.register_client\n    @name = N'etl'" in dashboard.code
    assert "@expires_after = 604800" in dashboard.code
    dashboard.click("l_register_confirm")
    assert [client.name for client in engine.clients("hr")] == ["etl", "warehouse"]


def test_run_now_needs_the_typed_name(tracked: str, dashboard: Dashboard) -> None:
    dashboard.open("cleanup")
    assert dashboard.test.button("l_run").disabled  # there is no agent
    assert not dashboard.test.button("l_one").disabled
    dashboard.click("l_one")
    assert "No instance has been met in the log yet" in dashboard.text
