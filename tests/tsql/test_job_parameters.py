"""What sys.sp_cdc_help_jobs and msdb.dbo.cdc_jobs show of each job's parameters."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from engine.model.job import CaptureParameters, CleanupParameters, Job, JobState, JobType
from engine.tsql.catalog_views import job_parameters

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("job_type", "configured", "shown"),
    [
        (JobType.CAPTURE, CaptureParameters(), (500, 10, True, 5, 0, 0)),
        (JobType.CLEANUP, CleanupParameters(), (0, 0, False, 0, 4320, 5000)),
    ],
)
def test_parameters_of_the_other_job_are_zero(job_type, configured, shown):
    job = Job(uuid4(), "hr", job_type, configured, None, True, JobState.STOPPED, NOW, "")
    assert job_parameters(job) == shown
