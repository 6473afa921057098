"""All changes of a real change table, asked in the agent's session and over Connect."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from engine.errors import RangeOutsideValidity
from engine.lake.publisher import Publisher
from engine.lake.spark import ConnectEndpoint, connect_session
from engine.lake.tables import Lake
from engine.model.lsn import Lsn
from engine.query.all_changes import all_changes
from tests.lake.change_tables import append_of, capture_instance

INSTANCE = capture_instance(
    {"id": "int", "__$Start_LSN": "string", "Name": "string", "name, old": "string"}, ["id"]
)
CHANGES = [
    (10, 1, 2, (1, "x", "a", "A")),
    (10, 2, 3, (1, "x", "a", "A")),
    (10, 2, 4, (1, "x", "b", "A")),
    (10, 11, 1, (1, "x", "b", "A")),
    (10, 11, 2, (2, "x", "b", "A")),
    (20, 1, 1, (2, "x", "b", "A")),
    (30, 1, 2, (3, None, None, None)),
]
HIGH = Lsn.at(25)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with the table of INSTANCE, its rows in shuffled order over several files."""
    lake = Lake(str(tmp_path_factory.mktemp("lake")))
    publisher = Publisher(spark, fsync=False)
    for commit in (10, 20, 30):
        append = append_of(lake, INSTANCE, [change for change in CHANGES if change[0] == commit])
        publisher.create(append.path, append.rows.schema)
        publisher.append([append])
    return lake


@pytest.fixture(params=["classic", "connect"])
def session(
    request: pytest.FixtureRequest, spark: SparkSession, connect_endpoint: ConnectEndpoint
) -> Iterator[SparkSession]:
    if request.param == "classic":
        yield spark
    else:
        client = connect_session(connect_endpoint)
        yield client
        client.stop()


def asked(
    session: SparkSession, lake: Lake, from_lsn: int, to_lsn: int, option: str = "all update old"
) -> DataFrame:
    return all_changes(session, lake, INSTANCE, Lsn.at(from_lsn), Lsn.at(to_lsn), HIGH, option)


def rows(changes: DataFrame) -> list[tuple[Any, ...]]:
    table = changes.toArrow()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_columns_are_the_documented_ones(session: SparkSession, lake: Lake) -> None:
    changes = asked(session, lake, 1, 20)
    assert changes.columns == [
        "__$start_lsn",
        "__$seqval",
        "__$operation",
        "__$update_mask",
        "id",
        "__$Start_LSN",
        "Name",
        "name, old",
    ]


def test_rows_come_in_commit_order_then_in_the_transactions(session: SparkSession, lake: Lake) -> None:
    expected = [
        (str(Lsn.at(commit)), str(Lsn.at(commit, command)), operation, b"\x0f", *values)
        for commit, command, operation, values in CHANGES
        if commit <= 20
    ]
    assert rows(asked(session, lake, 1, 20)) == expected


def test_all_leaves_the_rows_before_an_update_out(session: SparkSession, lake: Lake) -> None:
    assert [row[2] for row in rows(asked(session, lake, 1, 20, "all"))] == [2, 4, 1, 2, 1]


@pytest.mark.parametrize(("first", "last", "count"), [(10, 10, 5), (11, 20, 1), (11, 19, 0), (20, 20, 1)])
def test_the_interval_is_closed_at_both_ends(
    spark: SparkSession, lake: Lake, first: int, last: int, count: int
) -> None:
    assert len(rows(asked(spark, lake, first, last))) == count


def test_a_batch_after_the_last_is_empty_not_wrong(spark: SparkSession, lake: Lake) -> None:
    assert rows(all_changes(spark, lake, INSTANCE, HIGH.next(), HIGH, HIGH, "all")) == []


@pytest.mark.parametrize(
    ("from_lsn", "to_lsn", "high", "option"),
    [
        (None, Lsn.at(20), HIGH, "all"),
        (Lsn.at(1), None, HIGH, "all"),
        (Lsn.at(1), Lsn.at(20), None, "all"),
        (Lsn.at(1).previous(), Lsn.at(20), HIGH, "all"),
        (Lsn.at(1), HIGH.next(), HIGH, "all"),
        (Lsn.at(1), Lsn.at(20), HIGH, "all with mask"),
        (Lsn.at(1), Lsn.at(20), HIGH, None),
    ],
)
def test_what_is_not_within_the_validity_interval_is_error_313(
    from_lsn: Lsn | None, to_lsn: Lsn | None, high: Lsn | None, option: str | None
) -> None:
    no_spark: Any = None
    with pytest.raises(RangeOutsideValidity, match=r"function cdc\.fn_cdc_get_all_changes_ \.\.\."):
        all_changes(no_spark, Lake("/nowhere"), INSTANCE, from_lsn, to_lsn, high, option)


def test_a_range_reads_only_the_files_it_needs(spark: SparkSession, lake: Lake) -> None:
    path = lake.change_table("shop", "dbo_t")
    condition = f"`__$start_lsn` >= '{Lsn.at(11)}' AND `__$start_lsn` <= '{Lsn.at(20)}'"
    changes = spark.read.format("delta").load(path).where(condition)
    changes.collect()
    assert files_read(changes) == 1
    assert len(list(Path(path).glob("*.parquet"))) == 3


def files_read(frame: DataFrame) -> int:
    """How many files the scan of an executed query opened."""
    plan = frame._jdf.queryExecution().executedPlan()
    scans = [plan.collectLeaves().apply(n) for n in range(plan.collectLeaves().size())]
    return sum(scan.metrics().get("numFiles").get().value() for scan in scans)
