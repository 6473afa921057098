"""Adding, changing and dropping jobs over a real control database; the rules are in test_job_rules."""

from __future__ import annotations

import pytest

from engine import errors
from engine.control import JOBS
from engine.model.job import CaptureParameters


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
        ({"job_type": "cleanup", "retention": 4320, "threshold": 5000}, errors.CleanupNotRun),
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
    [job] = engine.help_jobs(enabled)
    assert job.wanted


def test_changing_refuses_parameters_of_the_other_job(engine, enabled):
    engine.add_job(enabled, "capture")
    with pytest.raises(errors.CleanupParametersForCapture):
        engine.change_job(enabled, retention=60)
    with pytest.raises(errors.CaptureParametersForCleanup):
        engine.change_job(enabled, "cleanup", maxtrans=1)
    [job] = engine.help_jobs(enabled)
    assert job.configured == CaptureParameters()
