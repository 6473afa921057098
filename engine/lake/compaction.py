"""Small files of a table become few large ones, and files that nothing refers to any more go.

Capture appends a file a scan and table. Delta's OPTIMIZE packs files by size, wherever their rows lie; here
neighbours in LSN order become one file, so that range queries go on skipping files by their bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import pyarrow as pa

from engine.lake.failures import lake_failures
from engine.lake.file_commits import FileCommit, Purpose
from engine.lake.file_tables import FileTables
from engine.lake.range_files import RangeFile, range_of_table
from engine.lake.vacuum import vacuum
from engine.model.lsn import Lsn

FILES_A_COMMIT = 2000
"""Small files that go in one commit, about: so much a cut in the middle loses, and a stop waits for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes on disk, in bytes. A file above ``small`` in size or rows is left alone."""

    small_bytes: int = 16 * 1024 * 1024
    small_rows: int = 250_000
    target_bytes: int = 32 * 1024 * 1024
    target_rows: int = 500_000
    fewest: int = 4


@dataclass(frozen=True, slots=True)
class Compacted:
    """Small files that went, the files in their place, and whether another writer was faster."""

    before: int = 0
    after: int = 0
    conflict: bool = False


def runs(files: Sequence[RangeFile], limits: Limits) -> Iterator[Sequence[RangeFile]]:
    """Neighbours in LSN order that are to become one file. Pure.

    files: of one version of a table, with their bounds. No run shares an LSN with a file outside of it: a
    transaction that lies in several files keeps its order, by the files' bounds alone.
    """
    run: list[RangeFile] = []
    size = rows = 0
    for group in _groups(files):
        more_size, more_rows = sum(file.size for file in group), sum(file.rows for file in group)
        small = all(_is_small(file, limits) for file in group)
        if not small or size + more_size > limits.target_bytes or rows + more_rows > limits.target_rows:
            if len(run) >= limits.fewest:
                yield run
            run, size, rows = [], 0, 0
        if small and more_size <= limits.target_bytes and more_rows <= limits.target_rows:
            run.extend(group)
            size, rows = size + more_size, rows + more_rows
    if len(run) >= limits.fewest:
        yield run


def _groups(files: Sequence[RangeFile]) -> Iterator[Sequence[RangeFile]]:
    """Files that share an LSN, directly or by others; nearly always one alone. In LSN order."""
    group: list[RangeFile] = []
    top = ""  # the highest LSN of the group
    for file in sorted(files, key=lambda each: (each.least, each.most or "", each.path)):
        if group and file.least > top:
            yield group
            group = []
        group.append(file)
        top = max(top, file.most or "")
    if group:
        yield group


def _is_small(file: RangeFile, limits: Limits) -> bool:
    known = bool(file.least) and file.most is not None
    return known and file.size < limits.small_bytes and file.rows < limits.small_rows


class Compactor:
    """Compacts and vacuums the tables of a local lake; beside whoever else commits to them.

    holding: keeps a table from being dropped while it is open; is_there: asked within it. reach: told of
    places where a test may kill the process.
    """

    def __init__(
        self,
        tables: FileTables,
        holding: Callable[[str], AbstractContextManager[None]] = lambda path: nullcontext(),
        limits: Limits | None = None,
        reach: Callable[[str], None] = lambda place: None,
        fsync: bool = True,
    ) -> None:
        self._tables = tables
        self._holding = holding
        self._limits = limits or Limits()
        self._reach = reach
        self._fsync = fsync

    def compact(
        self,
        path: str,
        order: Sequence[str],
        is_there: Callable[[], bool] = lambda: True,
        stop: Callable[[], bool] = lambda: False,
    ) -> Compacted:
        """Rewrites runs of small files, some at a time, until none is left or ``stop``.

        order: the columns that order the table's rows, the LSN first. No row changes: streams see none of
        it, appends go on. Where somebody else rewrites the same files the next run goes on. A lake that is
        no local folder is left as it is. Raises LakeFailed; what went before stays.
        """
        with lake_failures():
            if not self._tables.takes_files(path):
                return Compacted()
        before = after = 0
        while not stop() and is_there():
            with lake_failures():
                commit = self._tables.begin_files(path, Purpose.COMPACT)
                chosen = self._chosen(path, order[0], commit.read_version)
                if not chosen:
                    break
                for run in chosen:
                    commit.replace([each.path for each in run], self._rows(commit, run, order), self._fsync)
                self._reach("before_compacting")
                with self._holding(path):
                    if not is_there():
                        break
                    if not commit.commit(self._fsync):
                        return Compacted(before, after, conflict=True)
            self._reach("after_compacting")
            replaced = sum(len(run) for run in chosen)
            before, after = before + replaced, after + commit.written
            if commit.written >= replaced:
                break  # wide rows: their files are small on disk, and no fewer do
        return Compacted(before, after)

    def vacuum(self, path: str, hours: int) -> int:
        """Deletes files that no version of the last ``hours`` hours refers to; how many.

        hours: no more than a week, which is as long as Delta's checkpoints remember what went. Delta's own
        VACUUM finds the same by Spark jobs, some seconds a table. Raises LakeFailed.
        """
        with lake_failures():
            return vacuum(path, hours, orphans=True) or 0

    def _chosen(self, path: str, position: str, version: int) -> list[Sequence[RangeFile]]:
        files = range_of_table(path, position, Lsn.ZERO, Lsn.MAX, version).files
        chosen: list[Sequence[RangeFile]] = []
        count = 0
        for run in runs(files, self._limits):
            chosen.append(run)
            count += len(run)
            if count >= FILES_A_COMMIT:
                break
        return chosen

    def _rows(self, commit: FileCommit, run: Sequence[RangeFile], order: Sequence[str]) -> pa.Table:
        parts = [commit.rows(file.path) for file in run]
        return pa.concat_tables(parts).sort_by([(name, "ascending") for name in order])
