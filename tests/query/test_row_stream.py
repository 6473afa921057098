"""Rows of a query part by part: the same table as Spark's own, small or large, whatever its types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from engine.lake.spark import ConnectEndpoint, connect_session
from engine.query import row_stream as row_streams
from engine.query.row_stream import row_stream

ROWS = 30_000


@pytest.fixture(scope="module")
def client(spark: SparkSession, connect_endpoint: ConnectEndpoint) -> Iterator[SparkSession]:
    """What readers have: a client of the agent's Spark."""
    session = connect_session(connect_endpoint)
    yield session
    session.stop()


def _frame(spark: SparkSession) -> DataFrame:
    """Rows in an order that is not their files', of all sorts of types; two names differ only in case."""
    return (
        spark.range(ROWS)
        .selectExpr(
            "id AS `Id`",
            "CAST(id % 7 AS string) AS `id`",
            "if(id % 5 = 0, NULL, CAST(hex(id) AS binary)) AS `__$update_mask`",
            "CAST(id AS decimal(20, 3)) AS amount",
            "date_add(DATE'0001-01-01', CAST(id * 100 AS int)) AS day",
            "timestamp_micros(id * 1000003 - 62135596800000000) AS moment",
            "CAST(timestamp_micros(id * 1000003 + 250000000000000000) AS timestamp_ntz) AS local",
            "array(id, NULL) AS list",
            "CAST(id AS double) / 3 AS share",
        )
        .toDF("a", "b", "c", "d", "e", "f", "g", "h", "i")
        .orderBy("b", "a")
        .toDF("Id", "id", "mask", "amount", "day", "moment", "local", "list", "share")
    )


@pytest.mark.parametrize("large", [0, 2**62])
def test_parts_make_the_table_that_spark_makes(
    client: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(row_streams, "LARGE", large)
    frame = _frame(client)
    stream = row_stream(frame, tmp_path)
    parts = list(stream.parts)
    assert len(parts) > 1
    assert pa.concat_tables(parts).equals(frame.toArrow())
    assert stream.schema == frame.toArrow().schema
    assert list(tmp_path.iterdir()) == []


def test_a_large_result_passes_through_files(
    client: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_streams, "LARGE", 0)
    parts = row_stream(_frame(client), tmp_path).parts
    next(parts)
    assert list(tmp_path.iterdir())
    parts.close()  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []


def test_times_within_others_do_not_pass_through_files(
    client: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_streams, "LARGE", 0)
    frame = client.sql("SELECT array(TIMESTAMP'9999-12-31 23:59:59.999999') AS moments")
    assert pa.concat_tables(row_stream(frame, tmp_path / "none").parts).equals(frame.toArrow())
    assert not (tmp_path / "none").exists()


def test_no_row_has_a_schema_all_the_same(client: SparkSession, tmp_path: Path) -> None:
    stream = row_stream(_frame(client).limit(0), tmp_path)
    assert sum(part.num_rows for part in stream.parts) == 0
    assert stream.schema.names[:2] == ["Id", "id"]
