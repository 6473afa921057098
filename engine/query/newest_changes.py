"""The newest changes of a database, for a glance: read from the lake's files, without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA, Lake, change_table_schema
from engine.lake.tail import TableTail
from engine.model.capture_instance import CaptureInstance
from engine.model.change import END_LSN, START_LSN
from engine.model.lsn import Lsn

COMMIT_TIME = "tran_end_time"
"""Column of the result: when the row's transaction was committed, UTC; NULL when it is long ago."""

_TRANSACTIONS = 2000
"""Rows of cdc.lsn_time_mapping looked through for commit times, about."""


def newest_changes(
    tail: TableTail,
    lake: Lake,
    database: str,
    instances: Sequence[CaptureInstance],
    high: Lsn,
    count: int,
    since: Lsn = Lsn.ZERO,
) -> dict[str, pa.Table] | None:
    """The ``count`` newest rows from ``since`` to ``high`` of each instance, in log order.

    Columns: those of the change table without ``__$end_lsn``, captured ones under the source's names,
    and COMMIT_TIME. None where the lake is not in a local folder: `all_changes` answers there.
    """
    found: dict[str, pa.Table] = {}
    for instance in instances:
        path = lake.change_table(database, instance.capture_instance)
        rows = tail.newest(path, change_table_schema(instance), START_LSN, high, count, since)
        if rows is None:
            return None
        # A file's part may have a hundred thousand rows; whoever asked looks at each of these.
        rows = rows.slice(max(0, rows.num_rows - count))
        found[instance.capture_instance] = rows.rename_columns(_source_names(instance, rows)).drop([END_LSN])
    times = tail.newest(
        lake.lsn_time_mapping(database), LSN_TIME_MAPPING_SCHEMA, "start_lsn", high, _TRANSACTIONS, since
    )
    return None if times is None else {name: _with_times(rows, times) for name, rows in found.items()}


def _source_names(instance: CaptureInstance, rows: pa.Table) -> list[str]:
    leading = rows.num_columns - len(instance.columns) - 1
    return [*rows.column_names[:leading], *instance.column_names, rows.column_names[-1]]


def _with_times(rows: pa.Table, times: pa.Table) -> pa.Table:
    places = pc.index_in(rows[START_LSN], value_set=times["start_lsn"].combine_chunks())
    return rows.append_column(COMMIT_TIME, times["tran_end_time"].take(places))
