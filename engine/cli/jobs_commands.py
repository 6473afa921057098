"""highwater jobs: add, change, drop, step, history (reference/procedures.md, 3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.job_commands import moment
from engine.cli.session import DEFAULT_HOME, DatabaseOption, HomeOption, opened
from engine.model.job import JobRun, JobType, Subsystem, is_capture

SUFFIXES = {".sql": Subsystem.TSQL, ".py": Subsystem.PYTHON}
"""What runs a file that is to be a job's step, by its name's end."""

JobTypeArgument = Annotated[str, typer.Argument(metavar="JOB_TYPE", help="capture or cleanup.")]
MaxtransOption = Annotated[int | None, typer.Option(help="Transactions of one cycle at most (capture).")]
MaxscansOption = Annotated[int | None, typer.Option(help="Cycles at most before it pauses (capture).")]
ContinuousOption = Annotated[
    bool | None, typer.Option("--continuous/--once", help="Go on, or end when the log is drained (capture).")
]
PollingOption = Annotated[int | None, typer.Option(help="Seconds between drains (capture).")]
RetentionOption = Annotated[int | None, typer.Option(help="Minutes that changes are kept (cleanup).")]
ThresholdOption = Annotated[int | None, typer.Option(help="Rows a statement deletes at most (cleanup).")]
ScheduleOption = Annotated[
    str | None, typer.Option(help="Cron text, like '0 2 * * *', or '' for none: when it is started.")
]


def register(app: typer.Typer) -> None:
    """Adds the group ``jobs``."""
    group = typer.Typer(no_args_is_help=True, help="Add, change or drop jobs; their steps and their history.")
    group.command()(add)
    group.command()(change)
    group.command()(drop)
    group.command()(step)
    group.command()(history)
    app.add_typer(group, name="jobs")


def add(
    job_type: JobTypeArgument,
    database: DatabaseOption = None,
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start it at once.")] = True,
    maxtrans: MaxtransOption = None,
    maxscans: MaxscansOption = None,
    continuous: ContinuousOption = None,
    pollinginterval: PollingOption = None,
    retention: RetentionOption = None,
    threshold: ThresholdOption = None,
    schedule: ScheduleOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Add a job that was dropped (sp_cdc_add_job)."""
    with opened(home) as engine:
        name = engine.database(database).name
        engine.add_job(
            name,
            job_type,
            start,
            maxtrans,
            maxscans,
            continuous,
            pollinginterval,
            retention,
            threshold,
            schedule,
        )
        typer.echo(f"Job cdc.{name}_{job_type.strip().lower()} is added.")


def change(
    job_type: JobTypeArgument,
    database: DatabaseOption = None,
    maxtrans: MaxtransOption = None,
    maxscans: MaxscansOption = None,
    continuous: ContinuousOption = None,
    pollinginterval: PollingOption = None,
    retention: RetentionOption = None,
    threshold: ThresholdOption = None,
    schedule: ScheduleOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Change a job (sp_cdc_change_job): parameters after stop and start, a schedule at once."""
    with opened(home) as engine:
        name = engine.database(database).name
        engine.change_job(
            name,
            job_type,
            maxtrans,
            maxscans,
            continuous,
            pollinginterval,
            retention,
            threshold,
            schedule,
        )
        typer.echo(f"Job cdc.{name}_{job_type.strip().lower()} is changed.")


def drop(job_type: JobTypeArgument, database: DatabaseOption = None, home: HomeOption = DEFAULT_HOME) -> None:
    """Drop a job with its history (sp_cdc_drop_job)."""
    with opened(home) as engine:
        name = engine.database(database).name
        engine.drop_job(name, job_type)
        typer.echo(f"Job cdc.{name}_{job_type.strip().lower()} is dropped.")


def step(
    file: Annotated[
        Path | None, typer.Argument(help="A script: .sql is T-SQL, .py Python. Without it the step is shown.")
    ] = None,
    database: DatabaseOption = None,
    scan: Annotated[bool, typer.Option("--scan", help="Back to the scan that the job brings along.")] = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show the capture job's step, or run a script that calls sp_cdc_scan itself in its place."""
    if scan and file is not None:
        raise typer.BadParameter("give a file or --scan")
    subsystem, command = (None, None) if file is None else _script(file)
    with opened(home) as engine:
        name = engine.database(database).name
        if file is None and not scan:
            shown = next((job.step for job in engine.help_jobs(name) if is_capture(job)), None)
            typer.echo("EXEC sys.sp_MScdc_capture_job" if shown is None else shown.command)
            return
        engine.update_job_step(name, subsystem, command)
        typer.echo(
            f"Job cdc.{name}_{JobType.CAPTURE} runs {'its scan' if scan else file} when it starts next: "
            "highwater capture stop, then start."
        )


def history(
    database: DatabaseOption = None,
    job_type: Annotated[
        str | None, typer.Option("--job-type", help="capture or cleanup; both by default.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Runs at most, the newest.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a run.")] = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show how runs of the jobs ended, newest first; of a step of one's own what it printed at last."""
    with opened(home) as engine:
        runs = engine.job_history(engine.database(database).name, job_type, limit)
    for run in runs:
        typer.echo(json.dumps(run_as_dict(run), ensure_ascii=False) if as_json else run_as_text(run))


def run_as_text(run: JobRun) -> str:
    """A line on a run and one with its message, then what its step printed."""
    end = "" if run.end_time is None else f" to {moment(run.end_time)}"
    parameters = ", ".join(f"{name} {_number(value)}" for name, value in run.parameters.items())
    retries = f", {run.retries} retries" if run.retries else ""
    lines = [f"{run.job_type} {moment(run.start_time)}{end}: {run.outcome}{retries}; {parameters}"]
    lines += [f"  {line}" for line in run.message.splitlines()]
    lines += [f"  | {line}" for line in run.output.splitlines()]
    return "\n".join(lines)


def run_as_dict(run: JobRun) -> dict[str, object]:
    """A run for ``--json``: times ISO 8601, parameters by the original's names."""
    return {
        "job_type": str(run.job_type),
        "start_time": run.start_time.isoformat(),
        "end_time": None if run.end_time is None else run.end_time.isoformat(),
        "outcome": str(run.outcome),
        "message": run.message,
        "retries": run.retries,
        "parameters": {name: _number(value) for name, value in run.parameters.items()},
        "deleted_rows": run.deleted_rows,
        "output": run.output,
    }


def _number(value: int | bool | str) -> int | str:
    return int(value) if isinstance(value, bool) else value


def _script(file: Path) -> tuple[Subsystem, str]:
    subsystem = SUFFIXES.get(file.suffix.lower())
    if subsystem is None:
        raise typer.BadParameter(f"{file} ends neither in .sql nor in .py", param_hint="FILE")
    try:
        return subsystem, file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}", param_hint="FILE") from error
