"""Ceilings of capture over time, from the runs of its job."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from dashboard.ceilings import CeilingStep, ceiling_at, ceiling_steps
from engine.model.job import CaptureParameters, Job, JobRun, JobState, JobType, RunOutcome
from tests.dashboard.test_sessions import scan

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DEFAULTS: dict[str, int | bool | str] = {
    "maxtrans": 500,
    "maxscans": 10,
    "continuous": True,
    "pollinginterval": 5,
}


def a_run(start: int, end: int | None, outcome: RunOutcome, **parameters: int | bool) -> JobRun:
    begun, ended = NOON + start * MINUTE, None if end is None else NOON + end * MINUTE
    given = DEFAULTS | parameters
    return JobRun(JobType.CAPTURE, begun, ended, outcome, "", 0, parameters=given)


def a_job(running: CaptureParameters | None) -> Job:
    state = JobState.STOPPED if running is None else JobState.RUNNING
    return Job(
        uuid4(),
        "hr",
        JobType.CAPTURE,
        CaptureParameters(),
        running,
        running is not None,
        state,
        NOON + 9 * MINUTE,
        "",
    )


def test_each_run_has_the_ceiling_of_what_it_ran_with() -> None:
    runs = [
        a_run(5, None, RunOutcome.RUNNING, maxtrans=700),
        a_run(0, 4, RunOutcome.STOPPED),
        a_run(-9, -5, RunOutcome.FAILED, pollinginterval=0),
    ]
    steps = ceiling_steps(runs, a_job(CaptureParameters(700)), [])
    assert steps == [
        CeilingStep(NOON - 9 * MINUTE, NOON - 5 * MINUTE, None),
        CeilingStep(NOON, NOON + 4 * MINUTE, 1000),
        CeilingStep(NOON + 5 * MINUTE, None, 1400),
    ]
    moments = (NOON - 8 * MINUTE, NOON, NOON + 4.5 * MINUTE, NOON + 99 * MINUTE)
    assert [ceiling_at(steps, each) for each in moments] == [None, 1000, None, 1400]


def test_a_run_that_was_cut_off_ends_with_its_last_session() -> None:
    cut = a_run(0, None, RunOutcome.INTERRUPTED)
    after = a_run(5, None, RunOutcome.RUNNING)
    sessions = [scan(1, 60), scan(2, 90), scan(3, 400)]
    end = sessions[1].end_time
    job = a_job(CaptureParameters())
    assert [step.end for step in ceiling_steps([after, cut], job, sessions)] == [end, None]
    dead = ceiling_steps([after], a_job(None), sessions)  # and nobody has said so of its run
    assert [step.end for step in dead] == [sessions[2].end_time]
    assert ceiling_steps([cut], None, []) == [CeilingStep(NOON, NOON, 1000)]


def test_what_has_just_begun_is_not_in_the_history_yet() -> None:
    stopped = a_run(0, 4, RunOutcome.STOPPED)
    steps = ceiling_steps([stopped], a_job(CaptureParameters(700)), [])
    assert steps[-1] == CeilingStep(NOON + 9 * MINUTE, None, 1400)
    assert len(ceiling_steps([stopped], a_job(None), [])) == 1


def test_a_step_of_ones_own_has_no_ceiling_of_parameters() -> None:
    own = replace(a_run(0, None, RunOutcome.RUNNING), parameters=DEFAULTS | {"step": "PYTHON"})
    assert ceiling_steps([own], None, []) == []
