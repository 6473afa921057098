"""What can be collected: views, their columns in the lake, and what each row of a snapshot has besides."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import pyarrow as pa

from engine.model.scan_session import ScanError, ScanSession

_MOMENT = pa.timestamp("us", "UTC")
_TYPES = {"str": pa.string(), "datetime": _MOMENT}
_NARROW = frozenset({
    "session_id", "error_count", "schema_change_count", "latency", "failed_sessions_count", "phase_number",
    "error_number", "error_severity", "error_state",
})  # fmt: skip
"""Whole numbers that are int in the original; the others are bigint."""

SNAPSHOT_COLUMNS = pa.schema(
    [
        ("database_name", pa.string()),
        ("snapshot_time", _MOMENT),
        ("snapshot_id", pa.int64()),
        ("collection_item_id", pa.int32()),
        ("engine_start", _MOMENT),
        ("agent_start", _MOMENT),
        ("interval_seconds", pa.int32()),
        ("snapshot_date", pa.date32()),
        ("collection_set_id", pa.int32()),
    ]
)
"""What follows a view's columns in each row of its output table.

engine_start: the run of capture that the row belongs to, whose session ids count from 1. agent_start: when
the agent began that took the snapshot. interval_seconds: how often the set was to collect then. The last
two are what the table is partitioned by.
"""
PARTITIONS = ("snapshot_date", "collection_set_id")
"""A day of a set: what expires is whole files."""


def _columns_of(kind: type) -> pa.Schema:
    return pa.schema([(field.name, _type(field.name, str(field.type))) for field in fields(kind)])


def _type(name: str, annotation: str) -> pa.DataType:
    plain = annotation.split(" ")[0]
    if plain == "int":
        return pa.int32() if name in _NARROW else pa.int64()
    return _TYPES[plain]


@dataclass(frozen=True, slots=True)
class CollectedView:
    """A view by its name in T-SQL; ``columns`` as they are in the lake."""

    name: str
    columns: pa.Schema

    @property
    def schema(self) -> pa.Schema:
        """Columns of an output table: the view's, then those of the snapshot."""
        return pa.schema([*self.columns, *SNAPSHOT_COLUMNS])


SESSIONS = CollectedView("sys.dm_cdc_log_scan_sessions", _columns_of(ScanSession))
ERRORS = CollectedView("sys.dm_cdc_errors", _columns_of(ScanError))
JOBS = CollectedView(
    "highwater.cdc_job_state",
    pa.schema(
        [
            ("job_type", pa.string()),
            ("state", pa.string()),
            ("since", _MOMENT),
            ("wanted", pa.bool_()),
            ("message", pa.string()),
            ("maxtrans", pa.int32()),
            ("maxscans", pa.int32()),
            ("continuous", pa.bool_()),
            ("pollinginterval", pa.int64()),
            ("retention", pa.int64()),
            ("threshold", pa.int64()),
        ]
    ),
)
"""Jobs with the agent's state of each; parameters are what they run with, or else what is configured."""
SLOTS = CollectedView(
    "highwater.cdc_slot",
    pa.schema(
        [
            ("slot", pa.string()),
            ("confirmed_lsn", pa.string()),
            ("restart_lsn", pa.string()),
            ("retained_bytes", pa.int64()),
            ("wal_status", pa.string()),
            ("safe_wal_size", pa.int64()),
            ("message", pa.string()),
        ]
    ),
)
"""The log that each source keeps for capture; where it does not answer, ``message`` has its words."""
TABLE_SIZES = CollectedView(
    "highwater.cdc_table_sizes",
    pa.schema(
        [
            ("table_name", pa.string()),
            ("capture_instance", pa.string()),
            ("row_count", pa.int64()),
            ("file_count", pa.int64()),
            ("size_bytes", pa.int64()),
            ("start_lsn", pa.string()),
        ]
    ),
)
"""Change tables and cdc.lsn_time_mapping: rows, files, bytes of the newest version, and the low endpoint."""

VIEWS = (SESSIONS, ERRORS, JOBS, SLOTS, TABLE_SIZES)
DEFAULT_TABLES = (
    (SESSIONS.name, "cdc_log_scan_data"),
    (ERRORS.name, "cdc_errors_data"),
    (JOBS.name, "cdc_job_data"),
    (SLOTS.name, "cdc_slot_data"),
    (TABLE_SIZES.name, "cdc_table_size_data"),
)
"""What the default set collects, and where to."""
SESSIONS_TABLE = DEFAULT_TABLES[0][1]


def view_named(name: str) -> CollectedView | None:
    """A view by its name in any case."""
    return next((each for each in VIEWS if each.name == name.lower()), None)


def table_of(
    view: CollectedView, rows: list[dict[str, Any]], snapshot: dict[str, Any], taken: datetime
) -> pa.Table:
    """Rows of one snapshot as the output table has them; ``snapshot``: what all of them have alike."""
    common = snapshot | {"snapshot_time": taken, "snapshot_date": taken.date()}
    return pa.Table.from_pylist([common | row for row in rows], schema=view.schema)
