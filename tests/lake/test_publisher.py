"""Appends to real Delta tables: once, whole, readable by Spark."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from engine.lake import parquet_files
from engine.lake.delta_log import DeltaTables
from engine.lake.failures import LakeFailed
from engine.lake.file_commits import COMMAND_APP_ID, COMMIT_APP_ID
from engine.lake.publisher import Append, Publisher, TablePosition
from engine.lake.table_columns import ChangeTableDiffers
from engine.lake.tables import Lake, change_table_schema
from engine.model.lsn import Lsn
from tests.lake.change_tables import append_of, capture_instance

INSTANCE = capture_instance({"id": "int", "name": "string"}, ["id"])
HISTORY = [
    (commit, command, 2, (10 * commit + command, f"row {command}"))
    for commit in (5, 7, 12)
    for command in (1, 2, 3, 4)
]


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    return Lake(str(lake_root))


@pytest.fixture
def publisher(spark: SparkSession) -> Publisher:
    return Publisher(spark, fsync=False)


def created(publisher: Publisher, lake: Lake, name: str = "dbo_t") -> str:
    path = lake.change_table("shop", name)
    publisher.create(path, change_table_schema(INSTANCE))
    return path


def rows_of(spark: SparkSession, path: str) -> list[dict[str, Any]]:
    table = spark.read.format("delta").load(path).orderBy("`__$start_lsn`", "`__$command_id`")
    return list(table.toArrow().to_pylist())


def log_entries(path: str) -> list[list[dict[str, Any]]]:
    files = sorted(Path(path, "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in file.read_text().splitlines() if line] for file in files]


def test_an_append_is_one_commit_with_the_position_it_reaches(
    spark: SparkSession, publisher: Publisher, lake: Lake
) -> None:
    path = created(publisher, lake)
    append = append_of(lake, INSTANCE, HISTORY)
    assert publisher.position(path) == TablePosition(0, 0)
    assert publisher.append([append]) == 12
    assert rows_of(spark, path) == append.rows.to_pylist()
    _, entry = log_entries(path)
    transactions = {action["txn"]["appId"]: action["txn"]["version"] for action in entry if "txn" in action}
    assert transactions == {"highwater.start_lsn": 12, "highwater.command_id": 4}
    assert publisher.position(path) == Publisher(spark).position(path) == TablePosition(12, 4)


def test_a_replay_writes_nothing_and_makes_no_commit(publisher: Publisher, lake: Lake) -> None:
    path = created(publisher, lake)
    append = append_of(lake, INSTANCE, HISTORY)
    publisher.append([append])
    assert publisher.append([append]) == 0
    assert len(log_entries(path)) == 2


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.integers(0, len(HISTORY)), max_size=4), min_size=1, max_size=3), st.data())
def test_the_table_is_the_same_whatever_is_cut_and_replayed(
    spark: SparkSession, lake: Lake, cuts: Sequence[Sequence[int]], data: st.DataObject
) -> None:
    """Each run starts anywhere not after what is written, cuts its batches anywhere, and ends anywhere."""
    path = lake.change_table("shop", f"t{next(_names)}")
    instance = capture_instance({"id": "int", "name": "string"}, ["id"], Path(path).name.removesuffix("_CT"))
    Publisher(spark).create(path, change_table_schema(instance))
    reached = 0
    for run in [*cuts, [len(HISTORY)]]:
        publisher = Publisher(spark, fsync=False)
        start = data.draw(st.integers(0, reached))
        for first, last in pairwise([start, *sorted(cut for cut in run if cut > start)]):
            publisher.append([append_of(lake, instance, HISTORY[first:last])])
            reached = max(reached, last)
    if reached < len(HISTORY):
        publisher.append([append_of(lake, instance, HISTORY)])
    assert rows_of(spark, path) == append_of(lake, instance, HISTORY).rows.to_pylist()


_names = count()


def test_many_tables_get_a_commit_each_and_between_is_called_between_them(
    spark: SparkSession, publisher: Publisher, lake: Lake
) -> None:
    instances = [capture_instance({"id": "int", "name": "string"}, name=f"t{n}") for n in range(5)]
    appends = [append_of(lake, instance, HISTORY[: n + 1]) for n, instance in enumerate(instances)]
    for append in appends:
        publisher.create(append.path, change_table_schema(INSTANCE))
    calls: list[None] = []
    assert publisher.append(appends, between=lambda: calls.append(None)) == 15
    assert len(calls) == 4
    assert [len(rows_of(spark, append.path)) for append in appends] == [1, 2, 3, 4, 5]


def test_nothing_of_a_failed_append_is_visible_and_the_others_are_whole(
    spark: SparkSession, publisher: Publisher, lake: Lake
) -> None:
    good, bad = created(publisher, lake, "good"), created(publisher, lake, "bad")
    rows = append_of(lake, INSTANCE, HISTORY)
    publisher.position(bad)
    entry = Path(bad, "_delta_log", "00000000000000000001.json")
    entry.mkdir()  # no commit can take its place
    both = [Append(path, rows.rows, rows.commits, rows.commands) for path in (bad, good)]
    with pytest.raises(IsADirectoryError):
        publisher.append(both)
    entry.rmdir()
    assert rows_of(spark, bad) == []
    assert len(rows_of(spark, good)) == 12
    assert publisher.append(both) == 12
    assert rows_of(spark, bad) == rows_of(spark, good) == rows.rows.to_pylist()


def test_spark_writes_the_same_table_where_arrow_cannot(spark: SparkSession, lake: Lake) -> None:
    instance = capture_instance(EVERY_TYPE)
    changes = [(9, n, 2, values) for n, values in enumerate(EVERY_TYPE_ROWS, 1)]
    tables = []
    for name, publisher in (("arrow", Publisher(spark)), ("spark", Publisher(spark, through_spark=True))):
        append = append_of(lake, instance, changes)
        append = Append(lake.change_table("shop", name), append.rows, append.commits, append.commands)
        publisher.create(append.path, append.rows.schema)
        assert publisher.append([append]) == len(changes)
        assert Publisher(spark).position(append.path) == TablePosition(9, len(changes))
        add = next(action["add"] for action in log_entries(append.path)[1] if "add" in action)
        statistics = json.loads(add["stats"])
        bounds = [list(statistics[bound].values()) for bound in ("minValues", "maxValues")]
        tables.append((rows_of(spark, append.path), bounds))
    assert repr(tables[0]) == repr(tables[1])


EVERY_TYPE = {
    "smallint": "smallint",
    "int": "int",
    "bigint": "bigint",
    "float": "float",
    "double": "double",
    "small decimal": "decimal(9,2)",
    "decimal": "decimal(18,4)",
    "wide decimal": "decimal(38,10)",
    "boolean": "boolean",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "array": "array<int>",
    "matrix": "array<array<decimal(5,1)>>",
}
EVERY_TYPE_ROWS: list[tuple[Any, ...]] = [
    (
        -32768,
        2**31 - 1,
        -(2**63),
        1.5,
        float("inf"),
        Decimal("-1234567.89"),
        Decimal("99999999999999.9999"),
        Decimal("1234567890123456789012345678.0123456789"),
        True,
        "naïve 🐘 \x01",
        b"\x00\xff",
        date(1, 1, 1),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999),
        [1, None, 3],
        [[Decimal("1.5")], None, []],
    ),
    (
        0,
        0,
        0,
        float("nan"),
        -0.0,
        Decimal("0.00"),
        Decimal("0.0000"),
        Decimal("0.0000000000"),
        False,
        "",
        b"",
        date(1582, 10, 10),
        datetime(1883, 11, 18, 12, 0, 0, 1, tzinfo=UTC),
        datetime(1582, 10, 10, 1, 2, 3),
        [],
        [],
    ),
    (None,) * len(EVERY_TYPE),
]


def test_every_type_comes_back_as_it_went_in(spark: SparkSession, publisher: Publisher, lake: Lake) -> None:
    instance = capture_instance(EVERY_TYPE)
    append = append_of(lake, instance, [(9, n, 2, values) for n, values in enumerate(EVERY_TYPE_ROWS, 1)])
    publisher.create(append.path, append.rows.schema)
    publisher.append([append])
    assert repr(rows_of(spark, append.path)) == repr(append.rows.to_pylist())
    found = [(name, kind) for name, kind in spark.read.format("delta").load(append.path).dtypes]
    assert found[5:-1] == list(EVERY_TYPE.items())


def test_any_column_name_works(spark: SparkSession, publisher: Publisher, lake: Lake) -> None:
    names = ["a b", "a.b", "a,b;{c}", "(x)", "t\tab\n", "eq=", "`tick`", '"quote"', "ünï 🐘", "${x}", "A B"]
    instance = capture_instance(dict.fromkeys(names, "int"))
    append = append_of(lake, instance, [(9, 1, 2, tuple(range(len(names))))])
    publisher.create(append.path, append.rows.schema)
    publisher.append([append])
    assert rows_of(spark, append.path) == append.rows.to_pylist()


def test_ordinary_names_need_no_feature_of_delta_at_all(publisher: Publisher, lake: Lake) -> None:
    path = created(publisher, lake)
    protocol = next(action["protocol"] for action in log_entries(path)[0] if "protocol" in action)
    assert protocol["minReaderVersion"] == 1


def test_creating_a_table_again_keeps_it(publisher: Publisher, lake: Lake) -> None:
    path = created(publisher, lake)
    publisher.append([append_of(lake, INSTANCE, HISTORY)])
    created(publisher, lake)
    assert publisher.position(path) == TablePosition(12, 4)


def test_a_table_of_other_columns_is_refused(publisher: Publisher, lake: Lake) -> None:
    path = created(publisher, lake)
    other = change_table_schema(capture_instance({"id": "bigint", "name": "string"}))
    with pytest.raises(ChangeTableDiffers, match="has other columns"):
        publisher.create(path, other)


def test_a_dropped_table_begins_anew(spark: SparkSession, publisher: Publisher, lake: Lake) -> None:
    path = created(publisher, lake)
    publisher.append([append_of(lake, INSTANCE, HISTORY)])
    publisher.drop(path)
    publisher.drop(path)
    assert list(Path(path).parent.iterdir()) == []
    created(publisher, lake)
    assert publisher.position(path) == TablePosition(0, 0)
    publisher.append([append_of(lake, INSTANCE, HISTORY[:1])])
    assert len(rows_of(spark, path)) == 1


def test_a_large_append_is_several_files(
    spark: SparkSession, publisher: Publisher, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "MOST_ROWS", 5)
    path = created(publisher, lake)
    append = append_of(lake, INSTANCE, HISTORY)
    publisher.append([append])
    adds = [action["add"] for action in log_entries(path)[1] if "add" in action]
    assert [json.loads(add["stats"])["numRecords"] for add in adds] == [5, 5, 2]
    assert rows_of(spark, path) == append.rows.to_pylist()


def test_a_checkpoint_is_written_when_it_is_due(
    spark: SparkSession, publisher: Publisher, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = created(publisher, lake)
    publisher.append([append_of(lake, INSTANCE, HISTORY[:1])])
    publisher.maintain(path)
    assert not list(Path(path, "_delta_log").glob("*.checkpoint*"))
    monkeypatch.setattr("engine.lake.publisher.COMMITS_A_CHECKPOINT", 1)
    publisher.maintain(path)
    assert len(list(Path(path, "_delta_log").glob("*.checkpoint*"))) == 1
    assert Publisher(spark).position(path) == TablePosition(5, 1)
    monkeypatch.setattr("engine.lake.publisher.COMMITS_A_CHECKPOINT", 2)
    for some, checkpoints in ((2, 1), (3, 2), (4, 2), (5, 3)):
        publisher.append([append_of(lake, INSTANCE, HISTORY[:some])])
        publisher.maintain(path)
        found = list(Path(path, "_delta_log").glob("*.checkpoint*"))
        assert len(found) == checkpoints, "it counts from the last"


def test_a_reader_of_the_last_checkpoint_never_finds_it_empty(
    spark: SparkSession, publisher: Publisher, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta empties _last_checkpoint before it writes it anew: readers that had opened it failed."""
    monkeypatch.setattr("engine.lake.publisher.COMMITS_A_CHECKPOINT", 1)
    path = created(publisher, lake)
    file = Path(path, "_delta_log", "_last_checkpoint")
    publisher.append([append_of(lake, INSTANCE, HISTORY[:4])])
    publisher.maintain(path)
    with file.open() as opened:
        publisher.append([append_of(lake, INSTANCE, HISTORY)])
        publisher.maintain(path)
        assert json.load(opened)["version"] == 1
    assert json.loads(file.read_text())["version"] == 2
    assert sorted(each.name for each in file.parent.glob("*last_checkpoint*")) == ["_last_checkpoint"]
    tables = spark._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]
    tables.clearCache()
    assert len(rows_of(spark, path)) == DeltaTable(path).to_pyarrow_table().num_rows == len(HISTORY)
    told = tables.forTable(spark._jsparkSession, path).readLastCheckpointFile()
    assert told.get().version() == 2


def test_a_position_survives_many_commits_of_others(
    spark: SparkSession, publisher: Publisher, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = created(publisher, lake)
    publisher.append([append_of(lake, INSTANCE, HISTORY[:2])])
    monkeypatch.setattr("engine.lake.delta_log._ENTRIES_TO_TRY", 1)
    for n in range(2):
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('n' = '{n}')")
    assert Publisher(spark).position(path) == TablePosition(5, 2)
    assert publisher.append([append_of(lake, INSTANCE, HISTORY)]) == 10


def test_two_writers_do_not_write_a_row_twice(spark: SparkSession, publisher: Publisher, lake: Lake) -> None:
    """An agent that was thought dead, and the one in its place."""
    path, other = created(publisher, lake), Publisher(spark, fsync=False)
    assert publisher.append([append_of(lake, INSTANCE, HISTORY[:2])]) == 2
    assert other.append([append_of(lake, INSTANCE, HISTORY[:6])]) == 4
    assert publisher.append([append_of(lake, INSTANCE, HISTORY[2:8])]) == 2
    assert other.append([append_of(lake, INSTANCE, HISTORY[8:])]) == 4
    assert rows_of(spark, path) == append_of(lake, INSTANCE, HISTORY).rows.to_pylist()


def test_what_another_process_has_appended_is_known(
    spark: SparkSession, publisher: Publisher, lake: Lake
) -> None:
    """An agent that slept, and has the lease again. deltalake writes: Delta in this JVM is not told of it."""
    path = created(publisher, lake)
    publisher.append([append_of(lake, INSTANCE, HISTORY[:2])])
    reached = [Transaction(COMMIT_APP_ID, 5), Transaction(COMMAND_APP_ID, 4)]
    write_deltalake(
        path,
        append_of(lake, INSTANCE, HISTORY[2:4]).rows,
        mode="append",
        commit_properties=CommitProperties(app_transactions=reached),
    )
    assert publisher.append([append_of(lake, INSTANCE, HISTORY)]) == 8
    assert rows_of(spark, path) == append_of(lake, INSTANCE, HISTORY).rows.to_pylist()


def test_of_two_commits_on_one_version_the_second_fails(
    spark: SparkSession, publisher: Publisher, lake: Lake
) -> None:
    path, tables = created(publisher, lake), DeltaTables(spark)
    first, second = tables.begin(path), tables.begin(path)
    first.commit(5, 1, fsync=False)
    with pytest.raises(LakeFailed, match="Another writer has appended"):
        second.commit(5, 1, fsync=False)
    by_delta, first = tables._begin_in_jvm(path), tables.begin(path)
    first.commit(6, 1, fsync=False)
    with pytest.raises((Py4JJavaError, PySparkException), match="ConcurrentTransactionException"):
        by_delta.commit(6, 1, fsync=False)


def test_a_commit_that_moves_no_position_disturbs_nobody(
    spark: SparkSession, publisher: Publisher, lake: Lake
) -> None:
    """Cleanup deletes whole files while capture goes on."""
    path, tables = created(publisher, lake), DeltaTables(spark)
    publisher.append([append_of(lake, INSTANCE, HISTORY[:4])])
    transaction = tables.begin(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE `__$start_lsn` < '{Lsn.at(6)}'")
    transaction.commit(7, 1, fsync=False)
    assert len(log_entries(path)) == 4
    assert rows_of(spark, path) == []
    assert Publisher(spark).position(path) == TablePosition(7, 1)


@pytest.mark.parametrize("through_spark", [False, True])
def test_rows_of_another_shape_are_refused_before_anything_is_written(
    spark: SparkSession, lake: Lake, through_spark: bool
) -> None:
    publisher = Publisher(spark, through_spark=through_spark)
    path = created(publisher, lake)
    append = append_of(lake, INSTANCE, HISTORY)
    column = append.rows.column_names.index("id")
    for rows in (
        append.rows.drop(["name"]),
        append.rows.set_column(column, "id", append.rows["id"].cast("int64")),
    ):
        with pytest.raises(ChangeTableDiffers):
            publisher.append([Append(path, rows, append.commits, append.commands)])
    assert not list(Path(path).glob("*.parquet"))
    assert publisher.append([append]) == len(append.rows)


def test_only_folders_are_local() -> None:
    assert parquet_files.local_folder("s3a://bucket/x") is None
    assert parquet_files.local_folder("file:///tmp/a b") == Path("/tmp/a b")
    assert parquet_files.local_folder("/tmp/a:b#c") == Path("/tmp/a:b#c")


def test_any_thread_may_checkpoint_and_append(
    publisher: Publisher, lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta asks the calling thread for its session once a table has a checkpoint."""
    monkeypatch.setattr("engine.lake.publisher.COMMITS_A_CHECKPOINT", 1)
    path = created(publisher, lake)
    first, second = (append_of(lake, INSTANCE, [(commit, 1, 2, (commit, "row"))]) for commit in (5, 6))
    publisher.append([first])
    with ThreadPoolExecutor(1) as other:
        other.submit(publisher.maintain, path).result()
    with ThreadPoolExecutor(1) as another:
        assert another.submit(Publisher(spark, fsync=False).append, [second]).result() == 1
    assert list(Path(path, "_delta_log").glob("*.checkpoint*"))
    assert [row["id"] for row in rows_of(spark, path)] == [5, 6]
