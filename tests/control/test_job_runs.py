"""Runs of cleanup jobs: who begins one, how it ends, and what a dead agent leaves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engine.control import REPORTED
from engine.control.job_runs import INTERRUPTED, RUNS_KEPT
from engine.errors import LeaseLost
from engine.model.job import CaptureParameters, CleanupParameters, JobState, JobType, RunOutcome
from engine.model.lsn import Lsn

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TOMORROW = NOON + timedelta(days=1)


@pytest.fixture
def job(control):
    control.jobs.add("hr", CleanupParameters(60, 7), wanted=True)
    return control.jobs.get("hr", JobType.CLEANUP)


@pytest.fixture
def lease(control):
    return control.leases.acquire("hr", "me", 60, JobType.CLEANUP)


def now(control):
    return control.jobs.get("hr", JobType.CLEANUP)


def test_a_run_begins_with_the_parameters_of_the_row_and_is_no_longer_asked_for(control, job, lease):
    control.jobs.change(job, CleanupParameters(30, 7))
    run = control.runs.claim(job, lease, NOON, TOMORROW)
    assert run.parameters == CleanupParameters(30, 7)
    running = now(control)
    assert (running.state, running.wanted, running.next_run) == (JobState.RUNNING, False, TOMORROW)
    assert running.running == CleanupParameters(30, 7)
    assert running.last_run.outcome is RunOutcome.RUNNING


def test_a_job_that_nobody_asked_for_and_that_is_not_due_does_not_run(control, lease):
    control.jobs.add("hr", CleanupParameters(), wanted=False)
    job = now(control)
    assert control.runs.claim(job, lease, NOON, TOMORROW) is None
    control.jobs.expect(job, NOON)
    assert control.runs.claim(job, lease, NOON - timedelta(seconds=1), TOMORROW) is None
    assert control.runs.claim(job, lease, NOON, TOMORROW) is not None
    assert control.runs.claim(job, lease, NOON, TOMORROW) is None


def test_an_expectation_of_an_older_schedule_does_not_count(control, job):
    control.jobs.reschedule("hr", JobType.CLEANUP, "0 3 * * *")
    control.jobs.expect(job, NOON)
    assert now(control).next_run is None


def test_who_has_lost_the_lease_begins_nothing_and_moves_nothing(control, job, lease):
    control.leases.acquire("hr", "me", 60, JobType.CLEANUP)
    with pytest.raises(LeaseLost):
        control.runs.claim(job, lease, NOON, TOMORROW)
    with pytest.raises(LeaseLost):
        control.low_endpoints.raise_all(lease, Lsn.MAX, NOON)
    assert now(control).wanted


def test_the_leases_of_both_jobs_stand_side_by_side(control, lease):
    capture = control.leases.acquire("hr", "other", 60)
    assert capture is not None
    assert control.leases.acquire("hr", "other", 60, JobType.CLEANUP) is None
    assert control.leases.renew(lease)
    assert [state.holder for state in control.leases.list()] == ["other"]


def test_how_a_run_ended_is_told_by_the_job_and_by_the_history(control, job, lease):
    run = control.runs.claim(job, lease, NOON, TOMORROW)
    control.runs.progress(run, 2)
    assert now(control).last_run.deleted_rows == 2
    with control.listen(REPORTED) as reports:
        control.runs.finish(run, TOMORROW, RunOutcome.FAILED, "disk full", 3)
        assert reports.wait(5).payload == "hr"
    ended = now(control)
    assert (ended.state, ended.message, ended.running) == (JobState.FAILED, "disk full", None)
    assert (ended.last_run.end_time, ended.last_run.deleted_rows) == (TOMORROW, 3)
    control.jobs.want("hr", JobType.CLEANUP, True)
    control.runs.finish(control.runs.claim(job, lease, NOON, None), NOON, RunOutcome.SUCCEEDED, "done", 0)
    assert now(control).state is JobState.STOPPED
    assert [run.message for run in control.runs.list("hr", None, 9)] == ["done", "disk full"]
    assert control.runs.list("hr", JobType.CAPTURE, 9) == []


def test_a_run_that_a_dead_agent_left_is_interrupted_and_not_begun_again(control, job, lease):
    control.runs.claim(job, lease, NOON, TOMORROW)
    successor = control.leases.acquire("hr", "me", 60, JobType.CLEANUP)
    assert control.runs.claim(now(control), successor, NOON, TOMORROW) is None
    left = now(control)
    assert (left.state, left.message, left.running) == (JobState.STOPPED, INTERRUPTED, None)
    assert (left.last_run.outcome, left.last_run.end_time) == (RunOutcome.INTERRUPTED, None)


def test_a_job_that_runs_is_asked_to_stop_and_one_that_does_not_stays_as_it_is(control, job, lease):
    control.jobs.stop("hr", JobType.CLEANUP)
    assert (now(control).state, now(control).wanted) == (JobState.STOPPED, False)
    control.jobs.want("hr", JobType.CLEANUP, True)
    control.runs.claim(job, lease, NOON, TOMORROW)
    control.jobs.stop("hr", JobType.CLEANUP)
    assert now(control).state is JobState.STOPPING


def test_a_job_dropped_while_it_runs_takes_its_run_along(control, job, lease):
    run = control.runs.claim(job, lease, NOON, TOMORROW)
    control.jobs.remove("hr", JobType.CLEANUP)
    control.runs.progress(run, 2)
    control.runs.finish(run, NOON, RunOutcome.STOPPED, "Stopped.", 2)
    assert control.runs.list("hr", None, 9) == []


def test_the_newest_runs_are_kept(control, job, lease):
    with control._connections.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO dbo.job_history (job_id, start_time, outcome, message, deleted_rows)"
            " SELECT job_id, now(), 'succeeded', 'n' || n, 0 FROM dbo.cdc_jobs, generate_series(1, 1200) n"
        )
    control.runs.claim(job, lease, NOON, TOMORROW)
    kept = control.runs.list("hr", None, 5000)
    assert (len(kept), kept[0].message) == (RUNS_KEPT, "Running.")


def test_one_job_of_each_type(control, job):
    control.jobs.add("hr", CaptureParameters(), wanted=False)
    assert [each.job_type for each in control.jobs.list("hr")] == [JobType.CAPTURE, JobType.CLEANUP]
    assert control.jobs.get("hr").schedule is None
    assert control.jobs.get("hr").configured == CaptureParameters()
