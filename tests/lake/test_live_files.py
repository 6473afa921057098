"""What is followed through a log is what opening the table finds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.sql import SparkSession

from engine.lake import live_files as module
from engine.lake.compaction import Compactor
from engine.lake.deletion import CHANGE_KEY, delete_below
from engine.lake.delta_log import DeltaTables
from engine.lake.live_files import LiveFiles, TableVersion
from engine.lake.log_entries import entry_file
from engine.lake.publisher import Publisher
from engine.lake.range_files import range_of_table
from engine.lake.tables import Lake, change_table_schema
from engine.model.lsn import Lsn
from tests.lake.change_tables import append_of, capture_instance

INSTANCE = capture_instance({"id": "int", "a name": "string"}, ["id"])


class Table:
    """A change table with a file for each commit."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark = spark
        self.lake = Lake(str(root))
        self.path = self.lake.change_table("shop", "dbo_t")
        self.publisher = Publisher(spark, fsync=False)
        self.publisher.create(self.path, change_table_schema(INSTANCE))

    def append(self, *commits: int) -> None:
        for commit in commits:
            self.publisher.append([append_of(self.lake, INSTANCE, [(commit, 1, 2, (commit, "x"))])])

    def compact(self) -> None:
        assert (
            Compactor(self.publisher.files, self.publisher.holding, fsync=False)
            .compact(self.path, CHANGE_KEY)
            .after
        )

    def delete_below(self, commit: int) -> None:
        assert sum(delete_below(self.spark, self.path, Lsn.at(commit), 100, CHANGE_KEY))

    def entry(self, version: int) -> Path:
        return entry_file(Path(self.path), version)


@pytest.fixture
def table(spark: SparkSession, lake_root: Path) -> Table:
    return Table(spark, lake_root)


def opened(path: str, version: int | None = None) -> object:
    """A version by a fresh look."""
    return _range(LiveFiles().of(path, version))


def _range(found: TableVersion) -> object:
    """All that the log tells."""
    files = sorted(
        (file.path, file.rows, file.size, sorted(file.least.items()), sorted(file.most.items()))
        for file in found.files.values()
    )
    return found.version, files, found.fields, found.features


def followed(files: LiveFiles, path: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """The newest version, without opening the table."""
    with monkeypatch.context() as patched:
        patched.setattr(module, "_opened", lambda *_: pytest.fail("The table was opened."))
        return _range(files.of(path))


def test_appends_compaction_and_deletion_are_followed(table, monkeypatch):
    files = LiveFiles()
    table.append(10)
    files.of(table.path)
    for step in (
        lambda: table.append(20, 30, 40, 50),
        table.compact,
        lambda: table.append(60),
        lambda: table.delete_below(35),
        lambda: None,
        lambda: table.append(70, 80),
    ):
        step()
        assert followed(files, table.path, monkeypatch) == opened(table.path)
    assert len(files.of(table.path).files) == 4


def test_an_older_version_is_what_it_was(table):
    files = LiveFiles()
    table.append(10, 20, 30)
    newest = files.of(table.path)
    for version in range(newest.version + 1):
        assert _range(files.of(table.path, version)) == opened(table.path, version)
    table.append(40, 50)
    assert _range(files.of(table.path, newest.version + 1)) == opened(table.path, newest.version + 1)
    assert files.of(table.path).version == newest.version + 2
    with pytest.raises(DeltaError):
        files.of(table.path, newest.version + 9)


def test_other_columns_are_noticed(spark, table):
    files = LiveFiles()
    table.append(10)
    before = files.of(table.path)
    spark.sql(f"ALTER TABLE delta.`{table.path}` ADD COLUMN more int")
    after = files.of(table.path)
    assert [field["name"] for field in after.fields] == [*(f["name"] for f in before.fields), "more"]
    assert _range(after) == opened(table.path)


def test_a_table_made_anew_is_another_one(table):
    files = LiveFiles()
    table.append(10, 20)
    files.of(table.path)
    table.publisher.drop(table.path)
    with pytest.raises(TableNotFoundError):
        files.of(table.path)
    table.publisher.create(table.path, change_table_schema(INSTANCE))
    table.append(30, 40, 50)
    assert _range(files.of(table.path)) == opened(table.path)
    assert len(files.of(table.path).files) == 3


def test_a_folder_that_was_replaced_has_another_table(spark, table, tmp_path):
    """At the same version: put back from a backup, or made anew by another process."""
    table.append(10, 20)
    other = Table(spark, tmp_path / "other")
    other.append(30, 40)
    files, tables = LiveFiles(), DeltaTables(spark)
    assert files.of(table.path).version == tables.position(table.path)[0] == 2
    shutil.rmtree(table.path)
    shutil.copytree(other.path, table.path)
    assert _range(files.of(table.path)) == opened(other.path)
    assert tables.position(table.path) == (2, 40, 1)


def test_a_log_that_was_cut_is_opened(table):
    files = LiveFiles()
    table.append(10)
    known = files.of(table.path).version
    table.append(*range(20, 50))
    DeltaTable(table.path).create_checkpoint()
    for version in range(known + 10):
        table.entry(version).unlink()
    assert _range(files.of(table.path)) == opened(table.path)
    assert len(files.of(table.path).files) == 31


def test_what_a_power_cut_left_of_an_entry_is_told_as_ever(table):
    files = LiveFiles()
    table.append(10, 20)
    version = files.of(table.path).version
    table.append(30)
    entry = table.entry(version + 1)
    entry.write_text(entry.read_text()[:-30])
    with pytest.raises(DeltaError):
        files.of(table.path)


def test_far_behind_it_is_opened(table, monkeypatch):
    files = LiveFiles()
    table.append(10)
    files.of(table.path)
    monkeypatch.setattr(module, "MOST_ENTRIES", 3)
    table.append(20, 30, 40, 50)
    assert _range(files.of(table.path)) == opened(table.path)
    table.append(60, 70, 80)
    assert followed(files, table.path, monkeypatch) == opened(table.path)


def test_tables_not_asked_for_lately_are_forgotten(spark, table, tmp_path, monkeypatch):
    other = Table(spark, tmp_path / "other")
    files = LiveFiles(most_files=3)
    table.append(10, 20)
    other.append(10, 20)
    files.of(table.path)
    files.of(other.path)
    assert followed(files, other.path, monkeypatch) == opened(other.path)
    with pytest.raises(pytest.fail.Exception):
        followed(files, table.path, monkeypatch)


def test_spark_s_own_files_and_times_are_understood(spark, tmp_path, monkeypatch):
    """Also of a folder whose name has an escape, which deltalake would decode."""
    path = str(tmp_path / "with space%20and more")
    files = LiveFiles()
    for number in (1, 2, 3):
        row = f"SELECT '{Lsn.at(number)}' AS start_lsn, timestamp '2026-10-25 01:30:00.123456Z' AS at"
        spark.sql(row).write.format("delta").mode("append").save(path)
        by_log = range_of_table(path, "start_lsn", Lsn.ZERO, Lsn.MAX, time="at")
        if number == 1:
            files.of(path)
        fresh = LiveFiles()
        monkeypatch.setattr(module, "_OF_THIS_PROCESS", fresh)
        assert by_log == range_of_table(path, "start_lsn", Lsn.ZERO, Lsn.MAX, time="at")
        monkeypatch.setattr(module, "_OF_THIS_PROCESS", files)
    assert [file.latest.isoformat() for file in by_log.files] == ["2026-10-25T01:30:00.124000+00:00"] * 3
    shutil.rmtree(path)
    with pytest.raises(TableNotFoundError):
        files.of(path)
