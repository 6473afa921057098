"""highwater sessions and errors: the two monitoring views (reference/monitoring.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from engine.cli.row_output import Column, Format, lines
from engine.cli.session import DEFAULT_HOME, DatabaseOption, HomeOption, opened
from engine.cli.standard_output import pipe_may_close, write
from engine.model.scan_session import ScanError, ScanSession

FormatOption = Annotated[Format, typer.Option("--format", help="Form of the output.")]

_LAKE_TYPES = {"int": "bigint", "datetime": "timestamp"}
"""How the columns' Python types are written."""


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(sessions)
    app.command()(errors)


def sessions(
    database: DatabaseOption = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Sessions at most, the newest; session 0 beside them.")
    ] = 20,
    form: FormatOption = Format.TABLE,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Print the log scan sessions: session 0, which sums up all of them, then the newest, oldest first.

    The columns of sys.dm_cdc_log_scan_sessions, as NULL where a session has not come so far. Session 0 is
    there once something was scanned.
    """
    with opened(home) as engine:
        found = engine.scan_sessions(engine.database(database).name, limit)
    with pipe_may_close():
        write_rows(ScanSession, found, form)


def errors(
    database: DatabaseOption = None,
    form: FormatOption = Format.TABLE,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Print the errors of the last 32 scan sessions that had any, oldest first.

    The columns of sys.dm_cdc_errors; session 0 is an error outside of a session.
    """
    with opened(home) as engine:
        found = engine.scan_errors(engine.database(database).name)
    with pipe_may_close():
        write_rows(ScanError, found, form)


def write_rows(kind: type, found: Iterable[Any], form: Format) -> None:
    """Prints objects of a dataclass, a row each."""
    columns = columns_of(kind)
    write(lines(columns, (tuple(_value(getattr(row, name)) for name, _ in columns) for row in found), form))


def columns_of(kind: type) -> Sequence[Column]:
    """Name and lake type of each field of a dataclass, in order."""
    return [(field.name, _LAKE_TYPES.get(str(field.type).split(" ")[0], "string")) for field in fields(kind)]


def _value(value: Any) -> Any:
    """A time as the text that Spark makes of it, which is what the output's encoders take."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}" if isinstance(value, datetime) else value
