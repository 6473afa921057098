"""highwater sql: T-SQL from a file, from the command line, or typed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.row_output import Format
from engine.cli.session import DEFAULT_HOME, DatabaseOption, HomeOption, opened
from engine.cli.standard_output import pipe_may_close

if TYPE_CHECKING:
    from engine.tsql.sink import Sink


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(sql)


def sql(
    database: DatabaseOption = None,
    principal: Annotated[
        str | None, typer.Option("--as", metavar="PRINCIPAL", help="A role of the source; its rights hold.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Form of the output.")] = Format.TABLE,
    file: Annotated[
        Path | None, typer.Option("-f", "--file", help="A script; - is the standard input.")
    ] = None,
    query: Annotated[str | None, typer.Option("-q", "--query", help="A script's text.")] = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Run T-SQL: CDC procedures, functions and queries, and statements of the source. Or open a console.

    JSON is one object a line (resultset, rowcount, message, error). Exit code 1 after an error of a severity
    above 10.
    """
    if file is not None and query is not None:
        raise typer.BadParameter("give one of -f and -q")
    with opened(home) as engine:
        from engine.tsql.batches import batches
        from engine.tsql.interpreter import session

        script = _script(file, query)
        name, failed = engine.database(database).name, False
        with pipe_may_close(), session(engine, name, _sink(form), principal) as interpreter:
            if script is None:
                from engine.tsql.console import Console

                Console(interpreter, engine, home / "sql_history").run()
                return
            for batch in batches(script):
                interpreter.run_recorded(batch)
            sys.stdout.flush()
            failed = interpreter.failed
    if failed:
        raise typer.Exit(1)


def _script(file: Path | None, query: str | None) -> str | None:
    """What is to be run; None for the console. A pipe is a script."""
    if query is not None:
        return query
    if file is None:
        return None if sys.stdin.isatty() else sys.stdin.read()
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read: {error}", param_hint="-f") from error


def _sink(form: Format) -> Sink:
    from engine.tsql.output import CsvSink, JsonSink, TableSink

    def say(text: str) -> None:
        sys.stdout.flush()
        typer.echo(text, err=True, nl=False)

    if form == Format.JSON:
        return JsonSink(_write)
    return CsvSink(_write, say) if form == Format.CSV else TableSink(_write, say)


def _write(text: str) -> None:
    """UTF-8 with plain line ends, whatever the terminal's settings: scripts read this."""
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
