"""Marks of the history: job parameters changed, DDL, cleanup; nobody sees DDL of what they may not read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.charts.chart import TimeRange
from dashboard.charts.history import history_chart
from dashboard.history import Asked
from dashboard.history_marks import (
    Mark,
    MarkKind,
    cleanups,
    configurations,
    counts,
    statements,
    together,
    within,
)
from dashboard.history_reading import read_history
from dashboard.operations import Operation
from engine.engine import Engine
from engine.model.activity import Action, Outcome
from engine.model.ddl_history import DdlHistoryRow, SchemaChange
from engine.model.job import JobRun, JobType, RunOutcome
from engine.model.lsn import Lsn
from engine.model.user import Role, User
from tests.dashboard.conftest import Dashboard

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TUNED = "USE [hr];\nEXEC sys.sp_cdc_change_job @job_type = N'capture', @maxtrans = 700;"


def an_action(command: str, statement: str = "", outcome: Outcome = Outcome.OK) -> Action:
    return Action(1, NOON, NOON, "ann", "admin", "hr", command, statement, outcome)


def ddl(command: str, instance: str, place: int = 9) -> SchemaChange:
    return SchemaChange(
        DdlHistoryRow("public", "d", instance, False, command, Lsn.at(place), NOON), None, None
    )


def a_run(outcome: RunOutcome, rows: int) -> JobRun:
    return JobRun(JobType.CLEANUP, NOON, NOON + MINUTE, outcome, "", rows)


def test_a_change_of_a_job_says_what_was_given_and_by_whom() -> None:
    refused = an_action("change_job", TUNED, Outcome.REFUSED)
    actions = [an_action("change_job", TUNED), refused, an_action("enable_table"), an_action("drop_job")]
    assert [each.text for each in configurations(actions)] == [
        "job_type = capture, maxtrans = 700, by ann",
        "job dropped, by ann",
    ]


def test_ddl_is_marked_once_however_many_instances_it_met() -> None:
    long = "ALTER TABLE d ADD " + "x" * 200
    [one, other] = statements([ddl("ALTER\n TABLE d", "d"), ddl("ALTER\n TABLE d", "e"), ddl(long, "d", 11)])
    assert one.text == "public.d: ALTER TABLE d"
    assert len(other.text) < 140


def test_a_cleanup_says_its_outcome_and_no_table() -> None:
    single = an_action("cleanup_change_table", "EXEC sys.sp_cdc_cleanup_change_table N'secret'")
    runs = [a_run(RunOutcome.SUCCEEDED, 1), a_run(RunOutcome.FAILED, 20)]
    assert [each.text for each in cleanups(runs, [single])] == [
        "1 row deleted",
        "failed, 20 rows deleted",
        "one change table, by ann",
    ]


def test_marks_of_one_stretch_are_drawn_as_one_below_the_line() -> None:
    marks = [Mark(MarkKind.DDL, NOON + n * MINUTE / 4, f"<b>{n}") for n in range(5)]
    assert [each.text for each in together(marks, MarkKind.DDL, 60)] == ["<b>0 and 3 more", "<b>4"]
    assert within(marks, NOON, NOON + MINUTE) == marks[:4]
    assert counts(marks) == {MarkKind.DDL: "5 DDL statements"}
    starts, span = [NOON, NOON + MINUTE], TimeRange(NOON, NOON + 2 * MINUTE)
    chart = history_chart("Errors", "errors", starts, [0.0, 1.0], None, [], span, marks=marks)
    _lines, glyphs, line = chart.figure.data
    assert list(line.y) == [0, 1]
    assert (list(glyphs.customdata), glyphs.marker.symbol) == (
        ["&lt;b&gt;0 and 3 more", "&lt;b&gt;4"],
        "triangle-down",
    )
    assert glyphs.yaxis == "y2"
    assert chart.alt == "Errors: at most 1 errors; 0 gaps, 0 restarts, 5 DDL statements."


def asked_now() -> Asked:
    start = datetime.now(UTC).replace(second=0, microsecond=0) - 60 * MINUTE
    return Asked("hr", start, start + 90 * MINUTE, 60)


def read(engine: Engine) -> list[tuple[MarkKind, str]]:
    found = read_history(engine, asked_now(), Operation("history", "Reading history"))
    assert found.unread == ""
    return [(each.kind, each.text) for each in found.marks]


def test_ddl_of_an_instance_behind_a_gating_role_is_for_its_members(
    engine: Engine, connect: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = connect("CREATE TABLE open (id int PRIMARY KEY); CREATE TABLE kept (id int PRIMARY KEY)")
    engine.enable_db(name)
    engine.enable_table(name, "public", "open", role_name=None)
    engine.enable_table(name, "public", "kept", role_name="cdc_reader")
    now = datetime.now(UTC)
    changes = [
        SchemaChange(DdlHistoryRow("public", table, f"public_{table}", False, "ALTER", lsn, now), None, None)
        for table, lsn in [("open", Lsn.at(1)), ("kept", Lsn.at(2))]
    ]
    monkeypatch.setattr(engine._control.ddl, "shapes", lambda _database: changes)
    seen_by_owner = [(MarkKind.DDL, "public.kept: ALTER"), (MarkKind.DDL, "public.open: ALTER")]
    assert sorted(read(engine)) == seen_by_owner
    assert read(engine.acting_as(User("ann", Role.VIEWER))) == seen_by_owner[1:]


def test_the_page_says_which_marks_it_draws(tracked: str, engine: Engine, dashboard: Dashboard) -> None:
    engine.change_job(tracked, maxtrans=700)
    assert read(engine) == [
        (MarkKind.CONFIGURATION, f"job_type = capture, maxtrans = 700, by {engine.user().name}")
    ]
    dashboard.test.query_params["h_range"] = "24h"
    dashboard.open("history")
    dashboard.wait()
    assert "◆ 1 configuration change" in dashboard.text
