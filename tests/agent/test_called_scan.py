"""sys.sp_cdc_scan called by others than the capture job: one scan, its caller's errors, its caller's life."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from engine.errors import (
    AgentNotRunning,
    PollingWithoutContinuous,
    ScanAlreadyRunning,
    ScanFailed,
    SyncTimeout,
)
from engine.model.job import WAITS_FOR_SCAN, CaptureParameters, JobState
from engine.monitoring.diagnosis import Verdict
from tests.agent.conftest import SECONDS, job_of, until, until_state
from tests.capture.conftest import DATABASE

CALL_AND_HANG = """
import sys, threading
from engine.control import ControlDatabase
from engine.model.job import CaptureParameters
control = ControlDatabase.open(sys.argv[1])
with control.calls.placed(sys.argv[2], CaptureParameters(pollinginterval=1)) as number:
    print(number, flush=True)
    threading.Event().wait()
"""


@pytest.fixture
def agent(tracked, new_agent):
    """An agent that runs the job of the tracked table."""
    return new_agent()


@pytest.fixture
def stopped(tracked, agent):
    """A tracked table whose capture job is stopped, and an agent."""
    until_state(tracked, JobState.RUNNING)
    tracked.engine.sync(DATABASE, SECONDS)
    tracked.engine.stop_job(DATABASE)
    return tracked


def test_a_call_scans_once_and_returns_when_rows_are_published(stopped):
    stopped.sql("INSERT INTO t VALUES (1, 'a')")
    stopped.engine.scan(DATABASE)
    assert [row["id"] for row in stopped.rows("public_t")] == [1]


def test_one_call_takes_at_most_maxscans_cycles_of_maxtrans(stopped):
    for number in range(5):
        stopped.sql(f"INSERT INTO t VALUES ({number}, 'a')")
    stopped.engine.scan(DATABASE, maxtrans=2, maxscans=1)
    assert [row["id"] for row in stopped.rows("public_t")] == [0, 1]
    stopped.engine.scan(DATABASE, maxtrans=1, maxscans=2)
    assert len(stopped.rows("public_t")) == 4


def test_a_continuous_call_scans_until_its_caller_says_stop(stopped):
    stop = Event()
    with ThreadPoolExecutor() as pool:
        call = pool.submit(stopped.engine.scan, DATABASE, continuous=1, pollinginterval=1, stop=stop.is_set)
        try:
            until(lambda: any(c.claimed for c in stopped.control.calls.list()), "the call is taken")
            for number in range(3):
                stopped.sql(f"INSERT INTO t VALUES ({number}, 'a')")
                stopped.engine.sync(DATABASE, SECONDS)
                assert len(stopped.rows("public_t")) == number + 1
        finally:
            stop.set()
        call.result(SECONDS)
    assert stopped.control.calls.list() == []
    with pytest.raises(SyncTimeout):
        stopped.engine.sync(DATABASE, SECONDS)


def test_a_call_is_refused_while_the_capture_job_runs(tracked, agent):
    until_state(tracked, JobState.RUNNING)
    with pytest.raises(ScanFailed, match=f"cdc.{DATABASE}_capture") as refused:
        tracked.engine.scan(DATABASE)
    assert refused.value.line().startswith("Msg 22903, Level 16, State 1: ")


def test_while_a_called_scan_runs_another_is_refused_and_the_job_waits_for_its_end(stopped):
    stop = Event()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(stopped.engine.scan, DATABASE, continuous=1, stop=stop.is_set)
        try:
            until(lambda: any(call.claimed for call in stopped.control.calls.list()), "the call is taken")
            with pytest.raises(ScanFailed, match=r"Another session \(a call of sp_cdc_scan\)"):
                stopped.engine.scan(DATABASE)
            with pytest.raises(ScanAlreadyRunning, match=f"cdc.{DATABASE}_capture starts when it ends"):
                stopped.engine.start_job(DATABASE)
            waiting = until_state(stopped, JobState.STARTING)
            assert waiting.message == WAITS_FOR_SCAN
            [finding] = stopped.engine.status().findings
            assert (finding.verdict, WAITS_FOR_SCAN in finding.text) == (Verdict.ATTENTION, True)
            stopped.engine.stop_job(DATABASE)
            assert job_of(stopped).state is JobState.STOPPED
            with pytest.raises(ScanAlreadyRunning):
                stopped.engine.start_job(DATABASE)
        finally:
            stop.set()
        first.result(SECONDS)
    until_state(stopped, JobState.RUNNING)


def test_what_ends_the_scan_is_raised_by_the_call(stopped):
    stopped.sql(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        " WHERE database = current_database()"
    )
    with pytest.raises(ScanFailed) as failed:
        stopped.engine.scan(DATABASE)
    [error] = stopped.engine.scan_errors(DATABASE)[-1:]
    assert (failed.value.number, str(failed.value)) == (error.error_number, error.error_message)


def test_a_scan_ends_with_the_process_that_called_it(stopped):
    dsn = stopped.control._connections._dsn
    caller = subprocess.Popen(
        [sys.executable, "-c", CALL_AND_HANG, dsn, DATABASE], stdout=subprocess.PIPE, text=True
    )
    try:
        number = int(caller.stdout.readline())
        until(lambda: stopped.control.calls.get(number).claimed, "the call is taken")
    finally:
        caller.kill()
        caller.wait()
        caller.stdout.close()
    until(lambda: stopped.control.calls.get(number) is None, "the row is cleared away")
    stopped.sql("INSERT INTO t VALUES (1, 'a')")
    stopped.engine.scan(DATABASE)
    assert len(stopped.rows("public_t")) == 1


def test_a_call_without_an_agent_is_an_error_at_once(tracked):
    with pytest.raises(AgentNotRunning):
        tracked.engine.scan(DATABASE)
    assert tracked.control.calls.list() == []


def test_an_agent_that_stops_ends_the_call_with_an_error(stopped, agent):
    with ThreadPoolExecutor() as pool:
        call = pool.submit(stopped.engine.scan, DATABASE, continuous=1)
        until(lambda: any(c.claimed for c in stopped.control.calls.list()), "the call is taken")
        agent.stop()
        with pytest.raises((AgentNotRunning, ScanFailed), match="The agent is not running"):
            call.result(SECONDS)


def test_a_polling_interval_needs_continuous_and_nothing_is_asked_of_the_agent(stopped):
    with pytest.raises(PollingWithoutContinuous) as refused:
        stopped.engine.scan(DATABASE, pollinginterval=5)
    assert refused.value.number == 22999
    assert stopped.control.calls.list() == []


def test_a_call_that_nobody_claims_can_be_withdrawn(tracked):
    control = tracked.control
    with control.calls.placed(DATABASE, CaptureParameters()) as number:
        control.calls.withdraw(control.calls.get(number))
        [call] = control.calls.list()
        assert (call.wanted, call.claimed, call.ended) == (False, False, False)
        assert [control.calls.claim(number), control.calls.claim(number)] == [True, False]
    assert control.calls.get(number) is None
