"""Commits of whole files: by many writers at once, beside Delta's own, and where they cannot be."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.lake.deletion import delete_below
from engine.lake.failures import LakeFailed
from engine.lake.file_commits import Purpose
from engine.lake.file_deletion import FileDeletion
from engine.lake.file_tables import FileTables
from engine.lake.live_files import live_files
from engine.lake.log_entries import LogFolder, entry_file
from engine.lake.publisher import Publisher
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA
from engine.model.lsn import Lsn
from tests.lake.test_deletion import append, rows_from

KEY = ("start_lsn",)


@pytest.fixture
def publisher(spark: SparkSession) -> Publisher:
    return Publisher(spark, fsync=False)


@pytest.fixture
def path(publisher: Publisher, lake_root: Path) -> str:
    """An empty cdc.lsn_time_mapping."""
    path = str(lake_root / "mapping")
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    return path


def positions(spark: SparkSession, path: str) -> list[int]:
    """What Spark's Delta reads of the table."""
    rows = spark.read.format("delta").load(path).select("start_lsn").toArrow()
    return sorted(Lsn.parse(text).position for text in rows["start_lsn"].to_pylist())


def commit_one(tables: FileTables, path: str, position: int) -> bool:
    commit = tables.begin_files(path, Purpose.APPEND)
    commit.append(rows_from(position).slice(0, 1), fsync=False)
    return commit.commit(fsync=False)


def test_of_many_writers_none_takes_the_place_of_another(spark: SparkSession, path: str) -> None:
    def write(writer: int) -> None:
        tables = FileTables()
        assert all(commit_one(tables, path, 1000 * writer + number) for number in range(1, 41))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(1, 5)))
    expected = [1000 * writer + number for writer in range(1, 5) for number in range(1, 41)]
    assert positions(spark, path) == expected
    assert [entry_file(Path(path), version).exists() for version in range(162)] == [True] * 161 + [False]
    assert not list(Path(path, "_delta_log").glob(".*.tmp"))


def test_a_table_that_was_made_anew_is_told_from_its_namesake(
    spark: SparkSession, publisher: Publisher, path: str
) -> None:
    tables = FileTables()
    for number in (1, 2, 3):
        assert commit_one(tables, path, number)
    late = tables.begin_files(path, Purpose.APPEND)
    late.append(rows_from(9), fsync=False)
    shutil.rmtree(path)  # as another process drops it
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    assert not late.commit(fsync=False)
    assert commit_one(tables, path, 4)
    assert positions(spark, path) == [4]


def test_a_position_is_not_taken_for_that_of_a_namesake(
    spark: SparkSession, publisher: Publisher, path: str
) -> None:
    """Another agent had the lease, and made the table anew; it is at the same version."""
    append(publisher, path, 1, 10)
    other = Publisher(spark, fsync=False)
    other.drop(path)
    other.create(path, LSN_TIME_MAPPING_SCHEMA)
    append(other, path, 3, 2)
    publisher.forget(str(Path(path).parent))
    append(publisher, path, 3, 4)
    assert positions(spark, path) == [3, 4, 5, 6]


def test_a_file_that_another_has_rewritten_is_not_rewritten_again(
    spark: SparkSession, publisher: Publisher, path: str
) -> None:
    """A cleanup elsewhere takes the file between the look at the table and the beginning of the commit."""
    append(publisher, path, 1, 10)
    [file] = Path(path).glob("*.parquet")
    assert sum(delete_below(spark, path, Lsn.at(4), 10, KEY)) == 3
    commit = FileTables().begin_files(path, Purpose.COMPACT)
    with pytest.raises(LakeFailed, match="Another writer was faster"):
        commit.replace([str(file)], commit.rows(str(file)), fsync=False)
    assert positions(spark, path) == list(range(4, 11))


def test_a_lake_may_be_named_by_a_url(spark: SparkSession, publisher: Publisher, lake_root: Path) -> None:
    path = f"file:{lake_root}/by url"
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    append(publisher, path, 1, 10)
    assert list(delete_below(spark, path, Lsn.at(4), 2, KEY)) == [2, 1]
    assert positions(spark, path) == list(range(4, 11))


def test_an_entry_does_not_get_into_a_table_made_anew_in_the_last_moment(
    spark: SparkSession, publisher: Publisher, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = FileTables()
    assert commit_one(tables, path, 1)
    late = tables.begin_files(path, Purpose.APPEND)
    late.append(rows_from(9), fsync=False)
    make = LogFolder.make

    def too_late(log: LogFolder, version: int, text: str, fsync: bool) -> bool:
        shutil.rmtree(path)
        publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
        return make(log, version, text, fsync)

    monkeypatch.setattr(LogFolder, "make", too_late)
    assert not late.commit(fsync=False)
    monkeypatch.undo()
    assert [file.name for file in Path(path, "_delta_log").glob("*.json")] == [entry_file(Path(), 0).name]
    assert commit_one(tables, path, 2)
    assert positions(spark, path) == [2]


@pytest.mark.parametrize("torn", ["", '{"commitInfo": {"operation"', "\x00\x00"])
def test_an_entry_that_is_not_whole_is_named(path: str, torn: str) -> None:
    late = FileTables().begin_files(path, Purpose.APPEND)
    entry = entry_file(Path(path), 1)
    entry.write_text(torn)
    with pytest.raises(LakeFailed, match=f"The log entry '{entry}' is "):
        late.commit(fsync=False)


def test_a_table_that_is_gone_takes_nothing(path: str) -> None:
    tables = FileTables()
    late = tables.begin_files(path, Purpose.APPEND)
    shutil.rmtree(path)
    assert not late.commit(fsync=False)
    assert not tables.takes_files(path)
    with pytest.raises(LakeFailed, match="cannot be committed"):
        tables.begin_files(path, Purpose.APPEND)


def test_without_links_entries_are_made_as_delta_makes_them(
    spark: SparkSession, publisher: Publisher, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_links)
    append(publisher, path, 1, 2)
    late = publisher.files.begin_files(path, Purpose.APPEND)
    append(publisher, path, 3, 2)
    late.append(rows_from(5).slice(0, 1), fsync=False)
    assert late.commit(fsync=True)
    assert positions(spark, path) == [1, 2, 3, 4, 5]
    with pytest.raises(OSError, match="no links"):
        commit_one(FileTables(), path, 6)


def no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "no links")


def test_a_table_with_a_feature_that_asks_for_more_is_spark_s(
    spark: SparkSession, publisher: Publisher, path: str
) -> None:
    append(publisher, path, 1, 2)
    assert publisher.files.takes_files(path)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")
    assert not publisher.files.takes_files(path)
    append(publisher, path, 3, 2)
    newest = sorted(Path(path, "_delta_log").glob("*.json"))[-1]
    assert "inCommitTimestamp" in newest.read_text().splitlines()[0]
    assert positions(spark, path) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "columns", ["start_lsn STRING NOT NULL", "t TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(t AS DATE))"]
)
def test_a_table_whose_values_a_writer_has_to_check_is_spark_s(
    spark: SparkSession, lake_root: Path, columns: str
) -> None:
    path = str(lake_root / "checked")
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta")
    assert not FileTables().takes_files(path)


@pytest.mark.parametrize(("watermark", "left"), [(3, [3, 4, 5]), (5, [5]), (9, [])])
def test_bounds_that_the_log_does_not_tell_are_looked_up(
    spark: SparkSession, publisher: Publisher, path: str, watermark: int, left: list[int]
) -> None:
    append(publisher, path, 1, 4)
    without_statistics(Path(path), 1)
    append(publisher, path, 5, 1)
    steps: Callable[..., object] = FileDeletion(FileTables(), fsync=False).steps
    assert sum(steps(path, Lsn.at(watermark), 10, KEY)) == 5 - len(left)  # type: ignore[call-overload]
    assert positions(spark, path) == left


def without_statistics(folder: Path, version: int) -> None:
    """The entry of that version tells no bounds any more, as another writer may have left it."""
    entry = entry_file(folder, version)
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    entry.write_text("\n".join(map(json.dumps, actions)))
    assert not any(file.rows for file in live_files(str(folder)).files.values())
