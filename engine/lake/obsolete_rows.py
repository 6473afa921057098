"""How many rows of a table lie below an LSN, and how they would be deleted, without Spark.

What `engine.lake.deletion` does to the same version of the table: the same files whole, the same boundary.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from engine.lake.range_files import RangeFile, range_of_table, rows_of_range
from engine.model.lsn import Lsn


@dataclass(frozen=True, slots=True)
class ObsoleteRows:
    """Rows below an LSN. whole_rows: those of them that go in one statement, before the others.

    whole_files: files with nothing else; shared_files: files that hold rows that stay too.
    """

    rows: int
    whole_rows: int
    whole_files: int
    shared_files: int

    def statements(self, threshold: int) -> int:
        """Statements that delete them, of at most ``threshold`` rows where files are shared."""
        return bool(self.whole_rows) + -(-(self.rows - self.whole_rows) // threshold)


def obsolete_rows(path: str, schema: pa.Schema, position: str, low: Lsn) -> ObsoleteRows:
    """Rows of a table whose ``position`` is below ``low``, from Delta's log.

    Only files that hold other rows too are read. schema: the table's columns. Raises TableNotReadable; what
    the file system raises where there is no table.
    """
    if low == Lsn.ZERO:
        return ObsoleteRows(0, 0, 0, 0)
    listed = range_of_table(path, position, Lsn.ZERO, low.previous()).files
    files = [_with_bounds(file, schema, position) for file in listed]
    files = [file for file in files if file.rows and file.least < str(low)]
    whole = [file for file in files if is_obsolete(file, low)]
    rows = _below(files, schema, position, low)
    return ObsoleteRows(rows, sum(file.rows for file in whole), len(whole), len(files) - len(whole))


def is_obsolete(file: RangeFile, low: Lsn) -> bool:
    """Whether all rows of a file are below ``low``; its bounds are to be known. Pure."""
    return file.most is not None and file.most < str(low)


def _below(files: Iterable[RangeFile], schema: pa.Schema, position: str, low: Lsn) -> int:
    count = 0
    for file in files:
        if file.most is not None and file.most < str(low):
            count += file.rows
        elif file.least < str(low):
            batches = rows_of_range(file, schema, position, Lsn.ZERO, low.previous(), [position])
            count += sum(batch.num_rows for batch in batches)
    return count


def _with_bounds(file: RangeFile, schema: pa.Schema, position: str) -> RangeFile:
    """The file with the bounds that its rows have, where the log does not say them."""
    if file.least and file.most is not None:
        return file
    found = [
        text
        for batch in rows_of_range(file, schema, position, Lsn.ZERO, Lsn.MAX, [position])
        for text in batch[position].to_pylist()
    ]
    return replace(file, rows=len(found), least=min(found, default=""), most=max(found, default=""))
