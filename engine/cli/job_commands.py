"""What the commands of capture and cleanup jobs share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.session import opened
from engine.model.job import AnyJob, JobType

if TYPE_CHECKING:
    from engine.engine import Engine

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a job.")]


def start_job(database: str | None, home: Path, job_type: JobType) -> None:
    """Starts the job of that type and says so."""
    with opened(home) as engine:
        name = engine.database(database).name
        engine.start_job(name, job_type)
        typer.echo(f"Job cdc.{name}_{job_type} is started.")


def stop_job(database: str | None, home: Path, job_type: JobType) -> None:
    """Stops the job of that type and says so."""
    with opened(home) as engine:
        name = engine.database(database).name
        engine.stop_job(name, job_type)
        typer.echo(f"Job cdc.{name}_{job_type} is stopped.")


def show_jobs(
    database: str | None, home: Path, told: Callable[[AnyJob], str | dict[str, object] | None]
) -> None:
    """Prints what ``told`` says of each job, text or an object for JSON; nothing where that is None."""
    with opened(home) as engine:
        for job in jobs_of(engine, database):
            said = told(job)
            if said is not None:
                typer.echo(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False))


def identity(job: AnyJob) -> dict[str, object]:
    """The first members of a job's object for ``--json``."""
    return {
        "database": job.database,
        "job": job.name,
        "job_type": str(job.job_type),
        "state": str(job.state),
        "since": job.since.isoformat(),
        "wanted": job.wanted,
        "message": job.message,
    }


def headline(job: AnyJob, parameters: str) -> str:
    """The first line on a job."""
    return f"{job.name}: {job.state} since {moment(job.since)}; {parameters}"


def moment(time: datetime) -> str:
    """A time to the second."""
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def jobs_of(engine: Engine, database: str | None) -> Iterator[AnyJob]:
    """The jobs of one database, or of every enabled one without a name."""
    for name in enabled_names(engine, database):
        yield from engine.help_jobs(name)


def enabled_names(engine: Engine, database: str | None) -> list[str]:
    """The name of one database, or of every enabled one without a name."""
    if database is None:
        return [each.name for each in engine.databases() if each.is_cdc_enabled]
    return [engine.database(database).name]


def rows_text(count: int) -> str:
    """A number of rows."""
    return "1 row" if count == 1 else f"{count:,} rows"
