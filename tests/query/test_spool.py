"""Large results through files: what is large, in which order rows come, and that nothing stays."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.query.spool import LARGE, expected_bytes, is_large, spooled


@pytest.mark.parametrize(
    ("explained", "expected"),
    [
        ("Relation [a] parquet, Statistics(sizeInBytes=512.0 B)", 512),
        (
            "Sort, Statistics(sizeInBytes=12.5 MiB)\n+- Scan, Statistics(sizeInBytes=1.0 KiB)",
            12.5 * 2**20,
        ),
        ("Project, Statistics(sizeInBytes=8.0 EiB, rowCount=3)", 2**63),
        ("Project", 0),
    ],
)
def test_the_first_node_tells_the_size(explained: str, expected: float) -> None:
    assert expected_bytes(explained) == expected


def test_many_rows_are_large_few_or_unplain_ones_are_not(spark: SparkSession) -> None:
    many = LARGE // 8
    assert is_large(spark, f"SELECT id FROM range({many}) ORDER BY id", ["bigint"])
    assert not is_large(spark, f"SELECT id FROM range({many}) LIMIT 10", ["bigint"])
    assert not is_large(spark, f"SELECT count(*) FROM range({many})", ["bigint"])
    assert not is_large(spark, f"SELECT id, NULL FROM range({many})", ["bigint", "void"])


def test_rows_come_in_order_and_their_files_go(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(100_000).selectExpr("id", "CAST(id % 7 AS string) AS text").orderBy("text", "id")
    expected = sorted(range(100_000), key=lambda number: (number % 7, number))
    found = [number for part in spooled(frame, tmp_path / "results") for number in part["id"].to_pylist()]
    assert found == expected
    assert list((tmp_path / "results").iterdir()) == []


def test_files_go_when_nobody_wants_more_and_old_ones_of_others_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    old, young = tmp_path / "old", tmp_path / "young"
    old.mkdir()
    young.mkdir()
    os.utime(old, (time.time() - 90_000,) * 2)
    parts = spooled(spark.range(50_000), tmp_path)
    next(parts)
    assert len(list(tmp_path.iterdir())) == 2
    parts.close()
    assert list(tmp_path.iterdir()) == [young]
