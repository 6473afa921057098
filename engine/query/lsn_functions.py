"""LSNs and times: sys.fn_cdc_map_lsn_to_time, sys.fn_cdc_map_time_to_lsn (reference/functions.md, 2)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import cast

from pyspark.sql import DataFrame, SparkSession

from engine.errors import InvalidTimeOperator
from engine.lake.tables import Lake
from engine.model.lsn import Lsn
from engine.query.sql_text import delta_table

_OPERATORS: Mapping[str, tuple[str, str]] = {
    "largest less than": ("max", "<"),
    "largest less than or equal": ("max", "<="),
    "smallest greater than": ("min", ">"),
    "smallest greater than or equal": ("min", ">="),
}

TIME_OPERATORS = tuple(_OPERATORS)
"""Relational operators of fn_cdc_map_time_to_lsn."""


class LsnTimeMapping:
    """cdc.lsn_time_mapping of one database as far as it is published.

    high: the published high watermark; with None every answer is None, and no job runs.
    """

    def __init__(self, spark: SparkSession, lake: Lake, database: str, high: Lsn | None) -> None:
        self._spark = spark
        self._table = delta_table(lake.lsn_time_mapping(database))
        self._high = high

    def map_lsn_to_time(self, lsn: Lsn) -> datetime | None:
        """When the transaction with this commit LSN ended, in UTC; None without such a row."""
        if self._high is None or lsn > self._high:
            return None
        condition = f"start_lsn = '{lsn}'"
        return cast(
            datetime | None, self._value(f"max(tran_end_time) AS answer FROM {self._table} WHERE {condition}")
        )

    def map_time_to_lsn(self, relational_operator: str, tracking_time: datetime) -> Lsn | None:
        """The commit LSN whose end time stands in this relation to ``tracking_time``; None without one.

        Of entries with one time, the largest or smallest LSN as the operator says.
        Raises InvalidTimeOperator.
        """
        chosen = _OPERATORS.get(relational_operator.strip().lower())
        if chosen is None:
            raise InvalidTimeOperator(relational_operator)
        if self._high is None:
            return None
        end, comparison = chosen
        time = tracking_time.astimezone(UTC).isoformat()
        answer = self._value(
            f"{end}(struct(tran_end_time, start_lsn)).start_lsn AS answer FROM {self._table}"
            f" WHERE tran_end_time {comparison} TIMESTAMP '{time}' AND start_lsn <= '{self._high}'"
        )
        return None if answer is None else Lsn.parse(cast(str, answer))

    def _value(self, selection: str) -> object:
        return self._spark.sql(f"SELECT {selection}").toArrow()["answer"][0].as_py()


def published_mapping(spark: SparkSession, lake: Lake, database: str, high: Lsn | None) -> DataFrame:
    """The rows of cdc.lsn_time_mapping up to ``high``, in no order; none before anything was published."""
    if high is None:
        schema = (
            "start_lsn string, tran_begin_time timestamp, tran_end_time timestamp,"
            " tran_id binary, tran_begin_lsn string"
        )
        return spark.createDataFrame([], schema)
    table = delta_table(lake.lsn_time_mapping(database))
    return spark.sql(f"SELECT * FROM {table} WHERE start_lsn <= '{high}'")
