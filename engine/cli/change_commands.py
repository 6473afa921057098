"""highwater changes and as-of: what the query functions return, and a table as of an LSN, streamed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.lsn_text import parse_lsn
from engine.cli.row_output import Column, Format, Row, lines
from engine.cli.session import DEFAULT_HOME, DatabaseOption, HomeOption, opened
from engine.cli.standard_output import pipe_may_close, write
from engine.cli.value_text import temporal_as_text
from engine.model.capture_instance import CaptureInstance
from engine.model.change import OPERATION, SEQVAL, START_LSN, UPDATE_MASK
from engine.model.lsn import Lsn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from engine.engine import Engine

SPARK_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers by which pyspark writes every error to stderr, as JSON with a stack trace."""


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(changes)
    app.command("as-of")(as_of)


def _lsn(text: str | None) -> Lsn | None:
    """The LSN that was given. Raises LsnInvalid."""
    return None if text is None else parse_lsn(text)


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
    strings. Without changes there is the heading of a table or CSV, nothing for JSON, and a word on stderr.
    """
    with opened(home) as engine:
        low, high = _lsn(from_lsn), _lsn(to_lsn)
        name = engine.database(database).name
        if low is None and high is None and (waiting := _not_yet_met(engine, name, capture_instance)):
            write(lines(_columns(waiting, net), (), form))
            typer.echo(_not_captured_yet(name, capture_instance), err=True)
            return
        from engine.query.failures import fetching  # imports pyspark

        _silence_spark()
        low, high = low or engine.get_min_lsn(name, capture_instance), high or engine.get_max_lsn(name)
        with fetching(), pipe_may_close():
            query = engine.get_net_changes if net else engine.get_all_changes
            frame = query(name, capture_instance, low, high, row_filter)
            rows = _rows(frame)
            first = list(islice(rows, 1))
            write(lines(frame.dtypes, chain(first, rows), form))
        if not first:
            typer.echo(f"Note: no changes of '{capture_instance}' from {low} to {high}.", err=True)


def as_of(
    capture_instance: Annotated[str, typer.Argument(metavar="CAPTURE_INSTANCE")],
    lsn: Annotated[
        str, typer.Option("--lsn", metavar="LSN", help="Commit LSN after which nothing had happened yet.")
    ],
    database: DatabaseOption = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait for the source and for capture.")
    ] = 600.0,
    form: Annotated[Format, typer.Option("--format", help="Form of the output.")] = Format.TABLE,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Print the captured columns of a whole table as it was at an LSN, in no order.

    Reads the table at the source and takes back what was captured after the LSN, which must be within the
    validity interval. Needs a row identifier, the agent, and a capture job that runs. Values are printed as
    `changes` prints them.
    """
    with opened(home) as engine:
        asked, name = parse_lsn(lsn), engine.database(database).name
        from engine.query.failures import fetching  # imports pyspark

        _silence_spark()
        with (
            fetching(),
            pipe_may_close(),
            engine.table_as_of(name, capture_instance, asked, timeout=timeout) as table,
        ):
            write(lines(table.frame.dtypes, _rows(table.frame), form))


def _not_yet_met(engine: Engine, database: str, capture_instance: str) -> CaptureInstance | None:
    """The instance when it has no validity interval yet: its start was not met in the log, or published."""
    instances = {each.capture_instance: each for each in engine.help_change_data_capture(database)}
    instance, high = instances.get(capture_instance), engine.get_max_lsn(database)
    if instance is None or instance.start_lsn is None or high is None:
        return instance
    return instance if high < instance.start_lsn else None


def _not_captured_yet(database: str, capture_instance: str) -> str:
    return (
        f"Note: '{capture_instance}' is not captured yet: the capture job has not met it in the log. "
        f"Wait for it: highwater sync -d {shlex.quote(database)}"
    )


def _columns(instance: CaptureInstance, net: bool) -> list[Column]:
    """What the query functions return, for when they cannot be asked."""
    leading = [(START_LSN, "string"), (OPERATION, "int"), (UPDATE_MASK, "binary")]
    if not net:
        leading.insert(1, (SEQVAL, "string"))
    return leading + [(column.column_name, column.lake_type) for column in instance.columns]


def _rows(frame: DataFrame) -> Iterator[Row]:
    """The rows, a batch at a time, dates and times as text (`temporal_as_text`).

    Columns are taken by their place: Spark takes ``Id`` and ``id`` for one name.
    """
    places = [f"c{place}" for place in range(len(frame.columns))]
    expressions = []
    for place, (_, lake_type) in zip(places, frame.dtypes, strict=True):
        text = temporal_as_text(lake_type)
        expressions.append(f"CAST({place} AS {text}) AS {place}" if text else place)
    return frame.toDF(*places).selectExpr(*expressions).toLocalIterator()


def _silence_spark() -> None:
    """What fails is said once, in our line."""
    from pyspark.logger import PySparkLogger

    for name in SPARK_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
