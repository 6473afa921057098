"""Small files become few, and nobody notices: neither who appends, nor who reads, nor who streams."""

from __future__ import annotations

import os
import time
from importlib import import_module
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.lake.compaction import Compacted, Compactor, Limits, runs
from engine.lake.deletion import CHANGE_KEY, delete_below
from engine.lake.failures import LakeFailed
from engine.lake.file_commits import Purpose
from engine.lake.publisher import Publisher, TablePosition
from engine.lake.range_files import RangeFile, range_of_table, rows_of_range
from engine.lake.tables import Lake, change_table_schema
from engine.lake.tail import TableTail
from engine.model.lsn import Lsn
from tests.lake.change_tables import append_of, capture_instance

# Names that Delta maps, types that Arrow and Spark write differently.
INSTANCE = capture_instance(
    {"id": "int", "a name": "string", "at": "timestamp", "n": "decimal(10,2)", "tags": "array<string>"},
    ["id"],
)
SCHEMA = change_table_schema(INSTANCE)
START = "__$start_lsn"


def change(commit: int, command: int = 1) -> tuple[int, int, int, tuple[object, ...]]:
    at = pa.scalar(commit * 1_000_003, pa.timestamp("us", "UTC")).as_py()
    return commit, command, 2, (commit * 10 + command, f"n{commit}", at, commit, [f"t{commit}", None])


class Table:
    """A change table with a file for each commit."""

    def __init__(self, spark, root: Path) -> None:
        self.spark = spark
        self.lake = Lake(str(root))
        self.path = self.lake.change_table("shop", "dbo_t")
        self.publisher = Publisher(spark, fsync=False)
        self.compactor = Compactor(self.publisher.files, self.publisher.holding, fsync=False)
        self.publisher.create(self.path, SCHEMA)

    def append(self, *commits: int, publisher: Publisher | None = None) -> None:
        for commit in commits:
            rows = [change(commit, 1), change(commit, 2)]
            (publisher or self.publisher).append([append_of(self.lake, INSTANCE, rows)])

    def compact(self) -> Compacted:
        return self.compactor.compact(self.path, CHANGE_KEY)

    def rows(self, version: int | None = None) -> list[dict[str, object]]:
        reader = self.spark.read.format("delta")
        reader = reader if version is None else reader.option("versionAsOf", version)
        rows = reader.load(self.path).toArrow().to_pylist()
        return sorted(rows, key=lambda row: (row[START], row["__$command_id"]))

    def files(self) -> list[RangeFile]:
        return list(range_of_table(self.path, START, Lsn.ZERO, Lsn.MAX).files)

    def newest(self, count: int, since: int = 0) -> list[int]:
        found = TableTail().newest(self.path, SCHEMA, START, Lsn.MAX, count, Lsn.at(since))
        assert found is not None
        return [Lsn.parse(lsn).position for lsn in found[START].to_pylist()]


@pytest.fixture
def table(spark, lake_root: Path) -> Table:
    return Table(spark, lake_root)


def test_the_same_rows_are_in_one_file_in_log_order_and_capture_goes_on(table):
    table.append(*range(1, 9))
    before, version = table.rows(), table.publisher.position(table.path)
    assert table.compact() == Compacted(8, 1)
    assert table.rows() == before
    [file] = table.files()
    assert (file.least, file.most, file.rows) == (str(Lsn.at(1)), str(Lsn.at(8)), 16)
    [rows] = list(rows_of_range(file, SCHEMA, START, Lsn.at(3), Lsn.at(4), SCHEMA.names))
    assert rows.to_pylist() == before[4:8]
    # One that has just started knows where the table is, and writes nothing twice.
    assert Publisher(table.spark, fsync=False).position(table.path) == version == TablePosition(8, 2)
    table.append(8, 9, publisher=Publisher(table.spark, fsync=False))
    table.append(9, 10)
    assert [row["id"] for row in table.rows()] == [n * 10 + m for n in range(1, 11) for m in (1, 2)]
    assert table.compact() == Compacted()
    assert table.newest(4)[-4:] == [9, 9, 10, 10]


def test_newest_rows_are_found_where_older_ones_were_rewritten_later(table):
    table.append(*range(1, 7))
    rewrite = table.compactor._tables.begin_files(table.path, Purpose.COMPACT)
    run = table.files()[:4]
    rewrite.replace([file.path for file in run], table.compactor._rows(rewrite, run, CHANGE_KEY), False)
    table.append(7)
    assert rewrite.commit(False)
    assert table.newest(2) == [7, 7]
    assert table.newest(99) == [n for n in range(1, 8) for _ in "ab"]
    assert table.newest(99, since=4)[-8:] == [4, 4, 5, 5, 6, 6, 7, 7]
    deleted = sum(delete_below(table.spark, table.path, Lsn.at(3), 3))
    assert deleted == 4
    table.append(8)
    assert table.newest(99) == [n for n in range(3, 9) for _ in "ab"]
    assert table.newest(3)[-3:] == [7, 8, 8]


def test_appends_pass_a_compaction_and_it_passes_them(table):
    table.append(*range(1, 9))
    done: list[Compacted] = []
    thread = Thread(target=lambda: done.append(table.compact()))
    thread.start()
    commit = 9
    while thread.is_alive() or commit < 20:
        table.append(commit)
        commit += 1
    thread.join()
    [compacted] = done
    assert not compacted.conflict
    assert compacted.before >= 8
    assert [row["id"] for row in table.rows()] == [n * 10 + m for n in range(1, commit) for m in (1, 2)]


def test_where_cleanup_was_faster_nothing_comes_back(table):
    import_module("delta.exceptions")  # the agent has it by then: it changes what Delta's conflicts are
    table.append(*range(1, 9))

    def clean_up(place: str) -> None:
        if place == "before_compacting":
            assert sum(delete_below(table.spark, table.path, Lsn.at(3), 100)) == 4

    table.compactor._reach = clean_up
    assert table.compact() == Compacted(conflict=True)
    assert [row["id"] for row in table.rows()] == [n * 10 + m for n in range(3, 9) for m in (1, 2)]
    table.compactor._reach = lambda place: None
    assert table.compact().before == 6


def test_a_table_that_is_dropped_meanwhile_stays_gone(table):
    table.append(*range(1, 9))
    there = [True, False]
    done = table.compactor.compact(table.path, CHANGE_KEY, is_there=lambda: there.pop(0) if there else False)
    assert done == Compacted()
    table.publisher.drop(table.path)
    with pytest.raises(LakeFailed):
        table.compactor.vacuum(table.path, 24)
    assert not Path(table.path).exists()


def test_a_stream_sees_each_row_once(table, tmp_path):
    table.append(*range(1, 6))

    def follow() -> None:
        stream = table.spark.readStream.format("delta").load(table.path).select("id").writeStream
        stream = stream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = stream.trigger(availableNow=True).start(str(tmp_path / "copy"))
        query.awaitTermination()

    follow()
    table.compact()
    table.append(6)
    follow()
    copied = table.spark.read.format("delta").load(str(tmp_path / "copy")).toArrow()
    assert sorted(copied["id"].to_pylist()) == [n * 10 + m for n in range(1, 7) for m in (1, 2)]


def test_vacuum_keeps_what_readers_may_still_read(table):
    table.append(*range(1, 6))
    reader = TableTail().version(table.path)
    table.compact()
    assert table.compactor.vacuum(table.path, 24) == 0
    assert len(table.rows(reader)) == 10
    # What went two days ago goes for good; what is in the table stays however old it is.
    old = time.time() - 48 * 3600
    for file in Path(table.path).glob("*.parquet"):
        os.utime(file, (old, old))
    assert table.compactor.vacuum(table.path, 24) == 0, "unreferenced only since now"
    assert len(table.rows(reader)) == 10
    (Path(table.path) / "part-left-by-a-crash.zstd.parquet").write_bytes(b"half")
    os.utime(Path(table.path) / "part-left-by-a-crash.zstd.parquet", (old, old))
    assert table.compactor.vacuum(table.path, 24) == 1
    assert table.compactor.vacuum(table.path, 0) == 5
    assert len(table.rows()) == 10
    assert len(list(Path(table.path).glob("*.parquet"))) == 1


# Which files: pure

LIMITS = Limits(small_bytes=100, small_rows=100, target_bytes=200, target_rows=200, fewest=2)


@st.composite
def tables(draw: st.DrawFn) -> list[RangeFile]:
    """Files as appends leave them: in log order, a transaction over several now and then; some unknown."""
    files, low = [], 1
    for number in range(draw(st.integers(0, 25))):
        least = low + draw(st.integers(0, 2))
        most = least + draw(st.integers(0, 2))
        known = draw(st.integers(0, 9)) > 0
        bounds = (str(Lsn.at(least)), str(Lsn.at(most))) if known else ("", None)
        size, rows = draw(st.integers(1, 130)), draw(st.integers(1, 130))
        files.append(RangeFile(f"f{number:02d}", rows, bounds[0], bounds[1], size))
        low = most
    return files


@given(tables())
def test_runs_are_small_neighbours_that_share_no_lsn_with_others(files):
    chosen = list(runs(files, LIMITS))
    taken = [file for run in chosen for file in run]
    assert len(taken) == len(set(taken))
    for run in chosen:
        assert len(run) >= LIMITS.fewest
        assert all(file.size < 100 and file.rows < 100 for file in run)
        assert sum(file.size for file in run) <= 200
        assert sum(file.rows for file in run) <= 200
        low, high = min(file.least for file in run), max(file.most for file in run)
        for other in files:
            if other not in run and other.least and other.most is not None:
                assert other.most < low or other.least > high


def test_many_small_files_are_packed_densely():
    files = [RangeFile(f"f{n:04d}", 1, str(Lsn.at(n)), str(Lsn.at(n)), 10) for n in range(1000)]
    assert [len(run) for run in runs(files, LIMITS)] == [20] * 50
