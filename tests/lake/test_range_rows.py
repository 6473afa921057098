"""Rows of a range read by the names of their files, against the same version read through Delta."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from engine.lake import range_rows as module
from engine.lake.deletion import delete_below
from engine.lake.publisher import Publisher
from engine.lake.range_files import TableNotReadable, range_of_table
from engine.lake.range_rows import range_rows
from engine.lake.sql_text import delta_table
from engine.lake.table_sizes import TableSizes, _by_spark
from engine.lake.tables import Lake
from engine.lake.tail import TableTail
from engine.model.capture_instance import CaptureInstance
from engine.model.change import START_LSN
from engine.model.lsn import Lsn
from tests.lake.change_tables import append_of, capture_instance

PLAIN = {
    "id": "bigint",
    "Small.int": "smallint",
    "ra`tio": "double",
    "single": "float",
    "paid": "boolean",
    "amount": "decimal(12,2)",
    "wide": "decimal(38,10)",
    "text": "string",
    "raw": "binary",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "tags": "array<string>",
}
MAPPED = {**PLAIN, "b c": "int", "x,{y}": "array<decimal(5,1)>"}
APPENDS, COMMITS_AN_APPEND = 6, 5


def value(kind: str, choose: random.Random) -> Any:
    if choose.random() < 0.2:
        return None
    number = choose.randrange(-100, 100)
    if kind.startswith("array"):
        return [None if choose.random() < 0.3 else value(kind[6:-1], choose) for _ in range(number % 3)]
    if kind.startswith("decimal"):
        return Decimal(number) / 2
    made = {
        "double": number / 7,
        "float": number / 4,
        "boolean": number % 2 == 0,
        "string": f"text {number} é",
        "binary": bytes([number % 256]),
        "date": date(1900 + number, 1, 2),
        "timestamp": datetime(1900 + number, 3, 4, 5, 6, 7, 8, UTC),
        "timestamp_ntz": datetime(1900 + number, 3, 4, 5, 6, 7, 8),
    }
    return made.get(kind, number)


def written(spark: SparkSession, root: Path, columns: dict[str, str], name: str) -> tuple[str, list[int]]:
    """A table with a random history, its beginning cleaned up: its path, and the versions that it had."""
    choose = random.Random(name)
    lake, instance = Lake(str(root)), capture_instance(columns, ["id"], name=name)
    publisher, path = Publisher(spark, fsync=False), lake.change_table("shop", name)
    versions = []
    for first in range(1, APPENDS * COMMITS_AN_APPEND, COMMITS_AN_APPEND):
        append = append_of(lake, instance, list(_changes(instance, first, choose)))
        publisher.create(path, append.rows.schema)
        publisher.append([append])
        versions.append(TableTail().version(path) or 0)
    for _ in delete_below(spark, path, Lsn.at(COMMITS_AN_APPEND + 3), 3):
        versions.append(TableTail().version(path) or 0)
    return path, versions


def _changes(instance: CaptureInstance, first: int, choose: random.Random) -> Sequence[Any]:
    kinds = [column.lake_type for column in instance.columns]
    return [
        (commit, command, choose.choice([1, 2, 3, 4]), tuple(value(kind, choose) for kind in kinds))
        for commit in range(first, first + COMMITS_AN_APPEND)
        for command in range(1, choose.randrange(2, 5))
    ]


def in_any_order(frame: DataFrame) -> tuple[Any, list[str]]:
    table = frame.toArrow()
    return table.schema, sorted(map(str, table.to_pylist()))


def by_delta(spark: SparkSession, path: str, low: int, high: int, version: int) -> DataFrame:
    inside = f"`{START_LSN}` BETWEEN '{Lsn.at(low)}' AND '{Lsn.at(high)}'"
    return spark.sql(f"SELECT * FROM {delta_table(path, version)} WHERE {inside}")


def asked(spark: SparkSession, path: str, low: int, high: int, version: int) -> DataFrame:
    return range_rows(spark, path, START_LSN, Lsn.at(low), Lsn.at(high), version)


def is_by_name(frame: DataFrame) -> bool:
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return "DeltaFileIndex" not in plan and ("InMemoryFileIndex" in plan or "LocalTableScan" in plan)


@pytest.fixture(scope="module", params=["plain", "mapped"])
def table(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[int]]:
    root = tmp_path_factory.mktemp("lake") / "a b %20 é"
    return written(spark, root, PLAIN if request.param == "plain" else MAPPED, request.param)


def test_rows_and_columns_are_those_of_the_version(spark: SparkSession, table: tuple[str, list[int]]) -> None:
    path, versions = table
    newest = versions[-1]
    assert newest > versions[APPENDS - 1], "some rows were cleaned up"
    for low, high, version in ((1, 99, newest), (8, 12, newest), (1, 9, versions[2]), (90, 99, newest)):
        found = asked(spark, path, low, high, version)
        assert is_by_name(found)
        assert in_any_order(found) == in_any_order(by_delta(spark, path, low, high, version))


def test_the_size_is_told_of_a_table_in_any_folder(spark: SparkSession, table: tuple[str, list[int]]) -> None:
    path, _ = table
    size = TableSizes(spark).of(path)
    assert size == _by_spark(spark, path)
    assert size is not None
    assert size.rows > 0


def test_only_files_of_the_range_are_read(table: tuple[str, list[int]]) -> None:
    path, versions = table
    found = range_of_table(path, START_LSN, Lsn.at(16), Lsn.at(21), versions[-1])
    assert len(found.files) == 2


def test_what_names_do_not_say_goes_through_delta(
    spark: SparkSession, table: tuple[str, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, versions = table
    monkeypatch.setattr(module, "MOST_FILES", 1)
    found = asked(spark, path, 16, 21, versions[-1])
    assert not is_by_name(found)
    assert in_any_order(found) == in_any_order(by_delta(spark, path, 16, 21, versions[-1]))


def test_rows_that_a_deletion_vector_hides_stay_hidden(spark: SparkSession, tmp_path: Path) -> None:
    path, [*_, newest] = written(spark, tmp_path / "a [b] {c,d} *?", {"id": "int"}, "hidden")
    # A path that is a pattern, too, goes through Delta.
    assert in_any_order(asked(spark, path, 1, 99, newest)) == in_any_order(
        by_delta(spark, path, 1, 99, newest)
    )
    spark.sql(f"ALTER TABLE {delta_table(path)} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    spark.sql(f"DELETE FROM {delta_table(path)} WHERE `{START_LSN}` = '{Lsn.at(12)}'")
    with pytest.raises(TableNotReadable, match="deletion vectors"):
        range_of_table(path, START_LSN, Lsn.at(1), Lsn.at(99))
    found = asked(spark, path, 12, 13, newest + 2).toArrow().to_pylist()
    assert {row[START_LSN] for row in found} == {str(Lsn.at(13))}
