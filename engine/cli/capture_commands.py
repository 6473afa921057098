"""highwater capture start, stop, status, scan."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from engine.cli.job_commands import JsonOption, headline, identity, moment, show_jobs, start_job, stop_job
from engine.cli.session import DEFAULT_HOME, DatabaseOption, HomeOption, opened
from engine.model.job import CaptureParameters, Job, JobStep, JobType, is_capture


def register(app: typer.Typer) -> None:
    """Adds the group ``capture``."""
    group = typer.Typer(no_args_is_help=True, help="Start, stop or show a database's capture job.")
    group.command()(start)
    group.command()(stop)
    group.command()(status)
    group.command()(scan)
    app.add_typer(group, name="capture")


def start(database: DatabaseOption = None, home: HomeOption = DEFAULT_HOME) -> None:
    """Start the capture job."""
    start_job(database, home, JobType.CAPTURE)


def stop(database: DatabaseOption = None, home: HomeOption = DEFAULT_HOME) -> None:
    """Stop the capture job; the source keeps its log until it is started again."""
    stop_job(database, home, JobType.CAPTURE)


def scan(
    database: DatabaseOption = None,
    maxtrans: Annotated[int, typer.Option(help="Transactions of one cycle at most.")] = 500,
    maxscans: Annotated[int, typer.Option(help="Cycles at most, before it returns or pauses.")] = 10,
    continuous: Annotated[bool, typer.Option("--continuous", help="Go on until Ctrl-C.")] = False,
    pollinginterval: Annotated[int, typer.Option(help="Seconds between drains; with --continuous.")] = 0,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Scan the log now, in place of a capture job that is stopped."""
    with opened(home) as engine:
        name = engine.database(database).name
        engine.scan(name, maxtrans, maxscans, continuous, pollinginterval)
        typer.echo(f"The log of {name} is scanned.")


def status(
    database: DatabaseOption = None, as_json: JsonOption = False, home: HomeOption = DEFAULT_HOME
) -> None:
    """Show capture jobs: of one database, or of all without -d."""
    form = as_dict if as_json else as_text
    show_jobs(database, home, lambda job: form(job) if is_capture(job) else None)


def as_text(job: Job) -> str:
    """One line on a job, a second where its parameters take effect only after a restart."""
    line = headline(job, _parameters(job.configured))
    if job.message and job.message != f"{job.state.capitalize()}.":
        line += f"\n  {job.message}"
    if job.running is not None and job.running != job.configured:
        line += f"\n  still runs with {_parameters(job.running)}: stop and start it"
    if job.step is not None:
        line += f"\n  its step is a {job.step.subsystem} script: highwater jobs step -d {job.database}"
    if job.running is not None and job.running_step != job.step:
        line += f"\n  still runs {_step(job.running_step)}: stop and start it"
    if job.schedule is not None:
        known = "when the agent runs" if job.next_run is None else moment(job.next_run)
        line += f"\n  schedule {job.schedule}, next start {known}"
    return line


def as_dict(job: Job) -> dict[str, object]:
    """A job for ``--json``: times ISO 8601, parameters by the original's names."""
    return {
        **identity(job),
        "configured": _named(job.configured),
        "running": None if job.running is None else _named(job.running),
        "step": None if job.step is None else asdict(job.step),
        "running_step": None if job.running_step is None else asdict(job.running_step),
        "schedule": job.schedule,
        "next_run": None if job.next_run is None else job.next_run.isoformat(),
    }


def _step(step: JobStep | None) -> str:
    return "its own scan" if step is None else f"another {step.subsystem} script"


def _named(parameters: CaptureParameters) -> dict[str, int]:
    return {
        "maxtrans": parameters.maxtrans,
        "maxscans": parameters.maxscans,
        "continuous": int(parameters.continuous),
        "pollinginterval": parameters.pollinginterval,
    }


def _parameters(parameters: CaptureParameters) -> str:
    return ", ".join(f"{name} {value}" for name, value in _named(parameters).items())
