"""A table's rows before changes that it has had since: the rule by which a table as of an LSN is found.

DataFrames in, DataFrames out; it reads and writes nothing by itself.

Of each key that was changed, the first change decides. A delete (1) or an update (3) tells in its image what
the row was before: that is the row. An insert (2) tells that there was none. What befell the key later plays
no part, and rows of other keys are as they are. An update that changed the key itself is a delete of one key
and an insert of another, as change tables have it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from engine.lake.sql_text import quoted
from engine.model.change import COMMAND_ID, OPERATION, START_LSN, Operation

_PLACE = "place among the changes of its key"


def undone(rows: DataFrame, changes: DataFrame, key: Sequence[str]) -> DataFrame:
    """``rows`` as they were before ``changes``; no order.

    rows: the table with all of ``changes`` done to it; its columns become the answer's. changes: rows of a
    change table with the same columns under the same names, those of its order and ``__$operation``; in any
    order, 3 and 4 of updates both. key: columns that identify a row and are never NULL.
    """
    keys = [quoted(name) for name in key]
    columns = [quoted(name) for name in rows.columns]
    order = ", ".join(quoted(name) for name in (START_LSN, COMMAND_ID, OPERATION))
    numbered = f"row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {order}) AS {quoted(_PLACE)}"
    first = changes.selectExpr("*", numbered).where(f"{quoted(_PLACE)} = 1")
    untouched = rows.join(first.selectExpr(*keys), list(key), "left_anti").selectExpr(*columns)
    before = first.where(f"{quoted(OPERATION)} <> {Operation.INSERT:d}").selectExpr(*columns)
    return untouched.unionAll(before)
