"""What sp_cdc_add_job and sp_cdc_change_job make of their parameters (reference/procedures.md, 3). Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from engine.errors import (
    CaptureParametersForCleanup,
    CleanupParametersForCapture,
    ContinuousNotABit,
    JobTypeUnsupported,
    MaxScansOutOfRange,
    MaxTransOutOfRange,
    ParameterEmpty,
    PollingIntervalOutOfRange,
    PollingWithoutContinuous,
    RetentionOutOfRange,
    ScheduleInvalid,
    StepInvalid,
    SubsystemUnknown,
    ThresholdOutOfRange,
)
from engine.model.job import CaptureParameters, CleanupParameters, JobStep, JobType, Subsystem
from engine.model.schedule import ScheduleUnreadable, next_run

LARGEST_INT = 2**31 - 1
LARGEST_BIGINT = 2**63 - 1
LONGEST_POLLINGINTERVAL = 86399
"""Seconds: just under a day."""
LONGEST_RETENTION = 52594800
"""Minutes, as error 22994 says; the pages of the job procedures say 52494800."""


def job_type_of(text: str | None) -> JobType:
    """The job type by its name. Raises ParameterEmpty, JobTypeUnsupported."""
    if not text:
        raise ParameterEmpty("@job_type")
    try:
        return JobType(text.strip().lower())
    except ValueError as error:
        raise JobTypeUnsupported(text) from error


def changed(
    job_type: JobType,
    parameters: CaptureParameters,
    maxtrans: int | None = None,
    maxscans: int | None = None,
    continuous: bool | int | None = None,
    pollinginterval: int | None = None,
) -> CaptureParameters:
    """``parameters`` with what is given; None leaves a value unchanged.

    A job that is not continuous has no polling interval: the one given is ignored. A polling interval
    without ``continuous`` makes the job continuous. Raises MaxTransOutOfRange, MaxScansOutOfRange,
    ContinuousNotABit, PollingIntervalOutOfRange; CaptureParametersForCleanup for a cleanup job.
    """
    check_capture_parameters(job_type, maxtrans, maxscans, continuous, pollinginterval)
    if continuous is None and pollinginterval:
        continuous = True
    result = replace(
        parameters,
        maxtrans=parameters.maxtrans if maxtrans is None else maxtrans,
        maxscans=parameters.maxscans if maxscans is None else maxscans,
        continuous=parameters.continuous if continuous is None else bool(continuous),
        pollinginterval=parameters.pollinginterval if pollinginterval is None else pollinginterval,
    )
    return result if result.continuous else replace(result, pollinginterval=0)


def scan_parameters(
    maxtrans: int | None,
    maxscans: int | None,
    continuous: bool | int | None,
    pollinginterval: int | None,
) -> CaptureParameters:
    """What sys.sp_cdc_scan runs with; None is its default: 500, 10, 0, 0.

    Raises MaxTransOutOfRange, MaxScansOutOfRange, ContinuousNotABit, PollingIntervalOutOfRange,
    PollingWithoutContinuous.
    """
    check_capture_parameters(JobType.CAPTURE, maxtrans, maxscans, continuous, pollinginterval)
    if pollinginterval and not continuous:
        raise PollingWithoutContinuous
    defaults = CaptureParameters()
    return CaptureParameters(
        maxtrans=defaults.maxtrans if maxtrans is None else maxtrans,
        maxscans=defaults.maxscans if maxscans is None else maxscans,
        continuous=bool(continuous),
        pollinginterval=pollinginterval or 0,
    )


def check_capture_parameters(
    job_type: JobType,
    maxtrans: int | None = None,
    maxscans: int | None = None,
    continuous: bool | int | None = None,
    pollinginterval: int | None = None,
) -> None:
    """Whether a job of this type may be given these; None is not given. Raises what `changed` raises."""
    given = (maxtrans, maxscans, continuous, pollinginterval)
    if job_type is JobType.CLEANUP and any(value is not None for value in given):
        raise CaptureParametersForCleanup
    if maxtrans is not None and not 0 < maxtrans <= LARGEST_INT:
        raise MaxTransOutOfRange
    if maxscans is not None and not 0 < maxscans <= LARGEST_INT:
        raise MaxScansOutOfRange
    if continuous is not None and continuous not in (0, 1):
        raise ContinuousNotABit
    if pollinginterval is not None and not 0 <= pollinginterval <= LONGEST_POLLINGINTERVAL:
        raise PollingIntervalOutOfRange


def cleanup_changed(
    parameters: CleanupParameters, retention: int | None = None, threshold: int | None = None
) -> CleanupParameters:
    """``parameters`` with what is given, which has been checked; None leaves a value unchanged."""
    return CleanupParameters(
        retention=parameters.retention if retention is None else retention,
        threshold=parameters.threshold if threshold is None else threshold,
    )


def check_cleanup_parameters(
    job_type: JobType,
    retention: int | None = None,
    threshold: int | None = None,
    schedule: str | None = None,
) -> None:
    """Whether a job of this type may be given these; None is not given.

    retention: minutes; threshold: rows a statement; schedule: cron text, empty for none; a capture job may
    have one too. Raises CleanupParametersForCapture, RetentionOutOfRange, ThresholdOutOfRange,
    ScheduleInvalid.
    """
    for name, value in (("@retention", retention), ("@threshold", threshold)):
        if job_type is JobType.CAPTURE and value is not None:
            raise CleanupParametersForCapture(name)
    if retention is not None and not 0 < retention <= LONGEST_RETENTION:
        raise RetentionOutOfRange
    if threshold is not None and not 0 < threshold <= LARGEST_BIGINT:
        raise ThresholdOutOfRange
    if schedule is not None and schedule.strip():
        _check_schedule(schedule)


def schedule_of(text: str) -> str | None:
    """A schedule that was given, as a job has it: None for an empty one."""
    return " ".join(text.split()) or None


def step_of(subsystem: str | None, command: str | None) -> JobStep | None:
    """The step of a capture job; None without a command. Raises SubsystemUnknown, StepInvalid.

    A Python script is compiled, not run; T-SQL is parsed when it runs, a batch at a time.
    """
    if command is None:
        return None
    try:
        kind = Subsystem((subsystem or "").strip().upper())
    except ValueError as error:
        raise SubsystemUnknown(subsystem or "") from error
    if not command.strip():
        raise StepInvalid("it is empty")
    if "\0" in command:
        raise StepInvalid("it holds a zero byte")
    if kind is Subsystem.PYTHON:
        try:
            compile(command, "<step>", "exec")
        except (SyntaxError, ValueError) as error:
            raise StepInvalid(str(error)) from error
    return JobStep(kind, command)


def _check_schedule(schedule: str) -> None:
    try:
        next_run(schedule, datetime.now(UTC))
    except ScheduleUnreadable as error:
        raise ScheduleInvalid(schedule, str(error)) from error
