"""Idempotent, parallel appends to change tables: one Delta commit a table.

Small and large batches alike are written as Parquet by Arrow and committed by a transaction of the
Spark session's own Delta, which is two to four times cheaper than a DataFrame append
(design/performance.md, 3 and 4). Where Arrow cannot reach the table, Spark writes the files of the
same transaction.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock, RLock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from engine.lake.delta_log import DeltaTables

COMMITS_A_CHECKPOINT = 100
"""Log entries that a reader replays at most, about, when `Publisher.maintain` is called often enough.

A checkpoint costs as much as ten commits.
"""


@dataclass(frozen=True, order=True, slots=True)
class TablePosition:
    """The last change a table has: its transaction's commit position and its ``__$command_id``."""

    commit: int
    command: int


@dataclass(frozen=True, slots=True)
class Append:
    """Rows for one table: the next changes of the log that it has not got.

    rows: of the table's schema; commits: each row's commit position; commands: each row's ``__$command_id``.
    """

    path: str
    rows: pa.Table
    commits: NDArray[np.uint64]
    commands: NDArray[np.int32]

    def after(self, position: TablePosition) -> Append:
        """The rows above ``position``: what a replay still has to write."""
        new = (self.commits > position.commit) | (
            (self.commits == position.commit) & (self.commands > position.command)
        )
        if new.all():
            return self
        return replace(
            self, rows=self.rows.filter(pa.array(new)), commits=self.commits[new], commands=self.commands[new]
        )

    @property
    def last(self) -> TablePosition:
        """The highest position of a row. There must be one."""
        commit = self.commits.max()
        return TablePosition(int(commit), int(self.commands[self.commits == commit].max()))


class Publisher:
    """Writes the lake's tables for the one capture process that owns them.

    A table's commit carries the position it reaches, so a row is written once, however often and at
    whatever batch boundaries the log is read again. ``fsync`` makes files and log entries survive a
    power cut before `append` returns; it costs one flush a data file and one a commit. ``through_spark``
    lets Spark write all data files, not only those that Arrow cannot reach.
    """

    def __init__(
        self, spark: SparkSession, threads: int = 2, fsync: bool = True, through_spark: bool = False
    ) -> None:
        self.spark = spark
        self._tables = DeltaTables(spark)
        self.files = self._tables.files
        # Kept for good: a thread's first call to the JVM opens a connection and a thread there.
        self._pool = ThreadPoolExecutor(threads, "publisher")
        self._fsync = fsync
        self._through_spark = through_spark
        self._positions: dict[str, tuple[int, TablePosition]] = {}  # with the version that has it
        self._lock = Lock()
        self._exclusive: defaultdict[str, RLock] = defaultdict(RLock)

    @contextmanager
    def holding(self, path: str) -> Iterator[None]:
        """While it is open, the table is neither dropped nor converted: for statements of others on it.

        A statement that ends on a table that is gone would leave half a table behind.
        """
        with self._lock:
            exclusive = self._exclusive[path]
        with exclusive:
            yield

    def create(self, path: str, schema: pa.Schema) -> None:
        """An empty Delta table, unless it is there. Raises ChangeTableDiffers when its columns are others."""
        if self._tables.create(path, schema):
            with self._lock:
                self._positions[path] = (0, TablePosition(0, 0))

    def alter(self, path: str, schema: pa.Schema) -> bool:
        """Converts the table's rows to the types of ``schema``; False when it has them already.

        Raises ChangeTableDiffers when its columns are others, ColumnNotConverted when values do not fit.
        """
        with self.holding(path):
            _, position = self._read_position(path)  # the table's own: a lower one would double rows
            version = self._tables.alter(path, schema, position.commit, position.command)
            if version is not None:
                with self._lock:
                    self._positions[path] = (version, position)
        return version is not None

    def drop(self, path: str) -> bool:
        """Removes the table and its files; False when it is not there."""
        with self.holding(path):
            with self._lock:
                self._positions.pop(path, None)
            return self._tables.drop(path)

    def remove_empty(self, folders: Iterable[str]) -> None:
        """Removes those of the folders, in this order, that have nothing in them."""
        for folder in folders:
            self._tables.remove_empty(folder)

    def position(self, path: str) -> TablePosition:
        """Up to where the table has the log; (0, 0) for an empty one. Read once, then known."""
        with self._lock:
            known = self._positions.get(path)
        if known is None:
            known = self._read_position(path)
            with self._lock:
                self._positions[path] = known
        return known[1]

    def forget(self, folder: str) -> None:
        """Of the tables in a folder nothing is known any more: another process may have made them anew."""
        with self._lock:
            for path in [path for path in self._positions if path.startswith(f"{folder}/")]:
                del self._positions[path]

    def append(self, appends: Sequence[Append], between: Callable[[], None] = lambda: None) -> int:
        """Appends to each table what it does not have yet; the number of rows written.

        Tables go in parallel, a commit each; ``between`` is called between two of them. When one fails,
        the others still finish and then its error is raised: appending the same again completes it.
        """
        if len({append.path for append in appends}) < len(appends):
            raise ValueError("two appends to one table at once")
        if len(appends) == 1:
            return self._append(appends[0])
        written = 0
        futures = [self._pool.submit(self._append, append) for append in appends]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                written += future.result()
                if done < len(futures):
                    between()
        finally:
            wait(futures)
        return written

    def warm_up(self) -> None:
        """Appends to a table that goes at once: a JVM's first append takes as long as dozens later on."""
        with tempfile.TemporaryDirectory(prefix="highwater-") as folder:
            path = f"{folder}/table"
            self.create(path, pa.schema([("position", pa.int64())]))
            for commit in (1, 2):
                rows = pa.table({"position": [commit]})
                self.append([Append(path, rows, np.array([commit], np.uint64), np.array([1], np.int32))])
            self.drop(path)

    def maintain(self, path: str) -> None:
        """Writes a checkpoint of the table's log when it is due, so that readers replay only what came since.

        Cheap when it is not due; otherwise a second or more: call it off the way of a scan.
        """
        self._tables.checkpoint(path, COMMITS_A_CHECKPOINT)

    def _append(self, append: Append) -> int:
        transaction = self._tables.begin(append.path, self._through_spark)
        with self._lock:
            # Until the commit has answered nobody knows whether it is there.
            version, position = self._positions.pop(append.path, (-1, TablePosition(0, 0)))
        while version != transaction.read_version:
            # The first append here, or somebody else has committed: maybe an agent that is not dead yet.
            version, position = self._read_position(append.path)
            transaction = self._tables.begin(append.path, self._through_spark)
        new = append.after(position)
        if len(new.commits):
            position = new.last
            transaction.add(new.rows, self._fsync)
            version = transaction.commit(position.commit, position.command, self._fsync)
        with self._lock:
            self._positions[append.path] = (version, position)
        return len(new.commits)

    def _read_position(self, path: str) -> tuple[int, TablePosition]:
        version, commit, command = self._tables.position(path)
        return version, TablePosition(commit, command)
