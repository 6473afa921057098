"""Changes taken back from a table: the table as it was before them, whatever befell its keys."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from engine.model.change import COMMAND_ID, OPERATION, START_LSN
from engine.model.lsn import Lsn
from engine.query.undone_changes import undone
from tests.query.histories import COLUMNS, KEY, History, histories

ROW = ", ".join(f"`{name}` {lake_type}" for name, lake_type in COLUMNS.items())
CHANGE = f"`{START_LSN}` string, `{COMMAND_ID}` int, `{OPERATION}` int, {ROW}"


def rows_of(spark: SparkSession, many: list[History]) -> DataFrame:
    rows = [(history.number, id, *row) for history in many for id, row in history.rows.items()]
    return spark.createDataFrame(rows, ROW)


def changes_of(spark: SparkSession, many: list[History], after: int) -> DataFrame:
    rows = [
        (str(Lsn.at(commit)), command, operation, history.number, *values[1:])
        for history in many
        for commit, command, operation, values in history.changes
        if commit > after
    ]
    return spark.createDataFrame(rows, CHANGE).repartition(3)


def undone_to(spark: SparkSession, many: list[History], commit: int) -> list[tuple[Any, ...]]:
    found = undone(rows_of(spark, many), changes_of(spark, many, commit), KEY)
    assert found.columns == list(COLUMNS)
    return sorted(tuple(row) for row in found.collect())


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(histories(), min_size=60, max_size=120), st.integers(0, 4))
def test_what_statements_did_forwards_is_undone_backwards(
    spark: SparkSession, many: list[History], commit: int
) -> None:
    """Many histories in one table, told apart by a key column: few Spark jobs, many cases."""
    for number, history in enumerate(many):
        history.number = number
    expected = [(history.number, id, *row) for history in many for id, row in history.rows_at(commit).items()]
    assert undone_to(spark, many, commit) == sorted(expected)


def test_each_first_change_of_a_key(spark: SparkSession) -> None:
    history = History(rows={2: (0, "two"), 3: (0, "three"), 4: (0, "four"), 5: (0, "five"), 7: (0, "seven")})
    history.insert(1).update(1, 9, "")
    history.update(2, 1, "x").delete(2)
    history.delete(3).insert(3, 8, "again")
    history.rekey(4, 6)
    history.rekey(5, 4).rekey(6, 5)
    assert undone_to(spark, [history], 0) == [
        (0, 2, 0, "two"),
        (0, 3, 0, "three"),
        (0, 4, 0, "four"),
        (0, 5, 0, "five"),
        (0, 7, 0, "seven"),
    ]
    assert len(undone_to(spark, [history], 1)) == 5
