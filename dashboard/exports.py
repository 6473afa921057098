"""Query results as files: the columns of the query function, metadata included; only binary is converted."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from dashboard import format as fmt


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
    if wanted is PARQUET:
        pyarrow.parquet.write_table(table, buffer)
    elif wanted is CSV:
        pyarrow.csv.write_csv(_as_text(table), buffer)
    else:
        for line in _lines(table):
            buffer.write(line.encode())
    return buffer.getvalue()


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
