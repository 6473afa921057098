"""LSNs and times over a real lsn_time_mapping."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from engine.errors import InvalidTimeOperator
from engine.lake.publisher import Append, Publisher
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA, Lake
from engine.model.lsn import Lsn
from engine.query.lsn_functions import TIME_OPERATORS, LsnTimeMapping

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECONDS = {10: 0.0, 20: 1.000001, 30: 1.000001, 40: 1.000002, 50: 9.0}
"""End time of each commit, in seconds after noon; 20 and 30 tie, 50 is not published yet."""


@pytest.fixture(scope="module")
def mapping(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> LsnTimeMapping:
    lake = Lake(str(tmp_path_factory.mktemp("lake")))
    publisher = Publisher(spark, fsync=False)
    path = lake.lsn_time_mapping("shop")
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    for position, seconds in SECONDS.items():
        rows = pa.table(
            [[str(Lsn.at(position))], [None], [NOON + timedelta(seconds=seconds)], [b"\x07"], [None]],
            schema=LSN_TIME_MAPPING_SCHEMA,
        )
        publisher.append([Append(path, rows, np.array([position], np.uint64), np.array([0], np.int32))])
    return LsnTimeMapping(spark, lake, "shop", high=Lsn.at(40))


def test_a_commit_lsn_has_the_time_its_transaction_ended(mapping: LsnTimeMapping) -> None:
    assert mapping.map_lsn_to_time(Lsn.at(20)) == NOON + timedelta(seconds=1, microseconds=1)


@pytest.mark.parametrize("lsn", [Lsn.at(21), Lsn.at(50), Lsn.ZERO])
def test_an_lsn_without_a_published_row_has_none(mapping: LsnTimeMapping, lsn: Lsn) -> None:
    assert mapping.map_lsn_to_time(lsn) is None


@pytest.mark.parametrize(
    ("relational_operator", "seconds", "position"),
    [
        ("largest less than", 1.000001, 10),
        ("largest less than", 1.000002, 30),
        ("largest less than", 0.0, None),
        ("largest less than or equal", 1.000001, 30),
        ("largest less than or equal", 100.0, 40),
        ("largest less than or equal", -1.0, None),
        ("smallest greater than", 0.0, 20),
        ("smallest greater than", 1.000001, 40),
        ("smallest greater than", 1.000002, None),
        ("smallest greater than or equal", 1.000001, 20),
        ("SMALLEST GREATER THAN OR EQUAL", -1.0, 10),
    ],
)
def test_a_time_has_the_lsn_that_stands_in_that_relation(
    mapping: LsnTimeMapping, relational_operator: str, seconds: float, position: int | None
) -> None:
    time = (NOON + timedelta(seconds=seconds)).astimezone(timezone(timedelta(hours=5)))
    expected = None if position is None else Lsn.at(position)
    assert mapping.map_time_to_lsn(relational_operator, time) == expected


def test_another_operator_is_refused_with_the_four_there_are(mapping: LsnTimeMapping) -> None:
    with pytest.raises(InvalidTimeOperator, match="largest less than or equal"):
        mapping.map_time_to_lsn("largest less than or equal to", NOON)


def test_nothing_published_answers_nothing(spark: SparkSession) -> None:
    empty = LsnTimeMapping(spark, Lake("/nowhere"), "shop", high=None)
    assert empty.map_lsn_to_time(Lsn.at(1)) is None
    assert [empty.map_time_to_lsn(operator, NOON) for operator in TIME_OPERATORS] == [None] * 4
