"""Query results as files: the columns of the query function, metadata included; only binary is converted."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from dashboard import format as fmt

ROW_GROUP = 65_536
"""Rows of a row group of Parquet, at least but for the last: parts of a query are smaller."""


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A file format: its name on the button, file extension and MIME type."""

    label: str
    extension: str
    mime: str


CSV = ExportFormat("CSV", "csv", "text/csv")
PARQUET = ExportFormat("Parquet", "parquet", "application/vnd.apache.parquet")
JSON = ExportFormat("JSON lines", "jsonl", "application/x-ndjson")
FORMATS = (CSV, PARQUET, JSON)


def export(table: pa.Table, wanted: ExportFormat) -> bytes:
    """The whole table as a file. Binary is ``0x…`` in CSV and JSON and stays binary in Parquet."""
    buffer = io.BytesIO()
    write(table.schema, [table], wanted, buffer)
    return buffer.getvalue()


def write(
    schema: pa.Schema,
    parts: Iterable[pa.Table],
    wanted: ExportFormat,
    file: BinaryIO,
    written: Callable[[int], None] = lambda rows: None,
) -> int:
    """Writes the parts, tables of ``schema``, as they come; how many rows they had.

    written: called after each part with the rows so far; what it raises ends the writing.
    """
    rows = 0
    with _WRITERS[wanted](schema, file) as writer:
        for part in parts:
            writer.add(part)
            rows += part.num_rows
            written(rows)
    return rows


class _Csv:
    def __init__(self, schema: pa.Schema, file: BinaryIO) -> None:
        self._writer = pyarrow.csv.CSVWriter(file, _as_text(schema.empty_table()).schema)

    def __enter__(self) -> _Csv:
        return self

    def __exit__(self, *_error: object) -> None:
        self._writer.close()

    def add(self, part: pa.Table) -> None:
        self._writer.write_table(_as_text(part))


class _Parquet:
    def __init__(self, schema: pa.Schema, file: BinaryIO) -> None:
        self._writer = pyarrow.parquet.ParquetWriter(file, schema)
        self._waiting: list[pa.Table] = []

    def __enter__(self) -> _Parquet:
        return self

    def __exit__(self, kind: object, *_error: object) -> None:
        if kind is None:
            self._flush()
        self._writer.close()

    def add(self, part: pa.Table) -> None:
        self._waiting.append(part)
        if sum(each.num_rows for each in self._waiting) >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting))
            self._waiting.clear()


class _Json:
    def __init__(self, _schema: pa.Schema, file: BinaryIO) -> None:
        self._file = file

    def __enter__(self) -> _Json:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def add(self, part: pa.Table) -> None:
        for line in _lines(part):
            self._file.write(line.encode())


_WRITERS: dict[ExportFormat, Any] = {CSV: _Csv, PARQUET: _Parquet, JSON: _Json}


def _as_text(table: pa.Table) -> pa.Table:
    columns = [_csv_column(table.column(index)) for index in range(table.num_columns)]
    return pa.table(columns, names=table.column_names)


def _csv_column(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if v is None else fmt.binary(v) for v in column.to_pylist()], pa.string())
    if pa.types.is_nested(kind):
        return pa.array(
            [None if v is None else json.dumps(_finite(v), default=plain) for v in column.to_pylist()],
            pa.string(),
        )
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pc.strftime(pc.cast(column, pa.timestamp("us", "UTC")), format="%Y-%m-%d %H:%M:%S+00:00")
    return column


def _lines(table: pa.Table) -> Iterator[str]:
    for row in table.to_pylist():
        values = {name: _finite(value) for name, value in row.items()}
        yield json.dumps(values, default=plain, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """NaN and infinities as strings, as the command line prints them: JSON has no numbers for them."""
    if isinstance(value, list):
        return [_finite(element) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def plain(value: Any) -> Any:
    """A value JSON has no form for: binary as hex, times in ISO form, decimals as their digits."""
    if isinstance(value, bytes):
        return fmt.binary(value)
    if isinstance(value, (datetime, date)):
        return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)
