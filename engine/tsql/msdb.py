"""Procedures of msdb that administrators of CDC jobs call: jobs by their names, and when cleanup runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from engine.model.job import AnyJob, is_capture
from engine.tsql.calling import REQUIRED, Call, Parameter, Procedure
from engine.tsql.messages import sql_error
from engine.tsql.types import GUID, INT, SYSNAME, TEXT, SqlType

_DAILY, _AT_START, _OTHER = 4, 64, 0
_COLUMNS: Sequence[tuple[str, SqlType]] = (
    ("job_id", GUID), ("job_name", SYSNAME), ("schedule_name", SYSNAME), ("enabled", INT), ("freq_type", INT),
    ("freq_interval", INT), ("active_start_time", INT), ("schedule_description", TEXT),
    ("next_run_date", INT), ("next_run_time", INT),
)  # fmt: skip


def _job(call: Call) -> AnyJob:
    """The job named by @job_name, of whatever database. Raises 14262."""
    wanted = str(call["job_name"])
    for database in call.engine.databases():
        if database.is_cdc_enabled and wanted.lower().startswith(f"cdc.{database.name.lower()}_"):
            for job in call.engine.help_jobs(database.name, call.principal):
                if job.name.lower() == wanted.lower():
                    return job
    raise sql_error(14262, "@job_name", wanted)


def _start(call: Call) -> None:
    job = _job(call)
    call.engine.start_job(job.database, job.job_type, call.principal)


def _stop(call: Call) -> None:
    job = _job(call)
    call.engine.stop_job(job.database, job.job_type, call.principal)


def _help_schedule(call: Call) -> None:
    job = _job(call)
    call.rows(_COLUMNS, [_schedule_row(job)])


def _schedule_row(job: AnyJob) -> Sequence[Any]:
    """A capture job starts with the agent unless it has cron text too; a daily one also has a time."""
    identity = (str(job.job_id).upper(), job.name)
    if is_capture(job) and job.schedule is None:
        return (*identity, "CDC capture agent schedule.", 1, _AT_START, 0, 0, "Starts with the agent.", 0, 0)
    at = _daily_at(job.schedule)
    kind = (_OTHER, 0, 0) if at is None else (_DAILY, 1, at)
    return (
        *identity, f"CDC {job.job_type} agent schedule.", int(job.schedule is not None), *kind,
        job.schedule or "Runs when it is started.", *_date_and_time(job.next_run),
    )  # fmt: skip


def _daily_at(schedule: str | None) -> int | None:
    """hhmmss of cron text that means every day at one time; None for all else."""
    fields = (schedule or "").split()
    if len(fields) != 5 or fields[2:] != ["*", "*", "*"] or not (fields[0] + fields[1]).isdigit():
        return None
    return int(fields[1]) * 10000 + int(fields[0]) * 100


def _date_and_time(moment: datetime | None) -> tuple[int, int]:
    """yyyymmdd and hhmmss as msdb has them; zeros for none."""
    return (0, 0) if moment is None else (int(moment.strftime("%Y%m%d")), int(moment.strftime("%H%M%S")))


_JOB_NAME = (Parameter("@job_name", SYSNAME, REQUIRED),)
MSDB_PROCEDURES: Mapping[str, Procedure] = {
    procedure.name: procedure
    for procedure in (
        Procedure("sp_start_job", _JOB_NAME, _start),
        Procedure("sp_stop_job", _JOB_NAME, _stop),
        Procedure("sp_help_jobschedule", _JOB_NAME, _help_schedule),
    )
}
"""By their names in lower case, called as msdb.dbo.sp_…."""
