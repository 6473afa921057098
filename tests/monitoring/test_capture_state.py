"""The state of capture: each rule alone, over facts that are otherwise healthy."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.model.job import CaptureParameters, JobState, JobStep, Subsystem
from engine.model.lsn import Lsn
from engine.monitoring.capture_state import (
    AgentFacts,
    CaptureState,
    forecast_finding,
    log_forecast,
    state_of_capture,
)
from engine.monitoring.diagnosis import Verdict
from engine.monitoring.forecast import LogPoint
from tests.monitoring.sessions import a_session
from tests.monitoring.test_diagnosis import HEALTHY, LONG_AGO, NOW, RUNNING, SLOT, marks

AGENT = AgentFacts(True, awaited_since=LONG_AGO, pid=4711)
AWAY = AgentFacts(False, seen=NOW - timedelta(minutes=5))
STOPPED = replace(RUNNING, wanted=False, state=JobState.STOPPED, running=None, message="Stopped.")
EMPTY = a_session(7, start_time=LONG_AGO, end_time=NOW, empty_scan_count=9)
SILENT = timedelta(minutes=5)


def state(agent=AGENT, **differs):
    return state_of_capture(replace(HEALTHY, **differs), agent, NOW)


def seen(agent=AGENT, **differs):
    found = state(agent, **differs)
    return found.state, found.since, found.fix


def test_a_database_that_is_not_enabled_has_none():
    assert state(database=replace(HEALTHY.database, is_cdc_enabled=False)) is None


def test_capturing():
    found = state(latest=a_session(1, tran_count=1, latency=2, end_time=NOW))
    assert (found.state, found.fix, found.why) == (CaptureState.CAPTURING, "", "Latency is 2 s.")


def test_quiet_since_the_first_empty_scan():
    assert seen(latest=EMPTY) == (CaptureState.QUIET, LONG_AGO, "")


def test_quiet_since_the_last_change_where_no_scan_was_needed():
    ended = NOW - SILENT
    assert seen(latest=a_session(1, tran_count=1, end_time=ended)) == (CaptureState.QUIET, ended, "")


def test_not_quiet_while_the_log_is_behind():
    latest = a_session(1, tran_count=1, end_time=NOW - timedelta(seconds=30))
    assert seen(latest=latest, log_end=Lsn.at(200))[0] is CaptureState.CAPTURING


def test_quiet_without_tables():
    assert seen(jobs=(), instances=())[0] is CaptureState.QUIET


def test_stopped_by_somebody():
    assert seen(jobs=(STOPPED,)) == (CaptureState.STOPPED, LONG_AGO, "highwater capture start -d hr")


def test_stopped_with_the_agent():
    assert seen(AWAY) == (CaptureState.STOPPED, AWAY.seen, "highwater start")


def test_stopped_and_the_agent_away_needs_both():
    fix = "highwater start --detach; highwater capture start -d hr"
    assert seen(AWAY, jobs=(STOPPED,)) == (CaptureState.STOPPED, LONG_AGO, fix)


def test_an_agent_that_is_coming_needs_no_fix():
    coming = replace(AWAY, awaited_since=NOW)
    assert seen(coming)[::2] == (CaptureState.STOPPED, "")
    assert seen(replace(AWAY, awaited_since=LONG_AGO))[2] == "highwater doctor"


def test_stopped_without_a_job():
    assert seen(jobs=())[0] is CaptureState.STOPPED


def test_unreachable_since_the_job_failed():
    failed = replace(RUNNING, state=JobState.FAILED, running=None, message="refused")
    found = state(unreachable="refused", slot=None, log_end=None, jobs=(failed,))
    assert (found.state, found.since) == (CaptureState.UNREACHABLE, LONG_AGO)
    assert "by itself once it answers" in found.why
    assert found.fix == 'highwater connect hr "$(highwater dsn -d hr)"'


def test_a_stopped_job_does_not_hide_that_the_source_is_away():
    found = state(AWAY, unreachable="refused", slot=None, log_end=None, jobs=(STOPPED,))
    assert found.state is CaptureState.UNREACHABLE
    assert "by itself" not in found.why


def test_stalled_by_an_error_that_comes_again():
    failed = replace(RUNNING, state=JobState.FAILED, running=None, message="Msg 22863: disk full")
    found = state(jobs=(failed,))
    assert (found.state, found.since, found.why) == (CaptureState.STALLED, LONG_AGO, failed.message)


def test_stalled_with_an_agent_that_hangs():
    assert seen(silent_since=LONG_AGO) == (CaptureState.STALLED, LONG_AGO, "kill -KILL 4711")
    alone = AgentFacts(True, pid=4711)
    assert seen(alone, silent_since=LONG_AGO)[2] == "kill -KILL 4711; highwater start"
    assert seen(AgentFacts(True), silent_since=LONG_AGO)[2] == "highwater stop; highwater start"


def test_an_agent_that_stopped_its_job_has_given_up_the_lease():
    assert seen(jobs=(STOPPED,), silent_since=LONG_AGO)[0] is CaptureState.STOPPED


def test_a_job_with_a_step_of_its_own_holds_no_lease_to_capture():
    step = JobStep(Subsystem.TSQL, "EXEC sys.sp_cdc_scan")
    found = state(jobs=(replace(RUNNING, running_step=step),), silent_since=LONG_AGO, log_end=Lsn.at(900))
    assert (found.state, found.fix) == (CaptureState.CAPTURING, "")


def test_a_job_with_a_schedule_rests():
    resting = replace(STOPPED, next_run=NOW)
    assert "rests until 2026-11-21 12:00:00 UTC" in state(jobs=(resting,)).why


def test_stalled_though_the_log_goes_on():
    active = a_session(3, end_time=None, scan_phase="Second scan")
    idle = replace(SLOT, active_pid=None)
    found = state(watermarks=marks(100, SILENT), log_end=Lsn.at(200), latest=active, slot=idle)
    assert (found.state, found.since) == (CaptureState.STALLED, NOW - SILENT)
    assert "'Second scan'" in found.why


def test_stalled_by_a_lock():
    blocked = replace(SLOT, blocked_by=(11, 12))
    found = state(watermarks=marks(100, SILENT), log_end=Lsn.at(200), slot=blocked)
    assert "session 11, 12" in found.why
    assert found.fix.endswith('-c "SELECT pg_terminate_backend(11), pg_terminate_backend(12)"')


def test_a_scan_that_gets_on_is_no_stall():
    behind = {
        "watermarks": marks(100, SILENT),
        "log_end": Lsn.at(200),
        "slot": replace(SLOT, active_pid=None),
    }
    active = a_session(3, end_time=None, scan_phase="Writing change tables")
    assert seen(**behind, latest=active)[0] is CaptureState.STALLED
    assert seen(**behind, latest=active, progress_at=NOW)[0] is CaptureState.CAPTURING


def test_a_source_that_decodes_a_large_transaction_is_no_stall():
    active = a_session(3, end_time=None, scan_phase="First scan")
    found = state(watermarks=marks(100, SILENT), log_end=Lsn.at(200), latest=active)
    assert SLOT.active_pid
    assert found.state is CaptureState.CAPTURING


jobs = st.builds(
    lambda state, wanted, runs, long: replace(
        RUNNING,
        state=state,
        wanted=wanted,
        running=CaptureParameters() if runs else None,
        since=LONG_AGO if long else NOW,
    ),
    st.sampled_from(JobState),
    *[st.booleans()] * 3,
)
agents = st.builds(
    AgentFacts,
    st.booleans(),
    st.sampled_from([None, LONG_AGO, NOW]),
    st.sampled_from([None, 4711]),
    st.sampled_from([None, LONG_AGO]),
)


@given(
    agents,
    st.lists(jobs, max_size=1),
    st.sampled_from([None, "refused."]),
    st.sampled_from([None, "slot is gone"]),
    st.sampled_from([None, LONG_AGO]),
    st.sampled_from([None, EMPTY, a_session(1, tran_count=1), a_session(2, end_time=None)]),
    st.sampled_from([Lsn.at(100), Lsn.at(200)]),
)
def test_whatever_is_known_there_is_one_state_and_a_reason(
    agent, listed, unreachable, broken, silent, latest, end
):
    found = state(
        agent,
        jobs=tuple(listed),
        unreachable=unreachable,
        broken=broken,
        silent_since=silent,
        latest=latest,
        log_end=end,
        watermarks=marks(100, SILENT),
    )
    assert found.why.endswith((".", "…", "gone"))
    assert (found.state is CaptureState.UNREACHABLE) == (unreachable is not None)
    if found.state.lets_log_go:
        assert found.fix == ""
        assert agent.is_alive
    if found.state is CaptureState.STALLED:
        assert found.fix


# The log that is kept


def forecast_of(capture, room=3600 * 1000):
    facts = replace(
        HEALTHY,
        slot=replace(SLOT, safe_wal_size=room),
        log_before=LogPoint(40, NOW - timedelta(seconds=60)),
        log_end=Lsn.at(40 + 60_000),
    )
    found = log_forecast(facts, capture, NOW)
    return found, forecast_finding(facts, capture, found)


def test_a_log_that_capture_lets_go_is_no_finding():
    found, finding = forecast_of(state(latest=EMPTY))
    assert (found.slot_limit, found.is_growing) == (timedelta(hours=1), False)
    assert finding is None


def test_a_limit_that_is_near_is_a_finding_with_the_fix_of_the_state():
    stopped = state(jobs=(STOPPED,))
    found, finding = forecast_of(stopped)
    assert found.is_growing
    assert (finding.verdict, finding.fix) == (Verdict.FAILING, stopped.fix)
    assert "in 1 h max_slot_wal_keep_size is used up" in finding.text
    assert forecast_of(stopped, 10 * 3600 * 1000)[1].verdict is Verdict.ATTENTION
    assert forecast_of(stopped, 1000 * 3600 * 1000)[1] is None


def test_a_slot_that_is_unknown_forecasts_nothing():
    assert log_forecast(replace(HEALTHY, slot=None), state(), NOW) is None
