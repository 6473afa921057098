"""The files of a Delta table that hold rows of a range of LSNs, and their rows, without Spark.

For readers in processes of their own. The list of files is one version of the table: files stay where they
are while they are read, whatever is appended or rewritten meanwhile, until they are vacuumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from engine.errors import CdcError
from engine.lake.parquet_files import local_folder
from engine.model.lsn import Lsn

_READ_AT_ONCE = 65_536
"""Rows of a file that are in memory at once."""


class TableNotReadable(CdcError):  # noqa: N818 - named like the errors of engine.errors
    """A table has features that only Spark reads."""

    number = 50027
    shape = "The table at '{0}' can only be read by Spark: it has {1}."


@dataclass(frozen=True, slots=True)
class RangeFile:
    """A data file: its path or URI, and how many rows it has, those outside of the range among them."""

    path: str
    rows: int


def files_of_range(
    path: str, position: str, low: Lsn, high: Lsn, version: int | None = None
) -> tuple[RangeFile, ...]:
    """The files that may hold rows whose ``position`` is in ``low`` … ``high``, in log order.

    path: of the table; version: the newest by default. Raises TableNotReadable; what the file system raises
    where there is no table.
    """
    table = DeltaTable(path, version)
    if "deletionVectors" in (table.protocol().reader_features or ()):
        raise TableNotReadable(path, "deletion vectors")
    added = pa.table(table.get_add_actions(flatten=True))
    found = []
    for file in added.to_pylist():
        least, most = (file.get(f"{bound}.{position}") for bound in ("min", "max"))
        # A file without statistics may hold anything.
        if (least is None or least <= str(high)) and (most is None or most >= str(low)):
            found.append(
                (least or "", RangeFile(f"{path}/{unquote(file['path'])}", file["num_records"] or 0))
            )
    return tuple(file for _, file in sorted(found, key=lambda pair: (pair[0], pair[1].path)))


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


def _file_system(path: str) -> tuple[pafs.FileSystem, str]:
    if local_folder(path) is not None:
        return pafs.LocalFileSystem(), path
    found: tuple[pafs.FileSystem, str] = pafs.FileSystem.from_uri(path)
    return found
