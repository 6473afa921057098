"""Obsolete rows deleted file by file, without a Spark job, from any process that reaches the lake's folder.

Spark plans, reads and counts for every statement: several jobs a table, each some tenths of a second of
processor time. Delta's log says which files hold nothing but obsolete rows; Arrow rewrites the others, each
once, whatever the threshold is.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from engine.lake.failures import LakeFailed
from engine.lake.file_commits import FileCommit, Purpose
from engine.lake.file_tables import FileTables
from engine.lake.obsolete_rows import is_obsolete
from engine.lake.range_files import RangeFile, range_by_log, range_of_table, rows_of_range
from engine.model.lsn import Lsn


class FileDeletion:
    """Deletes from tables of a local lake. ``fsync``: as `engine.lake.publisher.Publisher` has it."""

    def __init__(self, tables: FileTables, fsync: bool = True) -> None:
        self._tables = tables
        self._fsync = fsync

    def steps(
        self, path: str, watermark: Lsn, threshold: int, key: Sequence[str]
    ) -> Generator[int, None, bool]:
        """Statements: all files that are obsolete as a whole, then at most ``threshold`` rows each.

        Gives the rows that each deleted. Returns False where only Spark can tell what is obsolete. Raises
        LakeFailed where another writer was faster; what the file system raises.
        """
        if not self._tables.takes_files(path):
            return False
        while _measured_below(path, key[0], watermark):
            deleted = 0
            for rows in self._round(path, watermark, threshold, key):
                deleted += rows
                yield rows
            if not deleted:
                break
        return True

    def _round(self, path: str, watermark: Lsn, most: int, key: Sequence[str]) -> Iterator[int]:
        commit = self._tables.begin_files(path, Purpose.DELETE)
        files = _measured_below(path, key[0], watermark, commit.read_version)
        whole = [file for file in files if is_obsolete(file, watermark)]
        if whole:
            yield self._without(commit, [file.path for file in whole], sum(file.rows for file in whole))
        elif files and _count_below(commit.rows(files[0].path), watermark, key) > most:
            for piece, rows in self._split(path, files[0].path, watermark, most, key):
                yield self._without(self._tables.begin_files(path, Purpose.DELETE), piece, rows)
        elif deleted := self._rewritten(commit, files, watermark, most, key):
            yield self._done(commit, deleted)

    def _split(
        self, path: str, file: str, watermark: Lsn, most: int, key: Sequence[str]
    ) -> Sequence[tuple[Sequence[str], int]]:
        """Makes of a file one with the rows that stay, and pieces of ``most`` obsolete ones in log order.

        The pieces, with their rows: dropping one rewrites nothing, where a million rows would be rewritten
        for each few thousand that go. No row has changed so far. Pieces that a kill leaves go whole later.
        """
        commit = self._tables.begin_files(path, Purpose.COMPACT)
        rows = commit.rows(file)
        is_below = pc.less(rows[key[0]], str(watermark))
        below = rows.filter(is_below).sort_by([(name, "ascending") for name in key])
        commit.replace([file], rows.filter(pc.invert(is_below)), self._fsync)
        parts = [below.slice(first, most) for first in range(0, len(below), most)]
        pieces = [(commit.replace([], part, self._fsync), len(part)) for part in parts]
        self._done(commit, 0)
        return pieces

    def _without(self, commit: FileCommit, files: Sequence[str], rows: int) -> int:
        commit.replace(files, commit.schema.empty_table(), self._fsync)
        return self._done(commit, rows)

    def _done(self, commit: FileCommit, deleted: int) -> int:
        if not commit.commit(self._fsync, deleted):
            raise LakeFailed("Another writer was faster with these files.")
        return deleted

    def _rewritten(
        self, commit: FileCommit, files: Sequence[RangeFile], watermark: Lsn, most: int, key: Sequence[str]
    ) -> int:
        """Rewrites files without the first ``most`` obsolete rows of them; how many rows those are."""
        deleted = 0
        for file in files:
            rows = commit.rows(file.path)
            obsolete = _first_below(rows, watermark, most - deleted, key)
            if len(obsolete):
                deleted += len(obsolete)
                commit.replace([file.path], rows.filter(_all_but(obsolete, len(rows))), self._fsync)
            if deleted == most:
                break
        return deleted


def _measured_below(
    path: str, position: str, watermark: Lsn, version: int | None = None
) -> Sequence[RangeFile]:
    """As `files_below`, with bounds that were looked up in the file where the log does not tell them."""
    if (files := files_below(path, position, watermark, version)) is not None:
        return files
    found = range_of_table(path, position, Lsn.ZERO, watermark.previous(), version)
    columns = StructType.fromJson({"type": "struct", "fields": list(found.fields)})
    schema = to_arrow_schema(columns, timezone="UTC")
    measured = (_measured(file, schema, position) for file in found.files)
    return [file for file in measured if file.rows and file.least < str(watermark)]


def _measured(file: RangeFile, schema: pa.Schema, position: str) -> RangeFile:
    if file.rows and file.least and file.most:
        return file
    batches = rows_of_range(file, schema, position, Lsn.ZERO, Lsn.MAX, [position])
    texts = [text for batch in batches for text in batch[position].to_pylist()]
    return replace(file, rows=len(texts), least=min(texts, default=""), most=max(texts, default=None))


def files_below(
    path: str, position: str, watermark: Lsn, version: int | None = None
) -> list[RangeFile] | None:
    """The files with rows below ``watermark``, from Delta's log; None where it does not tell their bounds."""
    if watermark == Lsn.ZERO:
        return []
    found = range_by_log(path, position, Lsn.ZERO, watermark.previous(), version)
    if found is None or not all(file.rows and file.least and file.most for file in found.files):
        return None
    return list(found.files)


def _count_below(rows: pa.Table, watermark: Lsn, key: Sequence[str]) -> int:
    return int(pc.sum(pc.less(rows[key[0]], str(watermark))).as_py() or 0)


def _first_below(rows: pa.Table, watermark: Lsn, most: int, key: Sequence[str]) -> pa.Array:
    """Where the first ``most`` obsolete rows in the order of ``key`` are."""
    places = pc.indices_nonzero(pc.less(rows[key[0]], str(watermark)))
    if len(places) <= most:
        return places
    ordered = pc.sort_indices(
        rows.select(list(key)).take(places), sort_keys=[(name, "ascending") for name in key]
    )
    return places.take(ordered[:most])


def _all_but(places: pa.Array, count: int) -> pa.Array:
    return pc.invert(pc.is_in(pa.array(range(count), pa.uint64()), places.cast(pa.uint64())))
