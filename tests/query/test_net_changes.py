"""Net changes against a naive model of the reference's merge table."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from engine.errors import InvalidObjectName, RangeOutsideValidity
from engine.lake.publisher import Publisher
from engine.lake.spark import ConnectEndpoint, connect_session
from engine.lake.tables import Lake
from engine.model.lsn import Lsn
from engine.model.mask import full_mask, mask_of
from engine.query.net_changes import NET_CHANGES_OPTIONS, combined_mask, net_changes
from tests.lake.change_tables import Change, append_of, capture_instance
from tests.query.histories import COLUMNS, KEY, History, histories

_names = count()


@pytest.fixture
def lake(lake_root: Path) -> Lake:
    return Lake(str(lake_root))


def published(spark: SparkSession, lake: Lake, histories: Sequence[History]) -> Any:
    """An instance whose change table has these histories."""
    instance = capture_instance(COLUMNS, KEY, name=f"t{next(_names)}")
    rows = sorted(
        (
            (change, mask)
            for history in histories
            for change, mask in zip(history.changes, history.masks, strict=True)
        ),
        key=lambda pair: pair[0][:2],
    )
    append = append_of(lake, instance, [change for change, _ in rows], [mask for _, mask in rows])
    publisher = Publisher(spark, fsync=False)
    publisher.create(append.path, append.rows.schema)
    publisher.append([append])
    return instance


def net(
    spark: SparkSession, lake: Lake, instance: Any, option: str, first: int = 1, last: int = 1000
) -> list[tuple[Any, ...]]:
    found = net_changes(spark, lake, instance, Lsn.at(first), Lsn.at(last), Lsn.at(1000), option).toArrow()
    assert found.column_names == ["__$start_lsn", "__$operation", "__$update_mask", *COLUMNS]
    return sorted(
        zip(*(column.to_pylist() for column in found.columns), strict=True), key=lambda row: row[3:5]
    )


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(histories(), min_size=60, max_size=120), st.integers(1, 3), st.integers(1, 4))
def test_net_changes_follow_the_merge_table(
    spark: SparkSession, lake: Lake, many: list[History], first: int, length: int
) -> None:
    """Many histories in one table, told apart by a key column: few Spark jobs, many cases."""
    for number, history in enumerate(many):
        history.number = number
        history.changes = [(*change[:3], (number, *change[3][1:])) for change in history.changes]
    many = [history for history in many if history.changes]
    instance = published(spark, lake, many)
    last = first + length
    for option in NET_CHANGES_OPTIONS:
        expected = [row for history in many for row in history.net(option, first, last)]
        assert net(spark, lake, instance, option, first, last) == expected


def test_each_documented_case(spark: SparkSession, lake: Lake, connect_endpoint: ConnectEndpoint) -> None:
    """The rows of reference/functions.md, 1.2, a key each; asked over Connect."""
    history = History(rows=dict.fromkeys((2, 3, 5, 7, 8, 10), (0, "")))
    history.insert(1, 5)
    history.update(2, 1, "").update(2, 2, "")
    history.delete(3)
    history.insert(4).update(4, 1, "x")
    history.update(5, 1, "x").delete(5)
    history.insert(6).update(6, 1, "").delete(6)
    history.delete(7).insert(7, 9, "new")
    history.delete(8).insert(8).delete(8)
    history.insert(9).delete(9).insert(9, 3)
    history.rekey(10, 11)
    instance = published(spark, lake, [history])
    client = connect_session(connect_endpoint)
    try:
        found = {option: net(client, lake, instance, option) for option in NET_CHANGES_OPTIONS}
    finally:
        client.stop()
    operations = {1: 2, 2: 4, 3: 1, 4: 2, 5: 1, 7: 4, 8: 1, 9: 2, 10: 1, 11: 2}
    assert {row[4]: row[1] for row in found["all"]} == operations
    assert {row[4]: row[1] for row in found["all with merge"]} == {
        id: 1 if operation == 1 else 5 for id, operation in operations.items()
    }
    masks = {row[4]: row[2] for row in found["all with mask"]}
    assert masks == {id: mask_of([3], 4) if id == 2 else full_mask(4) for id in operations}
    assert {row[2] for row in found["all"] + found["all with merge"]} == {None}
    assert {row[4]: row[5:] for row in found["all"]}[7] == (9, "new")
    assert {row[4]: row[5:] for row in found["all"]}[5] == (1, "x")


def test_columns_may_be_called_as_the_query_calls_things(spark: SparkSession, lake: Lake) -> None:
    names = ["c1", "operation", "is_last", "mask", "of_key", "start_lsn", "first_operation"]
    instance = capture_instance(dict.fromkeys(names, "int"), ["operation", "of_key"], name=f"t{next(_names)}")
    images: list[Change] = [(1, 1, 2, (1, 2, 3, 4, 5, 6, 7)), (2, 1, 4, (0, 2, 0, 0, 5, 0, 0))]
    append = append_of(lake, instance, images, [full_mask(7), mask_of([1], 7)])
    publisher = Publisher(spark, fsync=False)
    publisher.create(append.path, append.rows.schema)
    publisher.append([append])
    found = net_changes(spark, lake, instance, Lsn.at(2), Lsn.at(2), Lsn.at(2), "all with mask").toArrow()
    assert found.column_names[3:] == names
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (str(Lsn.at(2)), 4, mask_of([1], 7), 0, 2, 0, 0, 5, 0, 0)
    ]


@pytest.mark.parametrize("columns", [1, 8, 9, 56, 57, 1024])
def test_masks_of_any_width_are_combined(spark: SparkSession, columns: int) -> None:
    masks = [mask_of(ordinals, columns) for ordinals in ([1], [columns], [columns // 2 + 1])]
    values = ", ".join(f"(X'{mask.hex()}')" for mask in masks)
    query = f"SELECT {combined_mask(columns)} AS mask FROM VALUES {values} AS t(`__$update_mask`)"
    assert spark.sql(query).toArrow()["mask"][0].as_py() == mask_of([1, columns, columns // 2 + 1], columns)


@pytest.mark.parametrize("option", ["all update old", "", None])
def test_other_options_are_error_313(option: str | None) -> None:
    no_spark: Any = None
    instance = capture_instance(COLUMNS, KEY)
    with pytest.raises(RangeOutsideValidity, match=r"function cdc\.fn_cdc_get_net_changes_ \.\.\."):
        net_changes(no_spark, Lake("/nowhere"), instance, Lsn.at(1), Lsn.at(2), Lsn.at(3), option)


def test_an_instance_without_net_changes_has_no_such_function() -> None:
    no_spark: Any = None
    instance = capture_instance(COLUMNS)
    with pytest.raises(InvalidObjectName, match="fn_cdc_get_net_changes_dbo_t"):
        net_changes(no_spark, Lake("/nowhere"), instance, Lsn.at(1), Lsn.at(2), Lsn.at(3), "all")
