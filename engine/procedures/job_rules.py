"""What sys.sp_cdc_change_job makes of its parameters (reference/procedures.md, 3). Pure."""

from __future__ import annotations

from dataclasses import replace

from engine.errors import (
    CaptureParametersForCleanup,
    ContinuousNotABit,
    JobTypeUnsupported,
    MaxScansOutOfRange,
    MaxTransOutOfRange,
    PollingIntervalOutOfRange,
)
from engine.model.job import CaptureParameters, JobType

LARGEST_INT = 2**31 - 1
LONGEST_POLLINGINTERVAL = 86399
"""Seconds: just under a day."""


def job_type_of(text: str) -> JobType:
    """The job type by its name. Raises JobTypeUnsupported."""
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
    given = (maxtrans, maxscans, continuous, pollinginterval)
    if job_type is JobType.CLEANUP and any(value is not None for value in given):
        raise CaptureParametersForCleanup
    _check(maxtrans, maxscans, continuous, pollinginterval)
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


def _check(
    maxtrans: int | None, maxscans: int | None, continuous: bool | int | None, pollinginterval: int | None
) -> None:
    if maxtrans is not None and not 0 < maxtrans <= LARGEST_INT:
        raise MaxTransOutOfRange
    if maxscans is not None and not 0 < maxscans <= LARGEST_INT:
        raise MaxScansOutOfRange
    if continuous is not None and continuous not in (0, 1):
        raise ContinuousNotABit
    if pollinginterval is not None and not 0 <= pollinginterval <= LONGEST_POLLINGINTERVAL:
        raise PollingIntervalOutOfRange
