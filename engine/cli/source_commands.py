"""highwater connect, disconnect, dsn, enable, disable, sync."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.session import DEFAULT_HOME, DatabaseOption, HomeOption, opened
from engine.cli.table_names import parse_table_name, schema_of
from engine.errors import CdcError, ControlUnreachable, SyncTimeout

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.model.capture_instance import CaptureInstance

TableArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[SCHEMA.TABLE]",
        help='Table of the source; without it, the database itself. Names with dots in "" or [].',
        show_default=False,
    ),
]
_LOOK_AGAIN = 0.25
"""Seconds between two tries to reach a control database that is being started."""


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(connect)
    app.command()(disconnect)
    app.command()(dsn)
    app.command()(enable)
    app.command()(disable)
    app.command()(sync)


def connect(
    name: Annotated[str, typer.Argument(help="What to call the source here.")],
    dsn: Annotated[
        str,
        typer.Argument(
            help="libpq URI: postgresql://user:password@host:port/database; - reads it from standard input."
        ),
    ],
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Register a PostgreSQL database (14 or later) as a source, or say what must change at it."""
    with opened(home) as engine:
        for problem in engine.connect(name, sys.stdin.readline().strip() if dsn == "-" else dsn):
            typer.echo(f"Note: {problem.problem} {problem.fix}", err=True)
        typer.echo(f"Database '{name}' is connected.")


def disconnect(
    name: Annotated[str, typer.Argument(help="What the source is called here.")],
    force: Annotated[
        bool, typer.Option("--force", help="Also when it is enabled and cannot be disabled: it is gone.")
    ] = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Forget a source, its password and, by force, its change tables."""
    with opened(home) as engine:
        for left in engine.disconnect(name, force):
            typer.echo(f"Note: {left.problem} {left.fix}", err=True)
        typer.echo(f"Database '{name}' is disconnected.")


def dsn(database: DatabaseOption = None, home: HomeOption = DEFAULT_HOME) -> None:
    """Print the libpq URI of a source, with its password: for psql and scripts."""
    with opened(home) as engine:
        typer.echo(engine.dsn(engine.database(database).name))


def enable(
    table: TableArgument = None,
    database: DatabaseOption = None,
    capture_instance: Annotated[
        str | None, typer.Option(metavar="N", help="Name of the capture instance; SCHEMA_TABLE by default.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns to capture; all by default.")
    ] = None,
    role: Annotated[
        str | None, typer.Option(metavar="R", help="Gating role that readers must have; made where missing.")
    ] = None,
    index: Annotated[
        str | None,
        typer.Option(metavar="I", help="Unique index that identifies rows; the primary key by default."),
    ] = None,
    net: Annotated[
        bool | None,
        typer.Option("--net/--no-net", help="Net changes; where rows have an identifier by default."),
    ] = None,
    partition_switch: Annotated[
        bool,
        typer.Option(
            "--partition-switch/--no-partition-switch",
            help="Whether ATTACH and DETACH PARTITION are allowed; their rows are never captured.",
        ),
    ] = True,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Enable a table for change data capture, its database first if needed; or only the database."""
    with opened(home) as engine:
        name = engine.database(database).name
        if table is None:
            engine.enable_db(name)
            typer.echo(f"Database '{name}' is enabled.")
            return
        schema, source_name = _resolved(engine, name, table)
        enabled_here = not engine.database(name).is_cdc_enabled
        if enabled_here:
            engine.enable_db(name)
        try:
            instance = engine.enable_table(
                name,
                schema,
                source_name,
                role_name=role,
                capture_instance=capture_instance,
                supports_net_changes=net,
                index_name=index,
                captured_column_list=columns,
                allow_partition_switch=partition_switch,
                on_message=lambda message: typer.echo(message.line(), err=True),
            )
        except CdcError:
            # A refused table leaves the database as this command found it.
            if enabled_here and not engine.help_change_data_capture(name):
                engine.disable_db(name)
            raise
        typer.echo(_enabled(instance))


def disable(
    table: TableArgument = None,
    database: DatabaseOption = None,
    capture_instance: Annotated[
        str | None, typer.Option(metavar="N", help="Only this capture instance; all of the table by default.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also a database that another home has enabled, which is gone.")
    ] = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Disable a table's capture instances, or the whole database: change tables go with them."""
    if table is None and capture_instance is not None:
        raise typer.BadParameter("name the table too", param_hint="--capture-instance")
    if table is not None and force:
        raise typer.BadParameter("it is for a whole database", param_hint="--force")
    with opened(home) as engine:
        name = engine.database(database).name
        if table is None:
            engine.disable_db(name, force=force)
            typer.echo(f"Database '{name}' is disabled.")
            return
        schema, source_name = _tracked(engine, name, table)
        engine.disable_table(name, schema, source_name, capture_instance or "all")
        what = f"Capture instance {capture_instance}" if capture_instance else "Every capture instance"
        typer.echo(f"{what} of {schema}.{source_name} is disabled.")


def sync(
    database: DatabaseOption = None,
    timeout: Annotated[float, typer.Option(metavar="S", min=0, help="Seconds to wait at most.")] = 60.0,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Wait until everything committed on the source before the call is published; 1 when it takes longer.

    What may come back meanwhile is waited for: the source, a job that fails, and while the home is started
    its control database. A stopped job ends it at once.
    """
    from engine.runtime.home import Home

    place, deadline, left = Home(home), time.monotonic() + timeout, timeout
    with opened(home) as engine:
        while True:
            try:
                return engine.sync(engine.database(database).name, left)
            except ControlUnreachable as error:
                if "supervisor" not in place.processes():
                    raise
                left = round(deadline - time.monotonic(), 1)
                if left <= 0:
                    raise SyncTimeout("Publishing up to the end of the log", timeout, str(error)) from error
            time.sleep(_LOOK_AGAIN)


def _resolved(engine: Engine, database: str, text: str) -> tuple[str, str]:
    """Schema and name of a source table."""
    schema, table = _parsed(text)
    if schema is not None:
        return schema, table
    tables = [(each.schema, each.name) for each in engine.source_tables(database)]
    return _schema(table, tables), table


def _tracked(engine: Engine, database: str, text: str) -> tuple[str, str]:
    """Schema and name of a table with capture instances: it may be gone from the source."""
    schema, table = _parsed(text)
    if schema is not None:
        return schema, table
    instances = engine.help_change_data_capture(database)
    return _schema(table, {(each.source_schema, each.source_table) for each in instances}), table


def _parsed(text: str) -> tuple[str | None, str]:
    try:
        return parse_table_name(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="SCHEMA.TABLE") from error


def _schema(table: str, tables: Iterable[tuple[str, str]]) -> str:
    try:
        return schema_of(table, tables)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="SCHEMA.TABLE") from error


def _enabled(instance: CaptureInstance) -> str:
    net = "all and net changes" if instance.supports_net_changes else "all changes"
    return (
        f"Capture instance {instance.capture_instance} of {instance.source_schema}.{instance.source_table}"
        f" is enabled: {len(instance.columns)} columns, {net}."
    )
