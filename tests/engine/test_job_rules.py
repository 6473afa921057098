"""Rules of sys.sp_cdc_add_job and sp_cdc_change_job (reference/procedures.md, 3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import errors
from engine.model.job import CaptureParameters, CleanupParameters, JobType
from engine.procedures.job_rules import (
    changed,
    check_capture_parameters,
    check_cleanup_parameters,
    cleanup_changed,
    job_type_of,
    scan_parameters,
    schedule_of,
)

DEFAULT = CaptureParameters()
ONE_SHOT = CaptureParameters(continuous=False, pollinginterval=0)


def change(parameters=DEFAULT, **given):
    return changed(JobType.CAPTURE, parameters, **given)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"maxtrans": 0}, errors.MaxTransOutOfRange),
        ({"maxtrans": -1}, errors.MaxTransOutOfRange),
        ({"maxtrans": 2**31}, errors.MaxTransOutOfRange),
        ({"maxscans": 0}, errors.MaxScansOutOfRange),
        ({"continuous": 2}, errors.ContinuousNotABit),
        ({"pollinginterval": -1}, errors.PollingIntervalOutOfRange),
        ({"pollinginterval": 86400}, errors.PollingIntervalOutOfRange),
        ({"continuous": 0, "pollinginterval": 86400}, errors.PollingIntervalOutOfRange),
    ],
)
def test_values_outside_their_range(given, error):
    with pytest.raises(error):
        change(**given)


def test_nothing_given_changes_nothing():
    assert change() == DEFAULT


def test_the_limits_themselves_are_allowed():
    made = change(maxtrans=1, maxscans=1, pollinginterval=86399)
    assert (made.maxtrans, made.maxscans, made.pollinginterval) == (1, 1, 86399)
    assert change(pollinginterval=0) == CaptureParameters(pollinginterval=0)


def test_continuous_to_0_forces_the_interval_to_0_whatever_is_given():
    assert change(continuous=0) == ONE_SHOT
    assert change(continuous=0, pollinginterval=60) == ONE_SHOT


def test_an_interval_alone_makes_the_job_continuous():
    assert change(ONE_SHOT, pollinginterval=60) == CaptureParameters(pollinginterval=60)


def test_an_interval_of_0_alone_does_not():
    assert change(ONE_SHOT, pollinginterval=0) == ONE_SHOT


def test_a_cleanup_job_has_no_capture_parameters():
    with pytest.raises(errors.CaptureParametersForCleanup):
        changed(JobType.CLEANUP, DEFAULT, maxtrans=1)


@pytest.mark.parametrize("name", ["maxtrans", "maxscans", "continuous", "pollinginterval"])
def test_each_capture_parameter_is_refused_for_a_cleanup_job(name):
    with pytest.raises(errors.CaptureParametersForCleanup):
        check_capture_parameters(JobType.CLEANUP, **{name: 1})


@pytest.mark.parametrize("name", ["retention", "threshold"])
def test_each_cleanup_parameter_is_refused_for_a_capture_job(name):
    with pytest.raises(errors.CleanupParametersForCapture, match=f"@{name}"):
        check_cleanup_parameters(JobType.CAPTURE, **{name: 1})


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"retention": 0}, errors.RetentionOutOfRange),
        ({"retention": 52594801}, errors.RetentionOutOfRange),
        ({"threshold": 0}, errors.ThresholdOutOfRange),
        ({"threshold": -1}, errors.ThresholdOutOfRange),
        ({"threshold": 2**63}, errors.ThresholdOutOfRange),
        ({"schedule": "0 2 * *"}, errors.ScheduleInvalid),
        ({"schedule": "0 0 31 2 *"}, errors.ScheduleInvalid),
    ],
)
def test_cleanup_values_outside_their_range(given, error):
    with pytest.raises(error):
        check_cleanup_parameters(JobType.CLEANUP, **given)


@given(st.none() | st.integers(1, 52594800), st.none() | st.integers(1, 2**63 - 1))
def test_cleanup_values_within_their_range(retention, threshold):
    check_cleanup_parameters(JobType.CLEANUP, retention, threshold)


def test_a_schedule_is_kept_in_one_spelling_and_an_empty_one_is_none():
    check_cleanup_parameters(JobType.CLEANUP, schedule=" ")
    assert schedule_of("  0 2\t* * * ") == "0 2 * * *"
    assert schedule_of(" ") is None


@given(st.none() | st.integers(1, 52594800), st.none() | st.integers(1, 2**63 - 1))
def test_a_cleanup_job_keeps_what_is_not_given(retention, threshold):
    before = CleanupParameters(60, 7)
    made = cleanup_changed(before, retention, threshold)
    assert (made.retention, made.threshold) == (retention or 60, threshold or 7)
    assert cleanup_changed(made) == made


def test_job_types():
    assert job_type_of("Capture ") is JobType.CAPTURE
    with pytest.raises(errors.JobTypeUnsupported, match="backup"):
        job_type_of("backup")
    for missing in (None, ""):
        with pytest.raises(errors.ParameterEmpty, match="@job_type"):
            job_type_of(missing)


@given(
    st.none() | st.integers(1, 10**6),
    st.none() | st.integers(1, 10**6),
    st.none() | st.booleans(),
    st.none() | st.integers(0, 86399),
    st.sampled_from([DEFAULT, ONE_SHOT]),
)
def test_what_comes_out_is_a_job_that_may_exist(maxtrans, maxscans, continuous, pollinginterval, before):
    made = changed(JobType.CAPTURE, before, maxtrans, maxscans, continuous, pollinginterval)
    assert made.continuous or made.pollinginterval == 0
    assert made.maxtrans == (maxtrans or before.maxtrans)
    assert changed(JobType.CAPTURE, made) == made


def test_a_scan_has_the_defaults_of_its_page():
    assert scan_parameters(None, None, None, None) == CaptureParameters(500, 10, False, 0)


@given(st.sampled_from([0, False, None]), st.integers(1, 86399))
def test_a_scan_that_is_not_continuous_takes_no_polling_interval(continuous, pollinginterval):
    with pytest.raises(errors.PollingWithoutContinuous):
        scan_parameters(None, None, continuous, pollinginterval)


@given(st.integers(0, 86399))
def test_a_continuous_scan_takes_a_polling_interval(pollinginterval):
    assert scan_parameters(1, 2, 1, pollinginterval) == CaptureParameters(1, 2, True, pollinginterval)
