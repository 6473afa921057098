"""The rows of a query part by part, with the types a query's table has, however many they are."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from engine.query.spool import LARGE, expected_bytes, spooled

_AS_NUMBERS = {
    "date": ("unix_date({})", pa.date32()),
    "timestamp": ("unix_micros({})", pa.timestamp("us")),
    "timestamp_ntz": ("unix_micros(CAST({} AS timestamp))", pa.timestamp("us")),
}
"""Files of Spark hold times in a form that not all of them fit: they pass as the numbers they are."""
_NESTED_TIME = re.compile("<.*(date|timestamp)")


@dataclass(frozen=True, slots=True)
class RowStream:
    """Rows in the order of their query. ``parts``: tables of ``schema``, some thousands of rows each."""

    schema: pa.Schema
    parts: Generator[pa.Table]


def row_stream(frame: DataFrame, folder: Path | None) -> RowStream:
    """The rows of a frame, a part in memory at a time; parts raise what Spark does.

    folder: through which a large result passes, since Spark Connect keeps what nobody has fetched yet in the
    agent's memory; None: it passes through that.
    """
    schema = to_arrow_schema(frame.schema, timezone="UTC")
    return RowStream(schema, _parts(frame, schema, folder))


def _parts(frame: DataFrame, schema: pa.Schema, folder: Path | None) -> Generator[pa.Table]:
    types = [lake_type for _, lake_type in frame.dtypes]
    places = [f"c{place}" for place in range(len(types))]  # Spark takes `Id` and `id` for one name
    placed = frame.toDF(*places)
    if folder is None or any(map(_NESTED_TIME.search, types)) or not _is_large(placed):
        for part in sent(placed):
            yield _of(part, schema)
        return
    expressions = [
        f"{_AS_NUMBERS[lake_type][0].format(place)} AS {place}" if lake_type in _AS_NUMBERS else place
        for place, lake_type in zip(places, types, strict=True)
    ]
    for part in spooled(placed.selectExpr(*expressions), folder):
        times = [
            column.cast(_AS_NUMBERS[lake_type][1]) if lake_type in _AS_NUMBERS else column
            for column, lake_type in zip(part.columns, types, strict=True)
        ]
        yield _of(pa.table(times, names=places), schema)


def _is_large(frame: DataFrame) -> bool:
    return expected_bytes(frame._explain_string(mode="cost")) >= LARGE  # type: ignore[operator]


def _of(part: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [column.cast(field.type) for column, field in zip(part.columns, schema, strict=True)]
    return pa.table(columns, schema=schema)


def sent(frame: DataFrame) -> Generator[pa.Table]:
    """The rows as the server sends them, some thousands at a time.

    `DataFrame.toLocalIterator` does this too, and makes a Row of each row, which takes three times as long
    as all the rest.
    """
    client = frame.sparkSession.client
    plan = frame._plan.to_proto(client)  # type: ignore[operator]
    for part in client.to_table_as_iterator(plan, {}):
        if isinstance(part, pa.Table):
            yield part
