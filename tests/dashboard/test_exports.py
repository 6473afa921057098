"""Query results as files."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet

from dashboard.exports import CSV, JSON, PARQUET, export

TABLE = pa.table(
    {
        "__$start_lsn": ["0x00000000000000000001", "0x00000000000000000002"],
        "__$update_mask": pa.array([b"\x0f", None], pa.binary()),
        "Rate": pa.array([Decimal("1.50"), None], pa.decimal128(12, 2)),
        "Tags": pa.array([["a", "b"], None], pa.list_(pa.string())),
    }
)


def test_csv_has_all_columns_and_binary_as_hex() -> None:
    header, first, second = csv.reader(io.StringIO(export(TABLE, CSV).decode()))
    assert header == TABLE.column_names
    assert first == ["0x00000000000000000001", "0x0F", "1.50", '["a", "b"]']
    assert second == ["0x00000000000000000002", "", "", ""]


def test_parquet_reads_back_equal() -> None:
    assert pyarrow.parquet.read_table(io.BytesIO(export(TABLE, PARQUET))).equals(TABLE)


def test_json_has_an_object_a_line() -> None:
    lines = export(TABLE, JSON).decode().splitlines()
    assert json.loads(lines[0]) == {
        "__$start_lsn": "0x00000000000000000001",
        "__$update_mask": "0x0F",
        "Rate": "1.50",
        "Tags": ["a", "b"],
    }
    assert json.loads(lines[1])["Rate"] is None


def test_what_json_has_no_number_for_is_a_string() -> None:
    table = pa.table({"x": [float("nan"), float("-inf")], "y": [[float("inf")], None]})
    lines = [json.loads(line, parse_constant=str.upper) for line in export(table, JSON).decode().splitlines()]
    assert lines == [{"x": "NaN", "y": ["Infinity"]}, {"x": "-Infinity", "y": None}]
