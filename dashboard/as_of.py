"""A table as of an LSN, read through the engine inside a background `Operation`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

import pyarrow as pa

from dashboard.operations import Operation as Work
from dashboard.reading import key_condition, name
from engine.engine import Engine
from engine.model.capture_instance import CaptureInstance
from engine.model.lsn import Lsn

MOST = 10_000
"""Rows that are shown and downloaded at most; the command gives them all."""


@dataclass(frozen=True, slots=True)
class RowsAsOf:
    """The rows of a table at ``lsn``, by the key, at most MOST; the captured columns."""

    lsn: Lsn
    rows: pa.Table
    has_more: bool


def read_as_of(engine: Engine, instance: CaptureInstance, lsn: Lsn, key: str, work: Work) -> RowsAsOf:
    """Reads them. key: ``value`` or ``column=value``, as the explorer's filter; empty for all rows."""
    work.step("reading it at the source")
    with engine.table_as_of(instance.database, instance.capture_instance, lsn, check=work.check) as found:
        work.step("taking back what was captured since")
        frame = found.frame.where(key_condition(key, instance)) if key else found.frame
        ordered = frame.orderBy(*map(name, instance.index_column_names))
        rows = work.table(ordered.limit(MOST + 1))
    return RowsAsOf(lsn, rows.slice(0, MOST), rows.num_rows > MOST)


def command(instance: CaptureInstance, lsn: Lsn) -> str:
    """The command that prints the whole table."""
    database, capture_instance = shlex.quote(instance.database), shlex.quote(instance.capture_instance)
    return f"highwater as-of -d {database} {capture_instance} --lsn {lsn} --format csv"
