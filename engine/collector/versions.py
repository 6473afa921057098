"""Each session once, as it was known last. Pure.

A session is in every snapshot that was taken while it could still change. Snapshots are looked through a day
at a time, the newest first; a session that had not begun by the days to come is told, and forgotten, so that
two days or so are in memory. Where a clock was set back, more of them wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

KEY = ("database_name", "engine_start", "session_id")
"""What a session is known by."""
VERSION = "snapshot_id"
"""The highest of a session's rows is its last one."""
BEGUN = "start_time"
"""It never changes."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of some snapshots: columns `KEY`, `VERSION`, `BEGUN` and any others.

    latest_to_come: no session of the parts that follow began later; None: nobody knows.
    """

    rows: pa.Table
    latest_to_come: datetime | None


def told_once(parts: Iterable[Part]) -> Iterator[pa.Table]:
    """The last version of each session, in parts; every session is in one of them, once."""
    waiting: pa.Table | None = None
    for part in parts:
        rows = part.rows if waiting is None else pa.concat_tables([part.rows, waiting])
        found = last_versions(rows)
        if part.latest_to_come is None:
            waiting = found
            continue
        is_over = pc.greater(found[BEGUN], pa.scalar(part.latest_to_come, found[BEGUN].type))
        yield found.filter(is_over)
        waiting = found.filter(pc.invert(is_over))
    if waiting is not None:
        yield waiting


def last_versions(rows: pa.Table) -> pa.Table:
    """Of each session's rows the one of its newest snapshot; in no order."""
    if not rows.num_rows:
        return rows
    rows = rows.unify_dictionaries()
    session = _numbered([rows[name] for name in KEY])
    order = np.lexsort((rows[VERSION].to_numpy(), session))
    sessions = session[order]
    is_last = np.append(sessions[1:] != sessions[:-1], True)
    return rows.take(pa.array(order[is_last]))


def _numbered(columns: Sequence[pa.ChunkedArray]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A number for each row, the same for rows that agree in all columns."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        codes = _codes(column)
        most = int(codes.max()) + 1
        if int(number.max()) >= np.iinfo(np.int64).max // most:
            number = np.unique(number, return_inverse=True)[1]
        number = number * most + codes
    return number


def _codes(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Whole numbers from 0 on that stand for a column's values; NULL is one of them."""
    if pa.types.is_integer(column.type) and not column.null_count:
        values = column.to_numpy().astype(np.int64)
        return np.asarray(values - values.min())
    encoded = column.combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    return np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64) + 1
