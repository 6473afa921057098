"""The newest rows of a table, read from its files, are those that Spark reads."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.lake.publisher import Publisher
from engine.lake.tables import Lake, change_table_schema
from engine.lake.tail import TableTail
from engine.model.lsn import Lsn
from tests.lake.change_tables import append_of, capture_instance

INSTANCE = capture_instance({"id": "int", "a name": "string"}, ["id"])
SCHEMA = change_table_schema(INSTANCE)


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    return Lake(str(lake_root))


@pytest.fixture
def path(spark: SparkSession, lake: Lake) -> str:
    """A table with three commits of two rows each, at positions 10, 20 and 30."""
    publisher = Publisher(spark, fsync=False)
    path = lake.change_table("shop", "dbo_t")
    publisher.create(path, SCHEMA)
    for commit in (10, 20, 30):
        rows = [(commit, 1, 2, (commit, "first")), (commit, 2, 2, (commit + 1, "second"))]
        publisher.append([append_of(lake, INSTANCE, rows)])
    return path


def ids(path: str, upto: int, count: int, tail: TableTail | None = None) -> list[int]:
    found = (tail or TableTail()).newest(path, SCHEMA, "__$start_lsn", Lsn.at(upto), count)
    assert found is not None
    assert found.schema.names == SCHEMA.names
    return list(found["id"].to_pylist())


def test_the_last_rows_come_in_log_order(path: str) -> None:
    assert ids(path, 99, 3) == [20, 21, 30, 31]
    assert ids(path, 99, 100) == [10, 11, 20, 21, 30, 31]


def test_nothing_above_the_high_watermark_is_seen(path: str) -> None:
    assert ids(path, 20, 2) == [20, 21]
    assert ids(path, 9, 2) == []


def test_one_transaction_is_found_by_its_range(path: str) -> None:
    rows = TableTail().newest(path, SCHEMA, "__$start_lsn", Lsn.at(20), 100, since=Lsn.at(20))
    assert rows is not None
    assert rows["id"].to_pylist() == [20, 21]


def test_a_tail_follows_the_table(spark: SparkSession, lake: Lake, path: str) -> None:
    tail = TableTail()
    assert ids(path, 99, 1, tail) == [30, 31]
    Publisher(spark, fsync=False).append([append_of(lake, INSTANCE, [(40, 1, 2, (40, "new"))])])
    assert ids(path, 99, 1, tail) == [40]


def test_a_log_that_was_cut_can_not_tell(path: str) -> None:
    (Path(path) / "_delta_log" / f"{0:020d}.json").unlink()
    assert TableTail().newest(path, SCHEMA, "__$start_lsn", Lsn.at(99), 100) is None


def test_a_table_elsewhere_can_not_tell() -> None:
    assert TableTail().newest("s3a://lake/t", SCHEMA, "__$start_lsn", Lsn.at(9), 1) is None
    assert TableTail().newest("/nowhere/t", SCHEMA, "__$start_lsn", Lsn.at(9), 1) is None
