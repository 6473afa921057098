"""Local Delta tables to which whole files are committed, from any process and without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from engine.lake.failures import LakeFailed
from engine.lake.file_commits import FileCommit, PositionCommit, Purpose, Put
from engine.lake.log_entries import LogFolder, NoLinksError
from engine.lake.parquet_files import STATISTICS_COLUMNS, is_pattern, local_folder
from engine.lake.table_head import TableHead, created, followed, opened

PutEntry = Callable[[str, int, str, bool], bool]
"""Makes the log entry of a table's version from its lines, as `LogFolder.make` does."""


class FileTables:
    """Begins commits by path, and remembers what it knows of the tables. Thread-safe.

    without_links: makes entries where the file system has no hard links; by default NoLinksError is raised.
    """

    def __init__(self, without_links: PutEntry | None = None) -> None:
        self._without_links = without_links
        self._heads: dict[str, TableHead] = {}

    def head(self, path: str) -> TableHead | None:
        """The newest version of a table; None where there is none, or where only Spark can commit to it."""
        folder = _folder(path)
        if folder is None:
            return None
        known = self._heads.get(path)
        head = None if known is None else followed(folder, known)
        return self._keep(path, head or opened(path, folder))

    def made(self, path: str) -> None:
        """A table has just been made: its columns need not be asked for."""
        folder = _folder(path)
        if folder is not None:
            self._keep(path, created(folder))

    def forget(self, path: str) -> None:
        """The table is gone."""
        self._heads.pop(path, None)

    def _keep(self, path: str, head: TableHead | None) -> TableHead | None:
        if head is None:
            self._heads.pop(path, None)
            return None
        self._heads[path] = head
        return head if head.by_files else None

    def begin(self, path: str) -> PositionCommit | None:
        """An append of changes on the newest version; None where it is Spark's."""
        head, folder = self.head(path), _folder(path)
        if head is None or folder is None:
            return None
        return PositionCommit(path, folder, head, self._put(path))

    def takes_files(self, path: str) -> bool:
        """Whether `begin_files` can commit to the table."""
        return self.head(path) is not None

    def begin_files(
        self,
        path: str,
        purpose: Purpose,
        partition: Mapping[str, str] | None = None,
        statistics: Collection[str] = STATISTICS_COLUMNS,
    ) -> FileCommit:
        """A commit on the newest version that adds files, or puts them in the place of others.

        It reads no position, so that appends pass it; it fails where one of its files is gone meanwhile.
        partition: the one that all its files are of, as Delta's log writes it; statistics: columns whose
        bounds the log is to tell, of times and texts. Raises LakeFailed where `takes_files` says no, and
        for a deletion from a table that only takes appends.
        """
        head, folder = self.head(path), _folder(path)
        if head is None or folder is None:
            raise LakeFailed(f"Files alone cannot be committed to the table at '{path}'.")
        if purpose is Purpose.DELETE and head.configuration.get("delta.appendOnly", "").lower() == "true":
            raise LakeFailed(f"Nothing can be deleted from the table at '{path}': delta.appendOnly is set.")
        return FileCommit(folder, head, self._put(path), purpose, partition or {}, statistics)

    def _put(self, path: str) -> Put:
        def put(log: LogFolder, version: int, text: str, fsync: bool) -> bool:
            try:
                return log.make(version, text, fsync)
            except NoLinksError:
                if self._without_links is None:
                    raise
                return self._without_links(path, version, text, fsync)

        return put


def _folder(path: str) -> Path | None:
    """The local table's folder; None where every other reader and writer leaves the table to Spark."""
    return None if is_pattern(path) else local_folder(path)
