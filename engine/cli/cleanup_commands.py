"""highwater cleanup start, stop, status, table, compact."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from engine.cli.client_commands import waits
from engine.cli.job_commands import (
    JsonOption,
    headline,
    identity,
    jobs_of,
    moment,
    rows_text,
    start_job,
    stop_job,
)
from engine.cli.lsn_text import parse_lsn
from engine.cli.session import DEFAULT_HOME, DatabaseOption, HomeOption, opened
from engine.model.client import Client
from engine.model.compaction import CompactionRun
from engine.model.job import CleanupJob, JobRun, JobType, is_cleanup


def register(app: typer.Typer) -> None:
    """Adds the group ``cleanup``."""
    group = typer.Typer(
        no_args_is_help=True, help="A database's cleanup job, cleanup of one table, compaction."
    )
    group.command()(start)
    group.command()(stop)
    group.command()(status)
    group.command()(table)
    group.command()(compact)
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
    """Show cleanup jobs and the clients they wait for: of one database, or of all without -d."""
    with opened(home) as engine:
        for job in jobs_of(engine, database):
            if is_cleanup(job):
                held = [client for client in engine.clients(job.database) if client.holds_cleanup]
                compacted = engine.last_compaction(job.database)
                said = as_dict(job, held, compacted) if as_json else as_text(job, held, compacted)
                typer.echo(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False))


def table(
    capture_instance: Annotated[str, typer.Argument(help="Whose change table to clean up.")],
    low_watermark: Annotated[
        str | None,
        typer.Option(
            metavar="LSN",
            help="New low endpoint; without it, rows below the present one go.",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[int, typer.Option(help="Rows that one statement deletes at most.")] = 5000,
    force: Annotated[
        bool, typer.Option("--force", help="Also beyond clients that have not come so far: they are dropped.")
    ] = False,
    database: DatabaseOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Clean up the change table of one capture instance, whatever the retention."""
    with opened(home) as engine:
        mark = None if low_watermark is None else parse_lsn(low_watermark)
        name = engine.database(database).name
        done = engine.cleanup_change_table(name, capture_instance, mark, threshold, force=force)
        where = "" if done.low_endpoint is None else f" below {done.low_endpoint}"
        typer.echo(f"Deleted {rows_text(done.deleted_rows)} of {capture_instance}{where}.")
        if done.cleanup_failed:
            typer.echo(done.message, err=True)
            raise typer.Exit(1)


def compact(database: DatabaseOption = None, home: HomeOption = DEFAULT_HOME) -> None:
    """Make few files of many small ones, and delete those that are out of use; as after each cleanup."""
    with opened(home) as engine:
        typer.echo(engine.compact(engine.database(database).name).message)


def as_text(job: CleanupJob, held: Sequence[Client] = (), compacted: CompactionRun | None = None) -> str:
    """Lines on a job: parameters, when it runs next, how it ended last, and the clients it waits for."""
    parameters = f"retention {job.configured.retention}, threshold {job.configured.threshold}"
    lines = [headline(job, parameters), f"  {_next(job)}"]
    if job.last_run is not None:
        run = job.last_run
        lines.append(f"  last run {moment(run.start_time)} {run.outcome}: {run.message}")
    if job.running is not None and job.running != job.configured:
        lines.append("  this run began with other parameters")
    lines += [f"  {line}" for line in waits(held)]
    if compacted is not None and compacted.start_time is not None:
        lines.append(f"  compaction {moment(compacted.start_time)} {compacted.outcome}: {compacted.message}")
    return "\n".join(lines)


def as_dict(
    job: CleanupJob, held: Sequence[Client] = (), compacted: CompactionRun | None = None
) -> dict[str, object]:
    """A job for ``--json``: times ISO 8601, parameters by the original's names."""
    return {
        **identity(job),
        "configured": asdict(job.configured),
        "running": None if job.running is None else asdict(job.running),
        "schedule": job.schedule,
        "next_run": None if job.next_run is None else job.next_run.isoformat(),
        "last_run": None if job.last_run is None else _run(job.last_run),
        "waits_for": [_waited(client) for client in held],
        "last_compaction": _compaction(compacted),
    }


def _compaction(run: CompactionRun | None) -> dict[str, object] | None:
    if run is None or run.start_time is None:
        return None
    return {
        "start_time": run.start_time.isoformat(),
        "end_time": None if run.end_time is None else run.end_time.isoformat(),
        "outcome": str(run.outcome),
        "message": run.message,
    }


def _waited(client: Client) -> dict[str, object]:
    reached, since = client.acknowledged_lsn, client.held_since
    return {
        "client": client.name,
        "capture_instance": client.capture_instance,
        "acknowledged_lsn": None if reached is None else str(reached),
        "since": None if since is None else since.isoformat(),
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
