"""LSNs and times: sys.fn_cdc_map_lsn_to_time, sys.fn_cdc_map_time_to_lsn (reference/functions.md, 2).

Entries are ordered by LSN, and a time stands for a place in that order: after the last entry that is not
later (or not as late). Where commit times rise with the LSNs, that is what the reference says of the four
operators. They need not: a source stamps a commit before it writes it, so neighbours may be a few
microseconds the wrong way round, and clocks are set back. Even then ``largest less than or equal`` and
``smallest greater than`` of one time are neighbours: intervals that meet lose nothing and repeat nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

from engine.errors import InvalidTimeOperator
from engine.lake.sql_text import delta_table
from engine.lake.tables import Lake
from engine.model.lsn import Lsn

_OPERATORS: Mapping[str, tuple[str, str]] = {
    "largest less than": ("last", "<"),
    "largest less than or equal": ("last", "<="),
    "smallest greater than": ("next", "<="),
    "smallest greater than or equal": ("next", "<"),
}
"""The last entry that compares so, or the one after it."""

TIME_OPERATORS = tuple(_OPERATORS)
"""Relational operators of fn_cdc_map_time_to_lsn."""


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """What a wrapper function needs to know of an interval of times; None where there is no such entry.

    before_start, upto_end: the last entries not after the start and up to the end.
    low_time, high_time: commit times of the two ends of the validity interval.
    """

    before_start: Lsn | None
    upto_end: Lsn | None
    low_time: datetime | None
    high_time: datetime | None


class LsnTimeMapping:
    """cdc.lsn_time_mapping of one database as far as it is published.

    high: the published high watermark; with None every answer is None, and no job runs. Times without a
    zone are UTC, as the answers are.
    """

    def __init__(self, spark: SparkSession, lake: Lake, database: str, high: Lsn | None) -> None:
        self._spark = spark
        self._table = delta_table(lake.lsn_time_mapping(database))
        self._high = high

    def map_lsn_to_time(self, lsn: Lsn | None) -> datetime | None:
        """When the transaction with this commit LSN ended, in UTC; None for NULL and without such a row.

        What an LSN between two rows gives is not documented; NULL is what a lookup of one row gives.
        """
        if lsn is None or self._high is None or lsn > self._high:
            return None
        return cast(
            datetime | None, self._row(f"max(tran_end_time) FROM {self._table} WHERE start_lsn = '{lsn}'")[0]
        )

    def times_of(self, lsns: Collection[Lsn]) -> dict[Lsn, datetime]:
        """When the transactions with these commit LSNs ended, in one job; those without a row are missing."""
        if self._high is None or not lsns:
            return {}
        listed = ", ".join(f"'{lsn}'" for lsn in sorted(lsns) if lsn <= self._high) or "''"
        found = self._spark.sql(
            f"SELECT start_lsn, max(tran_end_time) AS time FROM {self._table}"
            f" WHERE start_lsn IN ({listed}) GROUP BY start_lsn"
        ).toArrow()
        return {Lsn.parse(row["start_lsn"]): row["time"] for row in found.to_pylist()}

    def first_of_time(self, lsn: Lsn) -> Lsn | None:
        """The smallest commit LSN of those that ended when this one did; None where this one has no row."""
        if self._high is None or lsn > self._high:
            return None
        same = f"(SELECT max(tran_end_time) FROM {self._table} WHERE start_lsn = '{lsn}')"
        return _lsn(self._row(f"min(start_lsn) FROM {self._table} WHERE tran_end_time = {same}")[0])

    def last_upto(self, lsns: Collection[Lsn]) -> dict[Lsn, Lsn | None]:
        """The largest commit LSN up to each of these, None without one; in one job."""
        if self._high is None or not lsns:
            return dict.fromkeys(lsns)
        ordered = sorted(lsns)
        last = (f"max(start_lsn) FILTER (WHERE start_lsn <= '{min(lsn, self._high)}')" for lsn in ordered)
        found = self._row(f"{', '.join(last)} FROM {self._table} WHERE start_lsn <= '{max(ordered)}'")
        return dict(zip(ordered, map(_lsn, found), strict=True))

    def first_since(self, time: datetime) -> Lsn | None:
        """The smallest commit LSN of those that ended at ``time`` or later; None without one.

        Where commit times fall, it is below every commit that ended so late.
        """
        if self._high is None:
            return None
        published = f"FROM {self._table} WHERE start_lsn <= '{self._high}'"
        return _lsn(self._row(f"min(start_lsn) {published} AND tran_end_time >= {_literal(time)}")[0])

    def map_time_to_lsn(self, relational_operator: str | None, tracking_time: datetime | None) -> Lsn | None:
        """The commit LSN whose end time stands in this relation to ``tracking_time``; None without one.

        Of entries with one time, the largest LSN for ``largest …``, the smallest for ``smallest …``; two of
        these four ties are documented, the others are so by symmetry. NULL has no LSN. An operator that
        is none, NULL included, is not documented: it raises InvalidTimeOperator.
        """
        chosen = _OPERATORS.get((relational_operator or "").strip().lower())
        if chosen is None:
            raise InvalidTimeOperator(relational_operator)
        if self._high is None or tracking_time is None:
            return None
        place, comparison = chosen
        published = f"FROM {self._table} WHERE start_lsn <= '{self._high}'"
        last = f"max(start_lsn) {published} AND tran_end_time {comparison} {_literal(tracking_time)}"
        if place == "next":
            last = f"min(start_lsn) {published} AND start_lsn > coalesce((SELECT {last}), '')"
        return _lsn(self._row(last)[0])

    def bounds(
        self, low: Lsn, start: datetime | None, end: datetime | None, closed_high_end_point: bool
    ) -> TimeBounds:
        """An interval of times, in one job. low: the low end of validity; None as start or end: no bound."""
        if self._high is None:
            return TimeBounds(None, None, None, None)
        comparison = "<=" if closed_high_end_point else "<"
        before_start, upto_end, low_time, high_time = self._row(
            f"{_last('<=', start)}, {_last(comparison, end)},"
            f" max(tran_end_time) FILTER (WHERE start_lsn = '{low}'),"
            f" max(tran_end_time) FILTER (WHERE start_lsn = '{self._high}')"
            f" FROM {self._table} WHERE start_lsn <= '{self._high}'"
        )
        return TimeBounds(_lsn(before_start), _lsn(upto_end), low_time, high_time)

    def _row(self, selection: str) -> list[Any]:
        """The one row of an aggregate."""
        found = self._spark.sql(f"SELECT {selection}").toArrow()
        return [column[0].as_py() for column in found.columns]


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


def utc(time: datetime) -> datetime:
    """The same instant in UTC; a time without a zone is taken for UTC."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _literal(time: datetime) -> str:
    return f"TIMESTAMP '{utc(time).isoformat()}'"


def _last(comparison: str, time: datetime | None) -> str:
    """SQL for the last LSN whose time compares so; NULL without a time."""
    if time is None:
        return "CAST(NULL AS STRING)"
    return f"max(start_lsn) FILTER (WHERE tran_end_time {comparison} {_literal(time)})"


def _lsn(text: str | None) -> Lsn | None:
    return None if text is None else Lsn.parse(text)
