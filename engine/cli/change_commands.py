"""highwater changes: what the query functions return, streamed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.row_output import Format, Row, lines
from engine.cli.session import DEFAULT_HOME, DatabaseOption, HomeOption, opened
from engine.cli.value_text import temporal_as_text
from engine.errors import LsnInvalid
from engine.model.lsn import Lsn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from engine.engine import Engine


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(changes)


def _lsn(text: str | None) -> Lsn | None:
    """The LSN that was given. Raises LsnInvalid."""
    try:
        return None if text is None else Lsn.parse(text)
    except ValueError as error:
        raise LsnInvalid(error) from error


def changes(
    capture_instance: Annotated[str, typer.Argument(metavar="CAPTURE_INSTANCE")],
    database: DatabaseOption = None,
    net: Annotated[bool, typer.Option("--net", help="One row for each key instead of every change.")] = False,
    row_filter: Annotated[
        str,
        typer.Option(
            metavar="OPTION",
            help="'all', 'all update old'; with --net 'all', 'all with mask', 'all with merge'.",
        ),
    ] = "all",
    from_lsn: Annotated[
        str | None,
        typer.Option("--from", metavar="LSN", help="First commit LSN; the oldest there is by default."),
    ] = None,
    to_lsn: Annotated[
        str | None,
        typer.Option("--to", metavar="LSN", help="Last commit LSN; the newest there is by default."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Form of the output.")] = Format.TABLE,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Print the changes of a capture instance in a closed range of commit LSNs.

    JSON is one object a row, every value exact: numbers with all their digits (numeric without precision,
    which is text in the lake, as a string), binary as 0x and hex, times in ISO 8601, NaN and infinities as
    strings. Without rows nothing is printed.
    """
    with opened(home) as engine:
        low, high = _lsn(from_lsn), _lsn(to_lsn)
        name = engine.database(database).name
        from engine.query.failures import fetching  # imports pyspark

        with fetching(), _pipe_may_close():
            frame = _changes(engine, name, capture_instance, net, row_filter, low, high)
            if frame is not None:
                _write(lines(frame.dtypes, _rows(frame), form))


def _changes(
    engine: Engine,
    database: str,
    capture_instance: str,
    net: bool,
    row_filter: str,
    from_lsn: Lsn | None,
    to_lsn: Lsn | None,
) -> DataFrame | None:
    """The query; None when the range is the whole validity interval and that is still empty."""
    low, high = engine.get_min_lsn(database, capture_instance), engine.get_max_lsn(database)
    unknown = not any(
        instance.capture_instance == capture_instance
        for instance in engine.help_change_data_capture(database)
    )
    nothing_yet = low == Lsn.ZERO or high is None or high < low
    if not unknown and nothing_yet and from_lsn is None and to_lsn is None:
        return None
    query = engine.get_net_changes if net else engine.get_all_changes
    return query(database, capture_instance, from_lsn or low, to_lsn or high, row_filter)


def _rows(frame: DataFrame) -> Iterator[Row]:
    """The rows, a batch at a time, dates and times as text (`temporal_as_text`)."""
    expressions = []
    for name, lake_type in frame.dtypes:
        column = "`" + name.replace("`", "``") + "`"
        text = temporal_as_text(lake_type)
        expressions.append(f"CAST({column} AS {text}) AS {column}" if text else column)
    return frame.selectExpr(*expressions).toLocalIterator()


def _write(text: Iterable[str]) -> None:
    """UTF-8 with plain line ends, whatever the terminal's settings: scripts read this."""
    output = sys.stdout.buffer
    for line in text:
        output.write(line.encode())
    output.flush()


@contextmanager
def _pipe_may_close() -> Iterator[None]:
    """A reader that has had enough (``| head``) is no failure."""
    try:
        yield
    except BrokenPipeError:
        # What is still buffered must not fail again when the interpreter exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
