"""Rows of a change table after its source column got another type: what becomes of each old value.

A value is converted as the source would cast it, never cut or made NULL: one that does not fit ends it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, StructField, StructType

from engine.errors import CdcError
from engine.lake.parquet_files import MOST_ROWS
from engine.lake.sql_text import quoted
from engine.model.change import COMMAND_ID, OPERATION, SEQVAL, START_LSN

_LOG_ORDER = (START_LSN, COMMAND_ID, SEQVAL, OPERATION)

# Where Spark's text of a value is another than PostgreSQL's.
_TEXTS = {
    "binary": "concat('\\\\x', lower(hex({0})))",
    "timestamp": "concat(cast({0} AS string), '+00')",
}


class ColumnNotConverted(CdcError):  # noqa: N818 - named like the errors of engine.errors
    """Values of a column do not fit its new type. ``column`` is its name in the lake."""

    number = 22976

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(f"values that were captured before do not fit: {reason}")
        self.column = column


def converted(rows: DataFrame, wanted: StructType) -> DataFrame:
    """``rows`` with each column in its wanted type, columns in the same order. Nothing is computed yet."""
    return rows.selectExpr(
        *(
            f"{_expression(old, new)} AS {quoted(old.name)}"
            for old, new in zip(rows.schema, wanted, strict=True)
        )
    )


def in_files(rows: DataFrame, count: int) -> DataFrame:
    """``rows`` spread over files as if the capture job had appended them: in log order, each file a range."""
    files = max(1, -(-count // MOST_ROWS))
    ranged = rows.coalesce(1) if files == 1 else rows.repartitionByRange(files, quoted(START_LSN))
    return ranged.sortWithinPartitions(*map(quoted, _LOG_ORDER))


def check(rows: DataFrame, wanted: StructType) -> None:
    """Raises ColumnNotConverted for the first column with values that the wanted type does not hold."""
    changed = [
        (old, new) for old, new in zip(rows.schema, wanted, strict=True) if old.dataType != new.dataType
    ]
    for old, new in changed:
        try:
            lost = rows.selectExpr(_lost(old, new)).first()
        except AnalysisException as error:
            raise ColumnNotConverted(old.name, _reason(error)) from error
        assert lost is not None
        if lost[0] is not None:
            kind = new.dataType.simpleString()
            raise ColumnNotConverted(old.name, f"'{lost[0]}' is no value of type {kind}.")


def _lost(old: StructField, new: StructField) -> str:
    """Some value that a cast would not give back."""
    column = quoted(old.name)
    target = new.dataType.simpleString()
    if target == "string" and not isinstance(old.dataType, ArrayType):
        return "any_value(NULL)"
    # An aggregate, so that one row comes whatever there is.
    is_lost = f"{column} IS NOT NULL AND try_cast({column} AS {target}) IS NULL"
    return f"any_value(cast({column} AS string)) FILTER (WHERE {is_lost})"


def _expression(old: StructField, new: StructField) -> str:
    column = quoted(old.name)
    before, after = old.dataType.simpleString(), new.dataType.simpleString()
    if before == after:
        return column
    if after == "string" and before in _TEXTS:
        return _TEXTS[before].format(column)
    return f"cast({column} AS {after})"


def _reason(error: AnalysisException) -> str:
    lines: Sequence[str] = (error.getMessage() or str(error)).splitlines()
    return next((line.strip() for line in lines if line.strip()), type(error).__name__)
