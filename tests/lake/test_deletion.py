"""Rows are deleted while others are appended: neither waits for the other, nor fails on it."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.lake.deletion import MAPPING_KEY, delete_below
from engine.lake.delta_log import DeltaTables
from engine.lake.file_commits import Purpose
from engine.lake.file_deletion import FileDeletion, files_below
from engine.lake.file_tables import FileTables
from engine.lake.obsolete_rows import obsolete_rows
from engine.lake.publisher import Append, Publisher
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA
from engine.model.lsn import Lsn


def rows_from(first: int, count: int = 1) -> pa.Table:
    """Rows whose commit positions count from ``first``."""
    none = [None] * count
    return pa.table(
        [[str(Lsn.at(first + place)) for place in range(count)], none, none, [b"\x07"] * count, none],
        schema=LSN_TIME_MAPPING_SCHEMA,
    )


def append(publisher: Publisher, path: str, first: int, count: int) -> None:
    """A file of such rows."""
    commits = np.arange(first, first + count, dtype=np.uint64)
    publisher.append([Append(path, rows_from(first, count), commits, np.ones(count, np.int32))])


def left(spark, path: str) -> list[int]:
    rows = spark.read.format("delta").load(path).toArrow().to_pylist()
    return sorted(Lsn.parse(row["start_lsn"]).position for row in rows)


BY_FILES = FileDeletion(FileTables(), fsync=False)


@pytest.fixture(params=["files", "sql"])
def path(spark, publisher, lake_root, request):
    """An empty table; one whose features only Spark knows, so that SQL deletes and Delta appends."""
    path = str(lake_root / f"by {request.param}")
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    if request.param == "sql":
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")
    return path


@pytest.fixture
def publisher(spark):
    return Publisher(spark, fsync=False)


def test_deleting_and_appending_go_on_side_by_side(spark, publisher, path):
    for first in (1, 11, 21):
        append(publisher, path, first, 10)
    stop, appended = Event(), 0

    def go_on() -> None:
        nonlocal appended
        while not stop.is_set():
            append(publisher, path, 100 + appended, 1)
            appended += 1

    load = Thread(target=go_on)
    load.start()
    try:
        deleted = []
        for rows in delete_below(spark, path, Lsn.at(25), 3, MAPPING_KEY, BY_FILES):
            deleted.append(rows)
            seen = appended
            while appended < seen + 2 and load.is_alive():
                stop.wait(0.01)  # some in between, whatever the machine does
    finally:
        stop.set()
        load.join()
    assert deleted == [20, 3, 1]
    assert left(spark, path) == [*range(25, 31), *range(100, 100 + appended)]
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)


def jobs(spark) -> int:
    """How many jobs Spark has begun so far."""
    return spark.sparkContext._jsc.sc().dagScheduler().nextJobId()


def test_a_table_without_obsolete_rows_costs_no_job(spark, lake_root):
    path = str(lake_root / "quiet")
    publisher = Publisher(spark, fsync=False)
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    append(publisher, path, 25, 10)
    before = jobs(spark)
    assert list(delete_below(spark, path, Lsn.at(25), 3, MAPPING_KEY)) == []
    assert jobs(spark) == before
    spark.range(1).count()
    assert jobs(spark) > before, "a job is counted"


def test_the_process_that_commits_asks_spark_for_nothing(spark, lake_root):
    path, low = str(lake_root / "by files"), Lsn.at(25)
    publisher, by_files = Publisher(spark, fsync=False), FileDeletion(FileTables(), fsync=False)
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    for first in (1, 11, 21, 31):
        append(publisher, path, first, 10)
    before, planned = jobs(spark), obsolete_rows(path, LSN_TIME_MAPPING_SCHEMA, "start_lsn", low)
    statements = list(delete_below(spark, path, low, 3, MAPPING_KEY, by_files))
    assert statements == [20, 3, 1]
    append(publisher, path, 41, 1)
    assert jobs(spark) == before, "nor does the append that follows"
    assert (planned.whole_rows, planned.statements(3)) == (20, len(statements))
    assert left(spark, path) == list(range(25, 42))
    history = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").toArrow()
    operations = history["operation"].to_pylist()[1:5]
    assert operations == ["DELETE", "DELETE", "OPTIMIZE", "DELETE"], "a file that is shared is split first"


def test_a_shared_file_is_rewritten_once_whatever_the_threshold(spark, lake_root):
    path, by_files = str(lake_root / "shared"), FileDeletion(FileTables(), fsync=False)
    publisher = Publisher(spark, fsync=False)
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    append(publisher, path, 1, 1000)
    versions = [left(spark, path)]
    for deleted in delete_below(spark, path, Lsn.at(701), 100, MAPPING_KEY, by_files):
        assert deleted == 100
        versions.append(left(spark, path))
    assert versions == [list(range(1 + gone, 1001)) for gone in range(0, 800, 100)]
    written = [file for file in Path(path).glob("*.parquet") if pq.read_metadata(file).num_rows > 100]
    assert sorted(pq.read_metadata(file).num_rows for file in written) == [300, 1000]


def test_pieces_that_a_kill_left_go_with_the_next_run(spark, lake_root):
    path, by_files = str(lake_root / "pieces"), FileDeletion(FileTables(), fsync=False)
    publisher = Publisher(spark, fsync=False)
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    append(publisher, path, 1, 10)
    cut = delete_below(spark, path, Lsn.at(9), 3, MAPPING_KEY, by_files)
    assert next(cut) == 3
    cut.close()
    assert list(delete_below(spark, path, Lsn.at(9), 3, MAPPING_KEY, by_files)) == [5]
    assert left(spark, path) == [9, 10]


def test_commits_that_meet_pass_each_other_unless_they_take_the_same_file(spark, lake_root):
    """Appends and deletions pass each other; of two deletions of one file the second fails."""
    path, tables = str(lake_root / "met"), DeltaTables(spark)
    publisher = Publisher(spark, fsync=False)
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    append(publisher, path, 1, 10)
    append(publisher, path, 11, 10)
    before = jobs(spark)
    files = [file.path for file in files_below(path, "start_lsn", Lsn.at(15))]
    deletion, late = (tables.files.begin_files(path, Purpose.DELETE) for _ in range(2))
    deletion.replace(files[:1], deletion.schema.empty_table(), fsync=False)
    late.replace(files[:1], late.schema.empty_table(), fsync=False)
    append(publisher, path, 21, 10)
    assert deletion.commit(fsync=False, deleted_rows=10), "an append came in between"
    transaction = tables.begin(path)
    transaction.add(rows_from(31), fsync=False)
    deletion = tables.files.begin_files(path, Purpose.DELETE)
    deletion.replace(files[1:], deletion.schema.empty_table(), fsync=False)
    assert deletion.commit(fsync=False, deleted_rows=10)
    assert transaction.commit(31, 1, fsync=False) == deletion.read_version + 2, "a deletion came in between"
    append(publisher, path, 41, 1)
    assert jobs(spark) == before
    assert not late.commit(fsync=False, deleted_rows=10), "of two that take a file the second fails"
    assert left(spark, path) == [*range(21, 31), 31, 41]


def test_files_of_one_transaction_go_whole_beside_one_that_has_a_later_one_too(spark, lake_root):
    path = str(lake_root / "wide")
    publisher, by_files = Publisher(spark, fsync=False), FileDeletion(FileTables(), fsync=False)
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    append(publisher, path, 5, 1)
    spark.sql(f"INSERT INTO delta.`{path}` SELECT * FROM delta.`{path}`")
    append(publisher, path, 6, 3)
    assert list(delete_below(spark, path, Lsn.at(7), 1, MAPPING_KEY, by_files)) == [2, 1]
    assert left(spark, path) == [7, 8]


def test_rows_go_in_log_order_whatever_their_order_in_the_file(spark, lake_root):
    path = str(lake_root / "unordered")
    by_files = FileDeletion(FileTables(), fsync=False)
    Publisher(spark, fsync=False).create(path, LSN_TIME_MAPPING_SCHEMA)
    rows = [(str(Lsn.at(position)), None, None, b"", None) for position in (4, 2, 9, 1, 3)]
    frame = spark.createDataFrame(rows, spark.read.format("delta").load(path).schema)
    frame.coalesce(1).write.format("delta").mode("append").save(path)
    steps = delete_below(spark, path, Lsn.at(5), 3, MAPPING_KEY, by_files)
    assert (next(steps), left(spark, path)) == (3, [4, 9])
    assert (list(steps), left(spark, path)) == ([1], [9])


def test_a_table_whose_log_tells_no_bounds_is_cleaned_by_what_its_files_hold(spark, path):
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')")
    for first in (1, 11):
        rows = [(str(Lsn.at(first + n)), None, None, b"", None) for n in range(10)]
        frame = spark.createDataFrame(rows, spark.read.format("delta").load(path).schema)
        frame.coalesce(1).write.format("delta").mode("append").save(path)
    assert list(delete_below(spark, path, Lsn.at(14), 2, MAPPING_KEY, BY_FILES)) == [10, 2, 1]
    assert left(spark, path) == list(range(14, 21))


def test_a_table_of_an_earlier_version_gets_its_properties_when_it_is_opened(spark, lake_root):
    path = lake_root / "old"
    publisher = Publisher(spark, fsync=False)
    publisher.create(str(path), LSN_TIME_MAPPING_SCHEMA)
    append(publisher, str(path), 1, 2)
    entry = path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        for name in ("delta.isolationLevel", "delta.logRetentionDuration"):
            action.get("metaData", {}).get("configuration", {}).pop(name, None)
    Path(path.parent / "copy" / "_delta_log").mkdir(parents=True)
    copy = path.parent / "copy"
    (copy / "_delta_log" / entry.name).write_text("\n".join(map(json.dumps, actions)) + "\n")
    for _ in range(2):
        Publisher(spark, fsync=False).create(str(copy), LSN_TIME_MAPPING_SCHEMA)
    [metadata] = [
        json.loads(line)["metaData"]
        for line in (copy / "_delta_log" / f"{1:020d}.json").read_text().splitlines()
        if "metaData" in line
    ]
    assert metadata["configuration"]["delta.isolationLevel"] == "WriteSerializable"
    assert metadata["configuration"]["delta.logRetentionDuration"] == "interval 2 days"
    assert not (copy / "_delta_log" / f"{2:020d}.json").exists()
    append(Publisher(spark, fsync=False), str(copy), 1, 3)
    assert left(spark, str(copy)) == [1, 2, 3]
