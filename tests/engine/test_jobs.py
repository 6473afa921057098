"""Adding, changing and dropping jobs over a real control database; the rules are in test_job_rules."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from engine import errors
from engine.control import JOBS
from engine.model.job import CaptureParameters, CleanupParameters, JobState, JobType, RunOutcome

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_a_job_can_be_there_before_the_first_table(engine, enabled):
    engine.add_job(enabled, "capture")
    [job] = engine.help_jobs(enabled)
    assert (job.name, job.wanted, job.configured) == ("cdc.hr_capture", True, CaptureParameters())


def test_an_added_job_has_what_is_given_and_waits_where_it_is_not_started(engine, enabled):
    engine.add_job(enabled, "capture", start_job=0, maxtrans=7, maxscans=3, pollinginterval=0)
    [job] = engine.help_jobs(enabled)
    assert (job.wanted, job.configured) == (False, CaptureParameters(7, 3, True, 0))


def test_a_one_shot_job_has_no_polling_interval(engine, enabled):
    engine.add_job(enabled, "capture", continuous=0, pollinginterval=60)
    [job] = engine.help_jobs(enabled)
    assert job.configured == CaptureParameters(continuous=False, pollinginterval=0)


def test_a_job_is_added_once(engine, enabled):
    engine.add_job(enabled, "capture", maxtrans=7)
    with pytest.raises(errors.JobNotAdded, match=r"cdc\.hr_capture"):
        engine.add_job(enabled, "capture")
    [job] = engine.help_jobs(enabled)
    assert job.configured.maxtrans == 7


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"job_type": "backup"}, errors.JobTypeUnsupported),
        ({"job_type": None}, errors.ParameterEmpty),
        ({"job_type": "capture", "start_job": 2}, errors.NotABit),
        ({"job_type": "capture", "maxtrans": 0}, errors.MaxTransOutOfRange),
        ({"job_type": "capture", "maxscans": 0}, errors.MaxScansOutOfRange),
        ({"job_type": "capture", "continuous": 2}, errors.ContinuousNotABit),
        ({"job_type": "capture", "pollinginterval": 86400}, errors.PollingIntervalOutOfRange),
        ({"job_type": "capture", "retention": 4320}, errors.CleanupParametersForCapture),
        ({"job_type": "cleanup", "maxtrans": 500}, errors.CaptureParametersForCleanup),
        ({"job_type": "cleanup", "retention": 0}, errors.RetentionOutOfRange),
        ({"job_type": "cleanup", "threshold": 0}, errors.ThresholdOutOfRange),
        ({"job_type": "cleanup", "retention": 52_594_801}, errors.RetentionOutOfRange),
        ({"job_type": "cleanup", "schedule": "never"}, errors.ScheduleInvalid),
        ({"job_type": "capture", "schedule": "0 25 * * *"}, errors.ScheduleInvalid),
    ],
)
def test_what_is_refused_adds_nothing(engine, enabled, given, error):
    with pytest.raises(error):
        engine.add_job(enabled, **given)
    assert engine.help_jobs(enabled) == []


def test_jobs_need_an_enabled_database(engine, hr):
    with pytest.raises(errors.DatabaseNotEnabled):
        engine.add_job(hr, "capture")
    with pytest.raises(errors.DatabaseNotEnabled):
        engine.drop_job(hr, "capture")


def test_a_dropped_job_is_gone_and_the_agent_is_told(engine, enabled, control):
    engine.add_job(enabled, "capture")
    with control.listen(JOBS) as agent:
        engine.drop_job(enabled, "capture")
        assert agent.wait(60).payload == enabled
    assert engine.help_jobs(enabled) == []
    with pytest.raises(errors.JobMissing):
        engine.drop_job(enabled, "capture")


def test_dropping_needs_a_type_that_there_is(engine, enabled):
    with pytest.raises(errors.ParameterEmpty):
        engine.drop_job(enabled, None)
    with pytest.raises(errors.JobTypeUnsupported):
        engine.drop_job(enabled, "backup")
    with pytest.raises(errors.JobMissing):
        engine.drop_job(enabled, "cleanup")


def test_the_next_table_adds_a_dropped_job_again(engine, enabled):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    engine.drop_job(enabled, "capture")
    engine.enable_table(enabled, "hr", "note", role_name=None)
    capture, _ = engine.help_jobs(enabled)
    assert capture.wanted


def test_changing_refuses_parameters_of_the_other_job(engine, enabled):
    engine.add_job(enabled, "capture")
    with pytest.raises(errors.CleanupParametersForCapture):
        engine.change_job(enabled, retention=60)
    with pytest.raises(errors.CaptureParametersForCleanup):
        engine.change_job(enabled, "cleanup", maxtrans=1)
    [job] = engine.help_jobs(enabled)
    assert job.configured == CaptureParameters()


def test_of_two_that_add_a_job_at_once_one_is_told_so(engine, enabled):
    def add(number: int) -> bool:
        try:
            engine.add_job(enabled, "cleanup", threshold=number)
        except errors.JobNotAdded:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(add, range(1, 5))) == 1
    assert len(engine.help_jobs(enabled)) == 1


def test_the_first_table_adds_both_jobs_and_cleanup_waits_for_its_schedule(engine, enabled):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    capture, cleanup = engine.help_jobs(enabled)
    assert (capture.name, capture.wanted) == ("cdc.hr_capture", True)
    assert (cleanup.name, cleanup.wanted, cleanup.state) == ("cdc.hr_cleanup", False, JobState.STOPPED)
    assert (cleanup.configured, cleanup.schedule) == (CleanupParameters(4320, 5000), "0 2 * * *")
    assert engine.job_history(enabled) == []


def test_a_dropped_cleanup_job_does_not_come_back_with_the_next_table(engine, enabled):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    engine.drop_job(enabled, "cleanup")
    engine.enable_table(enabled, "hr", "note", role_name=None)
    [job] = engine.help_jobs(enabled)
    assert job.name == "cdc.hr_capture"


def test_the_last_table_takes_both_jobs_along(engine, enabled):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    engine.disable_table(enabled, "hr", "department", "all")
    assert engine.help_jobs(enabled) == []


def test_an_added_cleanup_job_runs_at_once_unless_told_otherwise(engine, enabled):
    engine.add_job(enabled, "cleanup", retention=60)
    [job] = engine.help_jobs(enabled)
    assert (job.wanted, job.configured) == (True, CleanupParameters(60, 5000))
    engine.drop_job(enabled, "cleanup")
    engine.add_job(enabled, "cleanup", start_job=0, threshold=7, schedule="*/5  * * * *")
    [job] = engine.help_jobs(enabled)
    assert (job.wanted, job.configured, job.schedule) == (False, CleanupParameters(4320, 7), "*/5 * * * *")


def test_changing_a_cleanup_job_leaves_the_rest_as_it_is(engine, enabled):
    engine.add_job(enabled, "cleanup", start_job=0)
    engine.change_job(enabled, "cleanup", retention=60)
    engine.change_job(enabled, "cleanup", threshold=7)
    [job] = engine.help_jobs(enabled)
    assert (job.configured, job.schedule) == (CleanupParameters(60, 7), "0 2 * * *")
    engine.change_job(enabled, "cleanup", schedule="")
    [job] = engine.help_jobs(enabled)
    assert (job.configured, job.schedule) == (CleanupParameters(60, 7), None)


def test_what_is_wrong_changes_nothing_of_a_cleanup_job(engine, enabled):
    engine.add_job(enabled, "cleanup", start_job=0)
    before = engine.help_jobs(enabled)
    for given, error in (
        ({"retention": 0}, errors.RetentionOutOfRange),
        ({"retention": 60, "threshold": 0}, errors.ThresholdOutOfRange),
        ({"retention": 60, "schedule": "0 25 * * *"}, errors.ScheduleInvalid),
        ({"retention": 60, "pollinginterval": 5}, errors.CaptureParametersForCleanup),
    ):
        with pytest.raises(error):
            engine.change_job(enabled, "cleanup", **given)
    assert engine.help_jobs(enabled) == before


def test_starting_cleanup_without_an_agent_is_remembered_and_can_be_taken_back(engine, enabled):
    engine.add_job(enabled, "cleanup", start_job=0)
    with pytest.raises(errors.AgentNotRunning, match="will start with it"):
        engine.start_job(enabled, "cleanup")
    [job] = engine.help_jobs(enabled)
    assert job.wanted
    engine.stop_job(enabled, "cleanup")
    [job] = engine.help_jobs(enabled)
    assert (job.wanted, job.state) == (False, JobState.STOPPED)


def test_cleanup_needs_its_job(engine, enabled):
    with pytest.raises(errors.JobMissing):
        engine.cleanup(enabled)
    with pytest.raises(errors.JobTypeUnsupported):
        engine.job_history(enabled, "backup")


def test_history_goes_with_its_job(engine, enabled, control):
    engine.add_job(enabled, "cleanup")
    job = control.jobs.get(enabled, JobType.CLEANUP)
    lease = control.leases.acquire(enabled, "test", 60, JobType.CLEANUP)
    run = control.runs.claim(job, lease, NOON, None)
    control.runs.finish(run, NOON, RunOutcome.SUCCEEDED, "Deleted 3 rows.", 3)
    [told] = engine.job_history(enabled, "cleanup")
    assert (told.job_type, told.outcome, told.deleted_rows) == (JobType.CLEANUP, RunOutcome.SUCCEEDED, 3)
    assert engine.help_jobs(enabled)[0].last_run == told
    engine.drop_job(enabled, "cleanup")
    assert engine.job_history(enabled) == []
