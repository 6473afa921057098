"""Data files of a Delta table, written by Arrow the way Spark reads them fast."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MOST_ROWS = 1_000_000
"""Rows of one data file, at most."""
MOST_BYTES = 256 * 1024 * 1024
"""Arrow bytes of one data file, about; some 64 to 128 MB of Parquet."""
STATISTICS_COLUMNS = frozenset({"__$start_lsn", "start_lsn", "tran_end_time"})
"""Columns that range queries skip files by."""


_PATTERN = frozenset("{}[]*?\\")


@dataclass(frozen=True, slots=True)
class PhysicalColumn:
    """A column's name and id in Parquet; the id is None in a table without column mapping."""

    name: str
    field_id: int | None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A written file: name within the table, size in bytes, time in ms since 1970, Delta's statistics."""

    name: str
    size: int
    modified: int
    statistics: str

    def action(self, data_change: bool = True, partition: Mapping[str, str] | None = None) -> str:
        """The ``add`` action of Delta's log, as JSON; without ``data_change`` its rows are not new."""
        return json.dumps(
            {
                "add": {
                    "path": self.name,
                    "partitionValues": dict(partition or {}),
                    "size": self.size,
                    "modificationTime": self.modified,
                    "dataChange": data_change,
                    "stats": self.statistics,
                }
            }
        )


def local_folder(path: str) -> Path | None:
    """The folder that a table's path names, None where only Hadoop can reach it."""
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    return None if urlsplit(path).scheme else Path(path)


def is_pattern(path: str) -> bool:
    """Whether Spark takes a path for a pattern. Told that it is none, it reads files repeatedly."""
    return not _PATTERN.isdisjoint(path)


def write_files(
    folder: Path,
    rows: pa.Table,
    columns: Mapping[str, PhysicalColumn],
    fsync: bool,
    statistics: Collection[str] = STATISTICS_COLUMNS,
) -> Sequence[DataFile]:
    """Writes ``rows`` into new files of ``folder``; nothing refers to them yet.

    columns: those of the table and of ``rows``; statistics: those whose bounds are kept, of times and texts.
    An orphan that a crash leaves is harmless.
    """
    step = _rows_a_file(rows)
    files = [
        _write_file(folder, rows.slice(first, step), columns, fsync, statistics)
        for first in range(0, len(rows), step)
    ]
    if fsync:
        flush(folder)
    return files


def flush(place: Path) -> None:
    """Waits until a file, or the names in a folder, would survive a power cut."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rows_a_file(rows: pa.Table) -> int:
    by_size = int(len(rows) * MOST_BYTES / max(rows.nbytes, 1))
    return max(1, min(MOST_ROWS, by_size))


def _write_file(
    folder: Path,
    rows: pa.Table,
    columns: Mapping[str, PhysicalColumn],
    fsync: bool,
    statistics: Collection[str],
) -> DataFile:
    name = f"part-{uuid.uuid4()}.zstd.parquet"
    with (folder / name).open("wb") as file:
        pq.write_table(
            _physical(rows, columns),
            file,
            compression="zstd",
            compression_level=1,
            use_dictionary=False,
            # Spark decodes decimals of up to 18 digits from integers, without an object each.
            store_decimal_as_integer=True,
            store_schema=False,
        )
        file.flush()
        if fsync:
            os.fsync(file.fileno())
        facts = os.fstat(file.fileno())
    return DataFile(
        name, facts.st_size, facts.st_mtime_ns // 1_000_000, _statistics(rows, columns, statistics)
    )


def _physical(rows: pa.Table, columns: Mapping[str, PhysicalColumn]) -> pa.Table:
    if all(column.field_id is None for column in columns.values()):
        return rows
    fields = [
        pa.field(column.name, field.type, metadata={"PARQUET:field_id": str(column.field_id)})
        for field, column in zip(rows.schema, columns.values(), strict=True)
    ]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))


def _statistics(rows: pa.Table, columns: Mapping[str, PhysicalColumn], bounded: Collection[str]) -> str:
    least: dict[str, str] = {}
    most: dict[str, str] = {}
    nulls: dict[str, int] = {}
    for name, column in columns.items():
        if name in bounded:
            values = rows.column(name)
            nulls[column.name] = values.null_count
            if values.null_count < len(values):
                bounds = pc.min_max(values).as_py()
                least[column.name] = _statistic(bounds["min"])
                most[column.name] = _statistic(bounds["max"])
    return json.dumps({"numRecords": len(rows), "minValues": least, "maxValues": most, "nullCount": nulls})


def _statistic(value: Any) -> str:
    """A bound as Delta writes it: times are cut to milliseconds, and readers allow for that."""
    if isinstance(value, datetime):
        cut = value - timedelta(microseconds=value.microsecond % 1000)
        return cut.strftime("%Y-%m-%dT%H:%M:%S.") + f"{cut.microsecond // 1000:03d}Z"
    return str(value)
