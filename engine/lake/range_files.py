"""The files of a Delta table that hold rows of a range of LSNs, and their rows, without Spark.

The list of files is one version of the table: files stay where they are while they are read, whatever is
appended or rewritten meanwhile, until they are vacuumed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from engine.errors import CdcError
from engine.lake.live_files import live_files
from engine.lake.parquet_files import is_pattern, local_folder
from engine.model.lsn import Lsn

_READ_AT_ONCE = 65_536
"""Rows of a file that are in memory at once."""
_UNDERSTOOD = frozenset({"columnMapping", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""Features of a table that do not change what its files hold, or are taken into account here."""


class TableNotReadable(CdcError):  # noqa: N818 - named like the errors of engine.errors
    """A table has features that only Spark reads."""

    number = 50027
    shape = "The table at '{0}' can only be read by Spark: it has {1}."


@dataclass(frozen=True, slots=True)
class RangeFile:
    """A data file: its path or URI, and how many rows it has, those outside of the range among them.

    least, most: bounds of its rows' LSNs as text; least is empty and most None where they are not known.
    size: in bytes. latest: no row has a later time, in the column that was asked for; None where not known.
    """

    path: str
    rows: int
    least: str = ""
    most: str | None = None
    size: int = 0
    latest: datetime | None = None


@dataclass(frozen=True, slots=True)
class RangeOfTable:
    """What one version of a table has of a range: the files that may hold its rows, in log order.

    fields: the table's columns, as Delta's log describes them (which is Spark's JSON of a StructField).
    """

    files: tuple[RangeFile, ...]
    fields: tuple[Mapping[str, Any], ...]


def range_of_table(
    path: str, position: str, low: Lsn, high: Lsn, version: int | None = None, time: str | None = None
) -> RangeOfTable:
    """The files that may hold rows whose ``position`` is in ``low`` … ``high``.

    path: of the table; version: the newest by default; time: a column whose latest value each file tells.
    Raises TableNotReadable; what the file system raises where there is no table.
    """
    table = live_files(path, version)
    for feature in sorted(table.features - _UNDERSTOOD):
        raise TableNotReadable(path, _called(feature))
    names = {field["name"]: name_in_files(field) for field in table.fields}
    physical, timed = names[position], names.get(time or "", "")
    found = []
    for file in table.files.values():
        # Delta's log knows the names of the files, and one without statistics may hold anything.
        least, most = file.least.get(physical), file.most.get(physical)
        if (least is None or least <= str(high)) and (most is None or most >= str(low)):
            place, latest = f"{path}/{unquote(file.path)}", _latest(file.most.get(timed))
            found.append(RangeFile(place, file.rows or 0, least or "", most, file.size, latest))
    found.sort(key=lambda file: (file.least, file.path))
    return RangeOfTable(tuple(found), table.fields)


def range_by_log(
    path: str, position: str, low: Lsn, high: Lsn, version: int | None = None
) -> RangeOfTable | None:
    """As `range_of_table`; None where only Spark will do: another file system, a table with features of its
    own, an odd path, no table.
    """
    if local_folder(path) is None or is_pattern(path):
        return None
    try:
        return range_of_table(path, position, low, high, version)
    except (TableNotReadable, DeltaError):  # Spark reads it, or says what is wrong with it
        return None


def _latest(told: datetime | str | None) -> datetime | None:
    """Delta cuts the greatest time of a file to milliseconds."""
    if told is None:
        return None
    time = datetime.fromisoformat(told) if isinstance(told, str) else told
    return (time if time.tzinfo else time.replace(tzinfo=UTC)) + timedelta(milliseconds=1)


def name_in_files(field: Mapping[str, Any]) -> str:
    """How a column is called in Parquet: with column mapping not as in the table."""
    return str(field["metadata"].get("delta.columnMapping.physicalName", field["name"]))


def count_of_range(path: str, schema: pa.Schema, position: str, low: Lsn, high: Lsn) -> int:
    """How many rows of a table have their ``position`` in ``low`` … ``high``.

    schema: as in `rows_of_range`; only files that reach beyond the range are read. Raises as
    `range_of_table`.
    """
    count = 0
    for file in range_of_table(path, position, low, high).files:
        if str(low) <= file.least and file.most is not None and file.most <= str(high):
            count += file.rows
        else:
            batches = rows_of_range(file, schema, position, low, high, [position])
            count += sum(batch.num_rows for batch in batches)
    return count


def rows_of_range(
    file: RangeFile, schema: pa.Schema, position: str, low: Lsn, high: Lsn, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The rows of a file in the range, a batch at a time; only ``columns``, in this order.

    schema: the table's columns, in its order. Columns are taken by their place in the file: with column
    mapping their names there are not the table's.
    """
    source, name = _file_system(file.path)
    with source.open_input_file(name) as opened, pq.ParquetFile(opened) as parquet:
        physical = parquet.schema_arrow.names
        called = dict(zip(schema.names, physical, strict=True))
        wanted = list(dict.fromkeys([*columns, position]))
        read = [called[column] for column in wanted]
        logical = dict(zip(physical, schema.names, strict=True))
        for batch in parquet.iter_batches(_READ_AT_ONCE, columns=read):
            named = batch.rename_columns([logical[column] for column in batch.schema.names])
            texts = named[position]
            inside = pc.and_(pc.greater_equal(texts, str(low)), pc.less_equal(texts, str(high)))
            rows = named.filter(inside).select(list(columns))
            if rows.num_rows:
                yield rows.cast(pa.schema([schema.field(column) for column in columns]))


def _called(feature: str) -> str:
    """``deletionVectors`` as it is written in a sentence."""
    return re.sub("([A-Z])", r" \1", feature).lower()


def _file_system(path: str) -> tuple[pafs.FileSystem, str]:
    if (file := local_folder(path)) is not None:
        return pafs.LocalFileSystem(), str(file)
    found: tuple[pafs.FileSystem, str] = pafs.FileSystem.from_uri(path)
    return found
