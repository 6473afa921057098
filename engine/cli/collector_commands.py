"""highwater collector: collection sets, their runs, and the history of scan sessions that they keep."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from engine.cli.job_commands import moment
from engine.cli.row_output import Column, Format, lines
from engine.cli.session import DEFAULT_HOME, DatabaseOption, HomeOption, opened
from engine.cli.standard_output import pipe_may_close, write
from engine.errors import HistoryRangeInvalid
from engine.model.collection import (
    DEFAULT_SET,
    CollectionRun,
    CollectionSet,
    HistoryBreak,
    HistoryPoint,
)

SetArgument = Annotated[str, typer.Argument(help="Collection set: its name, or its id.", metavar="SET")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
FormatOption = Annotated[Format, typer.Option("--format", help="Form of the output.")]
IntervalOption = Annotated[
    int | None, typer.Option("--interval", help="Minutes between snapshots: 5, 10, 60, 360 and the like.")
]
ScheduleOption = Annotated[
    str | None, typer.Option("--schedule", help="Instead: a CollectorSchedule_Every_… name, or cron text.")
]
FromOption = Annotated[
    str | None, typer.Option("--from", help="ISO time, UTC without a zone; a day ago by default.")
]
ToOption = Annotated[str | None, typer.Option("--to", help="ISO time, not included; now by default.")]

_POINTS: Sequence[Column] = (
    ("database", "string"),
    ("start", "timestamp"),
    ("sessions", "bigint"),
    ("tran_count", "bigint"),
    ("command_count", "bigint"),
    ("duration", "bigint"),
    ("command_rate", "double"),
    ("latency_mean", "double"),
    ("latency_max", "bigint"),
    ("empty_scan_count", "bigint"),
    ("error_count", "bigint"),
)
_BREAKS: Sequence[Column] = (
    ("kind", "string"),
    ("database", "string"),
    ("start", "timestamp"),
    ("end", "timestamp"),
    ("reason", "string"),
)
_MOST_PARTS = 200
"""Stretches of a history on the terminal, when no length is asked for."""


def register(app: typer.Typer) -> None:
    """Adds the group ``collector``."""
    group = typer.Typer(no_args_is_help=True, help="Keep a history of what monitoring shows.")
    group.command("list")(list_sets)
    group.command()(create)
    group.command()(start)
    group.command()(stop)
    group.command()(change)
    group.command()(drop)
    group.command("collect-now")(collect_now)
    group.command()(runs)
    group.command()(history)
    group.command("gaps")(breaks)
    app.add_typer(group, name="collector")


def list_sets(as_json: JsonOption = False, home: HomeOption = DEFAULT_HOME) -> None:
    """Show the collection sets."""
    with opened(home) as engine:
        names = {each.cron: each.name for each in engine.collector_schedules()}
        for each in engine.collection_sets():
            typer.echo(_json(as_dict(each)) if as_json else as_text(each, names.get(each.schedule or "")))


def create(
    name: Annotated[str, typer.Argument(help="Name of the new set.")],
    query: Annotated[
        list[str],
        typer.Option("--collect", help="VIEW=TABLE: what is collected into custom_snapshots.TABLE."),
    ] = [],  # noqa: B006 - typer takes a list for an option that comes again
    interval: IntervalOption = None,
    schedule: ScheduleOption = None,
    days: Annotated[int, typer.Option("--days", help="Days kept; 0 for ever.")] = 30,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Make a collection set that collects every 5 minutes unless told otherwise; it does not run yet.

    Without --collect it takes scan sessions into cdc_log_scan_data, as the documentation's example does.
    """
    from engine.collector.parameters import parameters_of
    from engine.collector.views import DEFAULT_TABLES

    pairs = [(view.strip(), table.strip()) for view, _, table in (each.partition("=") for each in query)]
    with opened(home) as engine:
        # What is wrong with the queries is said before anything is made.
        parameters = parameters_of(pairs or DEFAULT_TABLES[:1])
        every = 5 if interval is None and schedule is None else interval
        number = engine.create_collection_set(
            name, schedule=schedule, interval_minutes=every, days_until_expiration=days
        )
        try:
            engine.create_collection_item(number, name, parameters)
        except BaseException:
            engine.delete_collection_set(number)
            raise
        typer.echo(f"Collection set {number} is made. Start it: highwater collector start {number}")


def start(collection_set: SetArgument, home: HomeOption = DEFAULT_HOME) -> None:
    """Start a collection set; its first snapshot is taken at once."""
    with opened(home) as engine:
        engine.start_collection_set(_key(collection_set))
        typer.echo("The collection set is started.")


def stop(collection_set: SetArgument, home: HomeOption = DEFAULT_HOME) -> None:
    """Stop a collection set; what it collected still expires."""
    with opened(home) as engine:
        engine.stop_collection_set(_key(collection_set))
        typer.echo("The collection set is stopped.")


def change(
    collection_set: SetArgument,
    interval: IntervalOption = None,
    schedule: ScheduleOption = None,
    days: Annotated[int | None, typer.Option("--days", help="Days kept; 0 for ever.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="New name; the set must be stopped.")] = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Change how often a set collects, how long that is kept, or its name; what is not given stays."""
    with opened(home) as engine:
        engine.update_collection_set(
            _key(collection_set),
            new_name=name,
            schedule=schedule,
            interval_minutes=interval,
            days_until_expiration=days,
        )
        typer.echo("The collection set is changed.")


def drop(collection_set: SetArgument, home: HomeOption = DEFAULT_HOME) -> None:
    """Delete a collection set that is stopped; what it collected stays until it expires."""
    with opened(home) as engine:
        engine.delete_collection_set(_key(collection_set))
        typer.echo("The collection set is deleted.")


def collect_now(
    collection_set: SetArgument = DEFAULT_SET, as_json: JsonOption = False, home: HomeOption = DEFAULT_HOME
) -> None:
    """Take a snapshot now, whether or not the set runs."""
    with opened(home) as engine:
        run = engine.collect(_key(collection_set))
        typer.echo(_json(run_as_dict(run)) if as_json else run_as_text(run))


def runs(
    collection_set: Annotated[
        str | None, typer.Argument(help="Of one set: its name, or its id.", metavar="[SET]")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Runs at most, the newest.")] = 20,
    as_json: JsonOption = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Show the newest collections, newest first."""
    with opened(home) as engine:
        key = None if collection_set is None else _key(collection_set)
        for run in engine.collection_runs(key, limit):
            typer.echo(_json(run_as_dict(run)) if as_json else run_as_text(run))


def history(
    database: DatabaseOption = None,
    since: FromOption = None,
    until: ToOption = None,
    bucket: Annotated[
        int | None, typer.Option("--bucket", min=1, help="Seconds of a line; by default as even as it goes.")
    ] = None,
    form: FormatOption = Format.TABLE,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Print latency and throughput of scan sessions, each counted once, where it began.

    Of one database, or of all without -d. Where there is no line, there was no session: `gaps` says where
    nothing was collected.
    """
    from engine.procedures.collector import bucket_of

    with opened(home) as engine:
        start, end = _range(since, until)
        seconds = bucket or bucket_of(start, end, _MOST_PARTS)
        known = None if database is None else engine.database(database).name
        found = engine.collected_series(start, end, known, seconds)
        _write(_POINTS, [_point(each) for each in found], form)


def breaks(
    database: DatabaseOption = None,
    since: FromOption = None,
    until: ToOption = None,
    form: FormatOption = Format.TABLE,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Print where the history breaks: missing snapshots, restarts of the agent and of capture."""
    with opened(home) as engine:
        start, end = _range(since, until)
        known = None if database is None else engine.database(database).name
        _write(_BREAKS, [_break(each) for each in engine.collection_breaks(start, end, known)], form)


def as_text(each: CollectionSet, schedule: str | None) -> str:
    """One line on a set, one on when it collects next, one on each item, and one on its last run."""
    state = "running" if each.is_running else "stopped"
    kept = f"kept {each.days_until_expiration} days" if each.days_until_expiration else "kept for ever"
    cron = each.schedule or "on demand"
    lines_ = [
        f"{each.collection_set_id} {each.name}: {state}; {schedule or cron}, {kept}",
    ]
    if each.is_running:
        known = "when the agent runs" if each.next_run is None else moment(each.next_run)
        lines_.append(f"  next run {known}")
    lines_ += [f"  {item.name}: {', '.join(_collected(item.parameters))}" for item in each.items]
    if each.last_run is not None:
        run = each.last_run
        lines_.append(f"  last run {moment(run.snapshot_time)} {run.outcome}: {run.message}")
    return "\n".join(lines_)


def as_dict(each: CollectionSet) -> dict[str, object]:
    """A set for ``--json``: times ISO 8601, names of the original."""
    return {
        "collection_set_id": each.collection_set_id,
        "name": each.name,
        "description": each.description,
        "is_system": each.is_system,
        "is_running": each.is_running,
        "collection_mode": int(each.collection_mode),
        "schedule": each.schedule,
        "days_until_expiration": each.days_until_expiration,
        "next_run": None if each.next_run is None else each.next_run.isoformat(),
        "items": [
            {
                "collection_item_id": item.collection_item_id,
                "name": item.name,
                "frequency": item.frequency,
                "parameters": item.parameters,
            }
            for item in each.items
        ],
        "last_run": None if each.last_run is None else run_as_dict(each.last_run),
    }


def run_as_text(run: CollectionRun) -> str:
    """One line on a run."""
    return f"{run.snapshot_id} {moment(run.snapshot_time)} {run.outcome}: {run.message}"


def run_as_dict(run: CollectionRun) -> dict[str, object]:
    """A run for ``--json``."""
    return {
        "snapshot_id": run.snapshot_id,
        "collection_set_id": run.collection_set_id,
        "snapshot_time": run.snapshot_time.isoformat(),
        "end_time": None if run.end_time is None else run.end_time.isoformat(),
        "outcome": str(run.outcome),
        "message": run.message,
        "rows": run.rows,
        "interval_seconds": run.interval_seconds,
        "agent_start": run.agent_start.isoformat(),
    }


def _collected(parameters: str) -> list[str]:
    from engine.collector.parameters import parse_parameters

    found = parse_parameters(parameters)
    return [f"{query.view.name} into custom_snapshots.{query.output_table}" for query in found.queries]


def _key(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _range(since: str | None, until: str | None) -> tuple[datetime, datetime]:
    now = datetime.now(UTC)
    end = now if until is None else _time(until)
    return (end - timedelta(days=1) if since is None else _time(since)), end


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise HistoryRangeInvalid(f"'{text}' is no ISO time like 2026-11-21T09:00") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _point(each: HistoryPoint) -> Sequence[object]:
    return [_text(getattr(each, name)) for name, _ in _POINTS]


def _break(each: HistoryBreak) -> Sequence[object]:
    return [str(each.kind), each.database, _text(each.start), _text(each.end), each.reason]


def _text(value: object) -> object:
    """A time as the text that the output's encoders take."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}" if isinstance(value, datetime) else value


def _write(columns: Sequence[Column], rows: Sequence[Sequence[object]], form: Format) -> None:
    with pipe_may_close():
        write(lines(columns, rows, form))


def _json(facts: dict[str, object]) -> str:
    return json.dumps(facts, ensure_ascii=False)
