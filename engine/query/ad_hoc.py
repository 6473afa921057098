"""SQL of one's own over change data: temporary views for one statement, and its rows as they come."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from engine.errors import QueryFailed
from engine.lake.sql_text import quoted
from engine.query.row_stream import sent
from engine.query.spool import is_large, spooled

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers by which pyspark writes every error to stderr, as JSON with a stack trace."""
_numbers = count(1)
_TEMPORAL = ("date", "timestamp", "timestamp_ntz")
_NAMED = re.compile(r"`((?:[^`]|``)+)`")


class StatementFailed(Exception):  # noqa: N818 - says what is wrong, as errors of the engine do
    """Spark refused or gave up a statement: its error condition, and the name or value that it speaks of."""

    def __init__(self, condition: str, subject: str, text: str) -> None:
        super().__init__(text)
        self.condition = condition
        self.subject = subject
        self.text = text


class AdHocQuery:
    """One statement. Views live until `close`, which must come after the rows."""

    def __init__(self, spark: SparkSession, folder: Path | None = None) -> None:
        """``folder``: through which large results pass; None: through the agent's memory."""
        self._spark = spark
        self._folder = folder
        self._views: list[str] = []
        self._tag = f"highwater_sql_{next(_numbers)}"
        spark.addTag(self._tag)
        for name in _LOGGERS:  # what fails is said once, by whoever asked
            PySparkLogger.getLogger(name).disabled = True

    def view(self, frame: DataFrame, names: Sequence[str], binary: Sequence[str] = ()) -> str:
        """A view of the frame under these column names; ``binary``: those that hold LSNs as text.

        Columns are taken by their place: Spark takes ``Id`` and ``id`` for one name. A time of an instant
        becomes one in UTC without a zone.
        """
        places = [f"c{place}" for place in range(len(frame.columns))]
        expressions = []
        for place, name, (_, lake_type) in zip(places, names, frame.dtypes, strict=True):
            value = f"unhex(substr({place}, 3))" if name in binary else place
            if lake_type == "timestamp":
                value = f"CAST({place} AS timestamp_ntz)"
            expressions.append(f"{value} AS {quoted(name)}")
        return self._made(frame.toDF(*places).selectExpr(*expressions))

    def rows(self, rows: Sequence[Sequence[Any]], columns: Sequence[tuple[str, str]]) -> str:
        """A view of rows that are at hand; columns as (name, lake type). LSNs come as bytes."""
        schema = ", ".join(f"{quoted(name)} {lake_type}" for name, lake_type in columns)
        with _failures():
            return self._made(self._spark.createDataFrame([tuple(row) for row in rows], schema))

    def run(self, text: str) -> tuple[list[tuple[str, str]], Iterator[Sequence[Any]]]:
        """Columns (name, lake type) and rows of a query. Dates and times that Python can't hold are text.

        Raises StatementFailed, QueryFailed; rows raise them too.
        """
        with _failures():
            frame = self._spark.sql(text)
            columns = list(frame.dtypes)
        return columns, self._fetched(text, frame, columns)

    def _fetched(
        self, text: str, frame: DataFrame, columns: Sequence[tuple[str, str]]
    ) -> Iterator[Sequence[Any]]:
        places = [f"c{place}" for place in range(len(columns))]
        expressions = [
            f"CAST({place} AS string) AS {place}" if lake_type in _TEMPORAL else place
            for place, (_, lake_type) in zip(places, columns, strict=True)
        ]
        types = ["string" if lake_type in _TEMPORAL else lake_type for _, lake_type in columns]
        readers = [_READERS.get(lake_type) for _, lake_type in columns]
        with _failures():
            for part in self._parts(text, types, frame.toDF(*places).selectExpr(*expressions)):
                values = [_read(column, read) for column, read in zip(part.columns, readers, strict=True)]
                yield from zip(*values, strict=True)

    def _parts(self, text: str, types: Sequence[str], frame: DataFrame) -> Iterator[pa.Table]:
        if self._folder is not None and is_large(self._spark, text, types):
            return spooled(frame, self._folder)
        return sent(frame)

    def cancel(self) -> None:
        """Stops what it runs now, from another thread: it raises QueryFailed there."""
        self._spark.interruptTag(self._tag)

    def close(self) -> None:
        """Drops the views; those of a session that is gone went with it, and why is told already."""
        if self._tag in self._spark.getTags():  # tags belong to threads, and another one may close it
            self._spark.removeTag(self._tag)
        with suppress(QueryFailed), _failures():
            for name in self._views:
                self._spark.catalog.dropTempView(name)
        self._views.clear()

    def _made(self, frame: DataFrame) -> str:
        name = f"highwater_sql_{next(_numbers)}"
        frame.createOrReplaceTempView(name)
        self._views.append(name)
        return name


def _read(column: pa.ChunkedArray, read: Callable[[str], Any] | None) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values if read is None else [None if value is None else read(value) for value in values]


def _moment(text: str) -> datetime | str:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


def _date(text: str) -> date | str:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return text


_READERS = {"date": _date, "timestamp": _moment, "timestamp_ntz": _moment}


@contextmanager
def _failures() -> Iterator[None]:
    """Spark's errors as ours: a statement that is wrong, or a query that could not be answered."""
    try:
        yield
    except PySparkException as error:
        condition = error.getCondition() or ""
        text = str(error).splitlines()[0]
        if not condition or condition.startswith(("CONNECT", "NO_ACTIVE_SESSION")):
            raise QueryFailed(text) from error
        named = _NAMED.search(text)
        raise StatementFailed(condition, named[1] if named else "", text) from error
