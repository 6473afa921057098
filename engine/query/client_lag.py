"""How far a client is behind, read from the lake's files without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from engine.lake.range_files import count_of_range, range_of_table, rows_of_range
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA, Lake, change_table_schema
from engine.model.capture_instance import CaptureInstance
from engine.model.change import START_LSN
from engine.model.lsn import Lsn


def rows_after(lake: Lake, instance: CaptureInstance, lsn: Lsn, high: Lsn) -> int:
    """Rows of the instance's change table above ``lsn`` and up to ``high``.

    An update has two. Raises TableNotReadable; what the file system raises where there is no table.
    """
    path = lake.change_table(instance.database, instance.capture_instance)
    if lsn >= high:
        return 0
    return count_of_range(path, change_table_schema(instance), START_LSN, lsn.next(), high)


def commit_times(lake: Lake, database: str, lsns: set[Lsn], high: Lsn) -> Mapping[Lsn, datetime]:
    """When the transactions at these LSNs were committed: each is the first from there on that is known.

    An LSN that has none up to ``high`` is missing. Raises as `rows_after`.
    """
    found = {}
    for lsn in lsns:
        time = _first_from(lake, database, lsn, high)
        if time is not None:
            found[lsn] = time
    return found


def _first_from(lake: Lake, database: str, lsn: Lsn, high: Lsn) -> datetime | None:
    best: tuple[str, datetime] | None = None
    names = ["start_lsn", "tran_end_time"]
    for file in range_of_table(lake.lsn_time_mapping(database), "start_lsn", lsn, high).files:
        if best is not None and file.least > best[0]:
            break
        for batch in rows_of_range(file, LSN_TIME_MAPPING_SCHEMA, "start_lsn", lsn, high, names):
            first = min(batch.to_pylist(), key=lambda row: str(row["start_lsn"]))
            if best is None or first["start_lsn"] < best[0]:
                best = (first["start_lsn"], first["tran_end_time"])
    return None if best is None else best[1]
