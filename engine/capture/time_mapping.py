"""Rows of cdc.lsn_time_mapping (reference/tables.md)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa

from engine.capture.change_rows import ChangeRows
from engine.capture.lsn_text import lsn_texts
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA
from engine.model.lsn import Lsn
from engine.sources.base import LogTransaction, LogTransactions

_NO_TRANSACTION = b"\x00"


def mapping_rows(transactions: Sequence[LogTransaction]) -> ChangeRows | None:
    """A row for each of these transactions, ascending by commit LSN; None for none."""
    if not transactions:
        return None
    columns = LogTransactions.of(transactions)
    count = len(columns)
    identifiers = pa.Array.from_buffers(
        pa.binary(columns.tran_id.dtype.itemsize),
        count,
        [None, pa.py_buffer(np.ascontiguousarray(columns.tran_id))],
    )
    rows = pa.Table.from_arrays(
        [
            lsn_texts(columns.commit),
            # A log without begin times is all we have met.
            pa.nulls(count, LSN_TIME_MAPPING_SCHEMA.field("tran_begin_time").type),
            pa.array(columns.commit_time, pa.int64()).cast(
                LSN_TIME_MAPPING_SCHEMA.field("tran_end_time").type
            ),
            identifiers.cast(pa.binary()),
            lsn_texts(columns.begin),
        ],
        schema=LSN_TIME_MAPPING_SCHEMA,
    )
    return ChangeRows(rows, columns.commit, np.ones(count, np.int32))


def dummy_row(log_end: Lsn, now: datetime) -> tuple[Lsn, ChangeRows]:
    """The row that keeps the high end moving while nothing is captured, and its LSN.

    Just below the log's end: above every commit that ended before, below one that begins there.
    How often and with which tran_id the original writes it is not documented.
    """
    lsn = log_end.previous()
    rows = pa.Table.from_pydict(
        {
            "start_lsn": [str(lsn)],
            "tran_begin_time": [None],
            "tran_end_time": [now],
            "tran_id": [_NO_TRANSACTION],
            "tran_begin_lsn": [None],
        },
        schema=LSN_TIME_MAPPING_SCHEMA,
    )
    return lsn, _numbered(rows, [lsn.position])


def _numbered(rows: pa.Table, commits: Sequence[int]) -> ChangeRows:
    return ChangeRows(rows, np.array(commits, np.uint64), np.ones(len(commits), np.int32))
