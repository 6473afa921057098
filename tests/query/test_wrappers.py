"""Wrapper functions over a real change table, all bounds against a naive model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from engine.errors import InvalidObjectName, RangeOutsideValidity
from engine.lake.publisher import Publisher
from engine.lake.spark import ConnectEndpoint, connect_session
from engine.lake.tables import Lake
from engine.model.lsn import Lsn
from engine.model.mask import full_mask, mask_of
from engine.model.wrapper import WrapperShape
from engine.query.wrappers import all_changes_by_time, net_changes_by_time
from tests.lake.change_tables import append_of, capture_instance
from tests.query.times import NOON, publish_times

INSTANCE = capture_instance({"id": "int", "Name": "string", "name": "string", "__$operation": "int"}, ["id"])
ALL, NAME = full_mask(4), mask_of([2], 4)
TIMES = {1: 0.0, 10: 1.0, 20: 2.0, 30: 2.0, 40: 3.0, 50: 5.0}
"""When each commit ended: position 1 enabled the instance, 50 is a dummy row; 20 and 30 tie."""
CHANGES = [
    ((10, 1, 2, (1, "a", "A", 7)), ALL),
    ((20, 1, 3, (1, "a", "A", 7)), NAME),
    ((20, 1, 4, (1, "b", "A", 7)), NAME),
    ((20, 2, 2, (2, "x", None, 7)), ALL),
    ((30, 1, 1, (2, "x", None, 7)), ALL),
    ((40, 1, 2, (3, "z", None, 7)), ALL),
]
HIGH = Lsn.at(50)
SHAPE = WrapperShape(("name", "id"), ("Name", "id"))


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(str(tmp_path_factory.mktemp("lake")))
    append = append_of(lake, INSTANCE, [change for change, _ in CHANGES], [mask for _, mask in CHANGES])
    publisher = Publisher(spark, fsync=False)
    publisher.create(append.path, append.rows.schema)
    publisher.append([append])
    publish_times(spark, lake, "shop", TIMES)
    return lake


def at(seconds: float | None) -> datetime | None:
    return None if seconds is None else NOON + timedelta(seconds=seconds)


def rows(found: DataFrame) -> list[tuple[Any, ...]]:
    table = found.toArrow()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def all_rows(
    spark: SparkSession,
    lake: Lake,
    start: float | None,
    end: float | None,
    option: str = "all",
    shape: WrapperShape = SHAPE,
) -> list[tuple[Any, ...]]:
    return rows(all_changes_by_time(spark, lake, INSTANCE, at(start), at(end), HIGH, option, shape))


def net_rows(
    spark: SparkSession,
    lake: Lake,
    start: float | None,
    end: float | None,
    option: str = "all",
    shape: WrapperShape = SHAPE,
) -> list[tuple[Any, ...]]:
    found = net_changes_by_time(spark, lake, INSTANCE, at(start), at(end), HIGH, option, shape)
    return sorted(rows(found), key=lambda row: row[1])


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


def test_all_changes_have_the_documented_columns_in_log_order(session: SparkSession, lake: Lake) -> None:
    found = all_changes_by_time(session, lake, INSTANCE, None, None, HIGH, "all update old", SHAPE)
    assert found.columns == [
        "__CDC_STARTLSN",
        "__CDC_SEQVAL",
        "name",
        "id",
        "__CDC_OPERATION",
        "Name_uflag",
        "id_uflag",
    ]
    assert rows(found) == [
        (str(Lsn.at(10)), str(Lsn.at(10, 1)), "A", 1, "I", None, None),
        (str(Lsn.at(20)), str(Lsn.at(20, 1)), "A", 1, "UO", None, None),
        (str(Lsn.at(20)), str(Lsn.at(20, 1)), "A", 1, "UN", True, False),
        (str(Lsn.at(20)), str(Lsn.at(20, 2)), None, 2, "I", None, None),
        (str(Lsn.at(30)), str(Lsn.at(30, 1)), None, 2, "D", None, None),
        (str(Lsn.at(40)), str(Lsn.at(40, 1)), None, 3, "I", None, None),
    ]


def test_net_changes_have_no_leading_columns(session: SparkSession, lake: Lake) -> None:
    found = net_changes_by_time(session, lake, INSTANCE, at(1.0), None, HIGH, "all with mask", SHAPE)
    assert found.columns == ["name", "id", "__CDC_OPERATION", "Name_uflag", "id_uflag"]
    assert sorted(rows(found), key=lambda row: row[1]) == [
        ("A", 1, "UN", True, False),
        (None, 3, "I", None, None),
    ]


def test_net_changes_name_their_operations_by_the_option(spark: SparkSession, lake: Lake) -> None:
    assert [row[2:] for row in net_rows(spark, lake, 1.0, None)] == [("UN", None, None), ("I", None, None)]
    merged = net_rows(spark, lake, 1.0, None, "all with merge")
    assert [row[2:] for row in merged] == [("M", None, None), ("M", None, None)]


def test_all_leaves_the_rows_before_an_update_out(spark: SparkSession, lake: Lake) -> None:
    found = all_rows(spark, lake, None, None, "all", WrapperShape(("id",)))
    assert [row[2:] for row in found] == [(1, "I"), (1, "UN"), (2, "I"), (2, "D"), (3, "I")]


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.none() | st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0]),
    st.none() | st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0]),
    st.booleans(),
)
def test_the_start_is_open_and_the_end_as_asked(
    spark: SparkSession, lake: Lake, start: float | None, end: float | None, closed: bool
) -> None:
    def inside(commit: int) -> bool:
        time = TIMES[commit]
        after = start is None or time > start
        return after and (end is None or time < end or (closed and time == end))

    shape = WrapperShape(("id",), closed_high_end_point=closed)
    expected = [
        (str(Lsn.at(commit)), values[0])
        for (commit, _, operation, values), _ in CHANGES
        if operation != 3 and inside(commit)
    ]
    if end == 0.0 and not closed:
        # No commit is before the interval's low end: the bound is outside.
        with pytest.raises(RangeOutsideValidity):
            all_rows(spark, lake, start, end, "all", shape)
        return
    found = all_rows(spark, lake, start, end, "all", shape)
    assert [(row[0], row[2]) for row in found] == expected


@pytest.mark.parametrize("cuts", [[0.0, 0.5, 1.0, 2.0, 2.5, 5.0], [0.0, 2.0, 3.0, 5.0]])
def test_calls_that_meet_lose_and_repeat_nothing(
    spark: SparkSession, lake: Lake, cuts: Sequence[float]
) -> None:
    whole = all_rows(spark, lake, None, None, "all update old")
    parts = [all_rows(spark, lake, start, end, "all update old") for start, end in pairwise(cuts)]
    assert [row for part in parts for row in part] == whole


@pytest.mark.parametrize(
    ("start", "end", "option"),
    [
        (-1.0, None, "all"),
        (5.1, None, "all"),
        (None, 5.1, "all"),
        (None, -1.0, "all"),
        (None, None, "all with nothing"),
    ],
)
def test_bounds_outside_the_validity_interval_are_error_313(
    spark: SparkSession, lake: Lake, start: float | None, end: float | None, option: str
) -> None:
    with pytest.raises(RangeOutsideValidity, match="get_all_changes_"):
        all_rows(spark, lake, start, end, option)
    with pytest.raises(RangeOutsideValidity, match="get_net_changes_"):
        net_rows(spark, lake, start, end, option)


def test_nothing_published_is_error_313() -> None:
    no_spark: Any = None
    with pytest.raises(RangeOutsideValidity):
        all_changes_by_time(no_spark, Lake("/nowhere"), INSTANCE, None, None, None, "all", SHAPE)


def test_without_a_row_identifier_there_is_no_net_wrapper() -> None:
    no_spark: Any = None
    instance = capture_instance({"id": "int"})
    with pytest.raises(InvalidObjectName, match="fn_cdc_get_net_changes_dbo_t"):
        net_changes_by_time(no_spark, Lake("/nowhere"), instance, None, None, HIGH, "all", SHAPE)
