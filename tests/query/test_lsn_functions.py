"""LSNs and times over a real lsn_time_mapping."""

from datetime import timedelta, timezone
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from engine.errors import InvalidTimeOperator
from engine.lake.tables import Lake
from engine.model.lsn import Lsn
from engine.query.lsn_functions import TIME_OPERATORS, LsnTimeMapping
from tests.query.times import NOON, publish_times

SECONDS = {10: 0.0, 20: 1.000001, 30: 1.000001, 40: 1.000002, 50: 9.0}
"""End time of each commit, in seconds after noon; 20 and 30 tie, 50 is not published yet."""

_numbers = count()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(str(tmp_path_factory.mktemp("lake")))


@pytest.fixture(scope="module")
def mapping(spark: SparkSession, lake: Lake) -> LsnTimeMapping:
    publish_times(spark, lake, "shop", SECONDS)
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


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.integers(-1, 7), st.integers(-1, 7))
def test_intervals_that_meet_are_neighbours_even_where_times_fall(
    spark: SparkSession, lake: Lake, times: list[int], one: int, other: int
) -> None:
    """A source may stamp a commit before another that it writes first; clocks are set back."""
    database = f"skewed{next(_numbers)}"
    publish_times(spark, lake, database, {10 * n: float(time) for n, time in enumerate(times, 1)})
    positions = [Lsn.at(10 * n) for n in range(1, len(times) + 1)]
    mapping = LsnTimeMapping(spark, lake, database, positions[-1])
    for low, high in (("less than or equal", "greater than"), ("less than", "greater than or equal")):
        before = mapping.map_time_to_lsn(f"largest {low}", NOON + timedelta(seconds=one))
        after = mapping.map_time_to_lsn(f"smallest {high}", NOON + timedelta(seconds=one))
        split = 0 if before is None else positions.index(before) + 1
        assert after == (positions[split] if split < len(positions) else None)
        # Nothing that is left for later is as early as the place's time.
        late = times[split:]
        assert all(time > one if low == "less than or equal" else time >= one for time in late)
    bounds = mapping.bounds(
        positions[0], NOON + timedelta(seconds=one), NOON + timedelta(seconds=other), True
    )
    assert bounds.before_start == mapping.map_time_to_lsn(
        "largest less than or equal", NOON + timedelta(seconds=one)
    )
    assert bounds.upto_end == mapping.map_time_to_lsn(
        "largest less than or equal", NOON + timedelta(seconds=other)
    )
    assert bounds.low_time == NOON + timedelta(seconds=times[0])
    assert bounds.high_time == NOON + timedelta(seconds=times[-1])


def test_a_time_without_a_zone_is_utc(mapping: LsnTimeMapping) -> None:
    naive = NOON.replace(tzinfo=None)
    assert mapping.map_time_to_lsn("largest less than or equal", naive) == Lsn.at(10)


def test_null_has_no_time_and_no_lsn(mapping: LsnTimeMapping) -> None:
    assert mapping.map_lsn_to_time(None) is None
    assert mapping.map_time_to_lsn("largest less than", None) is None
    with pytest.raises(InvalidTimeOperator):
        mapping.map_time_to_lsn(None, NOON)


def test_another_operator_is_refused_with_the_four_there_are(mapping: LsnTimeMapping) -> None:
    with pytest.raises(InvalidTimeOperator, match="largest less than or equal"):
        mapping.map_time_to_lsn("largest less than or equal to", NOON)


def test_nothing_published_answers_nothing(spark: SparkSession) -> None:
    empty = LsnTimeMapping(spark, Lake("/nowhere"), "shop", high=None)
    assert empty.map_lsn_to_time(Lsn.at(1)) is None
    assert [empty.map_time_to_lsn(operator, NOON) for operator in TIME_OPERATORS] == [None] * 4
