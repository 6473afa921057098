"""Alerts are raised once and cleared once, by however many agents, and what a hook does is written down."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import psycopg
import pytest

from engine.agent.alert_watch import AlertWatch
from engine.control import JOBS, ControlDatabase
from engine.engine import Engine
from engine.errors import AlertHookInvalid
from engine.lake.tables import Lake
from engine.model.alert import AlertHook, AlertKind
from engine.model.job import JobState
from engine.monitoring.agent_presence import PATIENCE_SECONDS, STEADY_SECONDS
from engine.monitoring.agent_watch import AgentWatch
from engine.monitoring.status import StatusReader
from engine.runtime.home import Home
from engine.sources.registry import Sources


@pytest.fixture
def watched(control_dsn, source_dsn, tmp_path):
    """An engine with the enabled database ``db``, and two agents' watches over it."""
    control, home = ControlDatabase.open(control_dsn), Home(tmp_path / "home")
    control.migrate()
    home.prepare()
    sources = Sources(home.secret)
    engine = Engine(control, sources, Lake(str(tmp_path / "lake")), lambda: None, home)
    with psycopg.connect(source_dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
    engine.connect("db", source_dsn)
    engine.enable_db("db")
    engine.add_job("db", "capture")

    def clock():
        return datetime.now(UTC)

    seconds = count(0, int(STEADY_SECONDS))
    engine.stop_collection_set(1)  # no agent is there that would collect
    status = StatusReader(control, sources, lambda: (), clock, engine._lake)
    watches = [AlertWatch(control, status, clock, seconds=lambda: next(seconds)) for _ in "12"]
    yield engine, control, watches
    control.close()


def report(control, state, message):
    control.jobs.report(control.jobs.get("db").job_id, state, message, None)


def events(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_an_alert_is_told_once_when_it_is_raised_and_once_when_it_is_over(watched, tmp_path):
    engine, control, watches = watched
    file = tmp_path / "told"
    code = f"import sys; open('{file}', 'a').write(sys.stdin.read() + chr(10))"
    report(control, JobState.FAILED, "Msg 50001: away. Retrying: attempt 2")
    for watch in watches:
        watch.look()
    assert engine.alerts() == []  # no hook, nobody looks
    engine.set_alert_hook(AlertHook(command=f'"{sys.executable}" -c "{code}"'))
    for attempt in (2, 3):
        report(control, JobState.FAILED, f"Msg 50001: away. Retrying: attempt {attempt}")
        for watch in watches:
            watch.look()
    [event] = events(file)
    assert (event["event"], event["kind"], event["database"]) == ("raised", "failure", "db")
    assert "Msg 50001: away." in event["text"]
    report(control, JobState.RUNNING, "Running.")
    for watch in watches:
        watch.look()
    assert [event["event"] for event in events(file)] == ["raised", "cleared"]
    [alert] = engine.alerts()
    assert (alert.kind, alert.raised_told, alert.cleared_told) == (
        AlertKind.FAILURE,
        "exit code 0",
        "exit code 0",
    )


def test_a_hook_that_fails_is_written_down_and_the_next_alert_is_told_all_the_same(watched):
    engine, control, [watch, _] = watched
    engine.set_alert_hook(AlertHook(command="false"))
    report(control, JobState.FAILED, "away")
    watch.look()
    [alert] = engine.alerts()
    assert alert.raised_told.startswith("failed: Msg") or "ended with 1" in alert.raised_told
    engine.set_alert_hook(replace(engine.alert_hook(), command="true"))
    report(control, JobState.RUNNING, "Running.")
    watch.look()
    assert engine.alerts()[0].cleared_told == "exit code 0"


def test_an_alert_that_a_dead_agent_took_upon_itself_is_told_by_another(watched):
    engine, control, [watch, _] = watched
    engine.set_alert_hook(AlertHook(command="true"))
    control.alerts.note("db", {AlertKind.LAG: "behind"}, frozenset(), datetime.now(UTC))
    assert control.alerts.claim().kind is AlertKind.LAG
    assert control.alerts.claim() is None
    with control._connections.begin() as connection:
        connection.exec_driver_sql("UPDATE dbo.alerts SET claimed_at = now() - interval '1 hour'")
    watch.look()
    assert engine.alerts()[0].raised_told == "exit code 0"


def test_what_nobody_knows_is_not_cleared(watched):
    engine, control, _ = watched
    control.alerts.note("db", {AlertKind.SLOT: "full"}, frozenset(), datetime.now(UTC))
    control.alerts.note("db", {}, frozenset({AlertKind.SLOT}), datetime.now(UTC))
    assert engine.alerts()[0].cleared_at is None
    control.alerts.note("db", {}, frozenset(), datetime.now(UTC))
    assert engine.alerts()[0].cleared_at is not None


def test_the_hook_is_tried_and_refused_where_there_is_none(watched):
    engine, _, _ = watched
    with pytest.raises(AlertHookInvalid):
        engine.test_alert_hook()
    with pytest.raises(AlertHookInvalid):
        engine.set_alert_hook(AlertHook(command="a", webhook="http://b"))
    assert engine.alert_hook() == AlertHook()
    engine.set_alert_hook(AlertHook(command="true  "))
    assert engine.alert_hook().command == "true"
    assert engine.test_alert_hook() == "exit code 0"


def test_the_supervisor_tells_that_no_agent_runs_and_that_one_runs_again(watched, tmp_path):
    engine, control, [watch, _] = watched
    engine.set_alert_hook(AlertHook(command="true"))
    at = [0.0]
    supervisor = AgentWatch(lambda: control, print, lambda: at[0])
    supervisor.look(control)
    at[0] = PATIENCE_SECONDS - 1
    supervisor.look(control)
    assert engine.alerts() == []
    for _ in "ab":
        at[0] += 1
        supervisor.look(control)
    [alert] = engine.alerts()
    assert (alert.database, alert.kind, alert.raised_told) == ("", AlertKind.AGENT, "exit code 0")
    assert "cdc.db_capture" in alert.text
    with control.listen(JOBS):  # what makes an agent
        for _ in "ab":
            supervisor.look(control)
            at[0] += STEADY_SECONDS
        supervisor.look(control)
    [alert] = engine.alerts()
    assert alert.cleared_told == "exit code 0"
    # A supervisor that is gone leaves it to an agent that stays.
    control.alerts.note(None, {AlertKind.AGENT: "away"}, frozenset(), datetime.now(UTC))
    watch.look()
    assert engine.alerts()[0].cleared_at is not None


def test_a_collector_that_does_not_collect_is_told(watched):
    engine, control, [watch, _] = watched
    engine.set_alert_hook(AlertHook(command="true"))
    due = datetime.now(UTC) - timedelta(hours=1)
    control.collection_sets.change(1, is_running=True, next_run=due)
    watch.look()
    [alert] = engine.alerts()
    assert (alert.database, alert.kind) == ("", AlertKind.COLLECTION)
    control.collection_sets.change(1, is_running=False, next_run=None)
    watch.look()
    assert engine.alerts()[0].cleared_told == "exit code 0"
