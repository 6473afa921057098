"""msdb.dbo.cdc_jobs and what the agent reports in it."""

from __future__ import annotations

from uuid import uuid4

import pytest

from engine.control import JOBS, REPORTED
from engine.errors import JobMissing
from engine.model.job import CaptureParameters, JobState, JobType


@pytest.fixture
def job(control):
    control.jobs.add("hr", CaptureParameters(), wanted=True)
    return control.jobs.get("hr")


def test_a_new_job_waits_for_the_agent(job):
    assert (job.name, job.state, job.running, job.wanted) == ("cdc.hr_capture", JobState.STOPPED, None, True)


def test_a_second_job_of_a_type_is_not_added(control, job):
    assert not control.jobs.add("hr", CaptureParameters(maxtrans=1), wanted=False)
    assert control.jobs.list() == [job]


def test_new_parameters_leave_the_running_ones_alone(control, job):
    control.jobs.report(job.job_id, JobState.RUNNING, "Running.", job.configured)
    control.jobs.change(job, CaptureParameters(maxtrans=7))
    now = control.jobs.get("hr")
    assert (now.configured.maxtrans, now.running.maxtrans) == (7, 500)


def test_since_moves_only_with_the_state(control, job):
    control.jobs.report(job.job_id, JobState.FAILED, "first", None)
    first = control.jobs.get("hr")
    control.jobs.report(job.job_id, JobState.FAILED, "second", None)
    second = control.jobs.get("hr")
    assert (second.since, second.message) == (first.since, "second")


def test_a_report_is_announced_and_does_not_wake_the_agent(control, job):
    with control.listen(REPORTED) as reports, control.listen(JOBS) as agent:
        control.jobs.report(job.job_id, JobState.RUNNING, "Running.", job.configured)
        assert reports.wait(60).payload == "hr"
        assert agent.wait(0) is None


def test_a_report_on_a_dropped_job_is_nothing(control, job):
    control.jobs.remove("hr")
    control.jobs.report(job.job_id, JobState.STOPPED, "Stopped.", None)
    control.jobs.report(uuid4(), JobState.STOPPED, "Stopped.", None)
    assert control.jobs.get("hr") is None


def test_a_job_that_is_missing_cannot_be_wanted(control):
    with pytest.raises(JobMissing):
        control.jobs.want("hr", JobType.CAPTURE, True)


def test_whoever_listens_for_jobs_is_an_agent(control):
    assert not control.agent_is_alive()
    with control.listen(JOBS):
        assert control.agent_is_alive()
