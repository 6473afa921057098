"""The table of all databases: what stands in it, in which order, and when it is drawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from dashboard.fleet import NOT_ENABLED, fleet
from dashboard.snapshot import Snapshot
from engine.engine import Engine
from engine.errors import ControlUnreachable
from engine.model.job import JobState
from engine.monitoring.capture_state import AgentFacts, CaptureState, state_of_capture
from engine.monitoring.diagnosis import DatabaseFacts, diagnose, verdict_of
from engine.monitoring.status import DatabaseStatus, EngineStatus
from tests.dashboard.conftest import Dashboard
from tests.monitoring.sessions import a_session
from tests.monitoring.test_diagnosis import HEALTHY, LONG_AGO, NOW, RUNNING

STOPPED = replace(RUNNING, wanted=False, state=JobState.STOPPED, running=None, message="Stopped.")


def named(name: str, **differs: object) -> DatabaseFacts:
    marks = replace(HEALTHY.watermarks, database=name)
    facts = replace(HEALTHY, database=replace(HEALTHY.database, name=name), watermarks=marks)
    return replace(facts, **differs)  # type: ignore[arg-type]


def off(name: str) -> DatabaseFacts:
    facts = named(name, instances=(), jobs=(), latest=None, slot=None)
    return replace(facts, database=replace(facts.database, is_cdc_enabled=False))


def picture(*facts: DatabaseFacts, agent_is_alive: bool = True) -> Snapshot:
    agent = AgentFacts(agent_is_alive, seen=None if agent_is_alive else LONG_AGO)
    statuses = tuple(DatabaseStatus(each, each.jobs, state_of_capture(each, agent, NOW)) for each in facts)
    findings = diagnose(facts, agent_is_alive, NOW)
    return Snapshot(NOW, EngineStatus(NOW, verdict_of(findings), findings, agent_is_alive, (), statuses))


def verdicts(shown: Snapshot) -> dict[str, str]:
    return {row.database: row.verdict for row in fleet(shown)}


def test_the_worst_is_first_and_each_has_the_verdict_of_its_own_findings() -> None:
    shown = picture(
        off("archive"),
        named("fine"),
        named("away", unreachable="connection refused", slot=None, log_end=None),
        named("broken", jobs=(replace(RUNNING, state=JobState.FAILED, message="No."),)),
        named("idle", jobs=(STOPPED,)),
    )
    assert verdicts(shown) == {
        "away": "failing",
        "broken": "failing",
        "idle": "attention",
        "fine": "healthy",
        "archive": NOT_ENABLED,
    }
    assert [row.database for row in fleet(shown)] == ["away", "broken", "idle", "fine", "archive"]


def test_a_row_has_capture_latency_log_held_instances_and_high_watermark() -> None:
    quiet = a_session(7, start_time=LONG_AGO, end_time=NOW, empty_scan_count=9)
    fresh = a_session(7, tran_count=1, latency=2, end_time=NOW)
    busy, still = fleet(picture(named("busy", latest=fresh), named("still", latest=quiet)))
    assert (busy.state, busy.latency, busy.log_held) == (CaptureState.CAPTURING, 2, 1000)
    assert (busy.instances, busy.high) == (1, NOW)
    assert (still.state, still.since, still.latency) == (CaptureState.QUIET, LONG_AGO, None)


def test_an_agent_that_is_away_is_a_finding_of_each_database_whose_job_waits_for_it() -> None:
    shown = picture(named("works"), named("idle", jobs=()), off("archive"), agent_is_alive=False)
    assert verdicts(shown)["works"] == "failing"
    assert verdicts(shown)["archive"] == NOT_ENABLED
    idle = replace(named("idle"), jobs=(), instances=())
    assert verdicts(picture(named("works"), idle, agent_is_alive=False))["idle"] == "healthy"


def test_of_an_old_picture_no_verdict_is_known() -> None:
    shown = replace(picture(named("a"), named("b")), failure=ControlUnreachable("gone"))
    assert verdicts(shown) == {"a": "unknown", "b": "unknown"}


def test_of_one_database_there_is_no_table() -> None:
    assert fleet(picture(named("hr"))) == []
    assert fleet(Snapshot(NOW, None)) == []


def test_the_overview_lists_all_databases_once_there_are_two(
    tracked: str, engine: Engine, dashboard: Dashboard
) -> None:
    def tables() -> list[list[str]]:
        frames = [each.value for each in dashboard.test.dataframe]
        return [frame["database"].tolist() for frame in frames if "verdict" in frame]

    dashboard.run()
    assert tables() == []
    engine._control.sources.add("archive", "postgres", "postgresql:///archive")
    dashboard.run()
    assert tables() == [[tracked, "archive"]]
    [shown] = [each.value for each in dashboard.test.dataframe if "verdict" in each.value]
    assert shown["verdict"].tolist() == ["✕ Failing", "– Not enabled"]
    assert shown["capture"].tolist() == ["stopped", "—"]


def test_two_stopped_stand_by_name() -> None:
    stopped_later = replace(STOPPED, since=NOW - timedelta(minutes=1))
    shown = picture(named("b", jobs=(STOPPED,)), named("a", jobs=(stopped_later,)))
    assert [row.database for row in fleet(shown)] == ["a", "b"]
