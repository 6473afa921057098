"""highwater cleanup start, stop, status."""

from __future__ import annotations

from dataclasses import asdict

import typer

from engine.cli.job_commands import (
    JsonOption,
    headline,
    identity,
    moment,
    show_jobs,
    start_job,
    stop_job,
)
from engine.cli.session import DEFAULT_HOME, DatabaseOption, HomeOption
from engine.model.job import CleanupJob, JobRun, JobType, is_cleanup


def register(app: typer.Typer) -> None:
    """Adds the group ``cleanup``."""
    group = typer.Typer(no_args_is_help=True, help="Start, stop or show a database's cleanup job.")
    group.command()(start)
    group.command()(stop)
    group.command()(status)
    app.add_typer(group, name="cleanup")


def start(database: DatabaseOption = None, home: HomeOption = DEFAULT_HOME) -> None:
    """Run the cleanup job once, now: changes older than its retention go."""
    start_job(database, home, JobType.CLEANUP)


def stop(database: DatabaseOption = None, home: HomeOption = DEFAULT_HOME) -> None:
    """Stop the cleanup job after its statement; it runs again by its schedule."""
    stop_job(database, home, JobType.CLEANUP)


def status(
    database: DatabaseOption = None, as_json: JsonOption = False, home: HomeOption = DEFAULT_HOME
) -> None:
    """Show cleanup jobs: of one database, or of all without -d."""
    form = as_dict if as_json else as_text
    show_jobs(database, home, lambda job: form(job) if is_cleanup(job) else None)


def as_text(job: CleanupJob) -> str:
    """One line on a job, one on when it runs next and, once it has run, one on how it ended."""
    parameters = f"retention {job.configured.retention}, threshold {job.configured.threshold}"
    lines = [headline(job, parameters), f"  {_next(job)}"]
    if job.last_run is not None:
        run = job.last_run
        lines.append(f"  last run {moment(run.start_time)} {run.outcome}: {run.message}")
    if job.running is not None and job.running != job.configured:
        lines.append("  this run began with other parameters")
    return "\n".join(lines)


def as_dict(job: CleanupJob) -> dict[str, object]:
    """A job for ``--json``: times ISO 8601, parameters by the original's names."""
    return {
        **identity(job),
        "configured": asdict(job.configured),
        "running": None if job.running is None else asdict(job.running),
        "schedule": job.schedule,
        "next_run": None if job.next_run is None else job.next_run.isoformat(),
        "last_run": None if job.last_run is None else _run(job.last_run),
    }


def _run(run: JobRun) -> dict[str, object]:
    return {
        "start_time": run.start_time.isoformat(),
        "end_time": None if run.end_time is None else run.end_time.isoformat(),
        "outcome": str(run.outcome),
        "message": run.message,
        "deleted_rows": run.deleted_rows,
    }


def _next(job: CleanupJob) -> str:
    if job.schedule is None:
        return "no schedule: it runs when it is started"
    known = "when the agent runs" if job.next_run is None else moment(job.next_run)
    return f"schedule {job.schedule}, next run {known}"
