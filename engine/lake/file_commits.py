"""Commits to a local Delta table that add and remove whole files: the log entry is all there is to them.

Delta's own transaction takes some twenty milliseconds of processor time for each, most of it to derive the
table's next state, which a writer has no use for.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from engine.lake.failures import LakeFailed
from engine.lake.live_files import live_files
from engine.lake.log_entries import Action, LogFolder, alters
from engine.lake.parquet_files import STATISTICS_COLUMNS, local_folder, write_files
from engine.lake.table_columns import check_columns, physical_columns
from engine.lake.table_head import TableHead, add_entry

COMMIT_APP_ID = "highwater.start_lsn"
"""appId of the SetTransaction whose version is the position of the last commit LSN in a table."""
COMMAND_APP_ID = "highwater.command_id"
"""appId of the SetTransaction whose version is the last ``__$command_id`` of that commit."""

Put = Callable[[LogFolder, int, str, bool], bool]
"""Makes the log entry of a version from its lines, as `LogFolder.make` does."""


class Purpose(Enum):
    """What a commit of files is for: what the table's history calls it, and whether streams see it."""

    APPEND = "append"
    COMPACT = "compact"
    DELETE = "delete"


_OPERATIONS = {
    Purpose.APPEND: ("WRITE", {"mode": "Append"}),
    Purpose.COMPACT: ("OPTIMIZE", {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": "false"}),
    Purpose.DELETE: ("DELETE", {"predicate": "[]"}),
}


class PositionCommit:
    """One append of changes in the making: data files, then the position that they reach.

    read_version: the version of the table that it goes on from.
    """

    def __init__(self, path: str, folder: Path, head: TableHead, put: Put) -> None:
        self.read_version = head.version
        self._path = path
        self._folder = folder
        self._head = head
        self._put = put
        self._actions: list[str] = []

    def add(self, rows: pa.Table, fsync: bool) -> None:
        """Writes rows into files.

        Raises ChangeTableDiffers, before anything is written, when they are not of the table's columns.
        """
        check_columns(self._path, self._head.schema, from_arrow_schema(rows.schema))
        files = write_files(self._folder, rows, physical_columns(self._head.schema), fsync)
        self._actions += [file.action() for file in files]

    def commit(self, commit: int, command: int, fsync: bool) -> int:
        """Makes the files visible together with the position (commit, command); the new version.

        Raises LakeFailed when another has committed a position, or altered the table, meanwhile.
        """
        actions = self._actions + [
            json.dumps({"txn": {"appId": app_id, "version": reached}})
            for app_id, reached in ((COMMIT_APP_ID, commit), (COMMAND_APP_ID, command))
        ]
        info = _commit_info(Purpose.APPEND, self._head.version, {"numFiles": len(self._actions)})
        put = _putting(self._put, [info, *actions], fsync)
        version = add_entry(self._folder, self._head, put, _moves_position)
        if version is None:
            raise LakeFailed(f"Another writer has appended to the table at '{self._path}', or altered it.")
        return version


class FileCommit:
    """A commit in the making that adds files, or puts some in the place of others.

    read_version: the version that it goes on from; schema: the columns that its files have, which are the
    table's without those of the partition; written: how many files are new; version: the one that the
    commit has made, None before.
    """

    def __init__(
        self,
        folder: Path,
        head: TableHead,
        put: Put,
        purpose: Purpose,
        partition: Mapping[str, str],
        statistics: Collection[str] = STATISTICS_COLUMNS,
    ) -> None:
        found = StructType([field for field in head.schema if field.name not in partition])
        self.read_version = head.version
        self.schema: pa.Schema = to_arrow_schema(found, timezone="UTC")
        self.written = 0
        self.version: int | None = None
        self._gone: set[str] = set()
        self._found = found
        self._columns = physical_columns(found)
        self._folder = folder
        self._head = head
        self._put = put
        self._purpose = purpose
        self._partition = partition
        self._statistics = statistics
        self._actions: list[str] = []

    def rows(self, file: str) -> pa.Table:
        """The rows of one of the table's files."""
        # Spark's files may have times in twelve bytes, of which Arrow would make nanoseconds.
        with pq.ParquetFile(local_folder(file), coerce_int96_timestamp_unit="us") as parquet:
            # Spark writes the columns of the partition into them too, though nobody reads these.
            rows = parquet.read([column.name for column in self._columns.values()])
            return rows.rename_columns(self.schema.names).cast(self.schema)

    def append(self, rows: pa.Table, fsync: bool) -> None:
        """Writes ``rows`` into new files. Raises ChangeTableDiffers, before, when they have other columns."""
        check_columns(str(self._folder), self._found, from_arrow_schema(rows.schema))
        self.replace([], rows, fsync)

    def replace(self, files: Sequence[str], rows: pa.Table, fsync: bool) -> Sequence[str]:
        """Writes ``rows``, which are those of ``files`` that stay, into new files; without rows into none.

        The new files' paths. Raises LakeFailed where another writer has taken one of ``files`` already.
        """
        gone = [self._removed(local_folder(file) or Path(file)) for file in files]
        live = live_files(str(self._folder), self.read_version).files if files else {}
        if any(removed["path"] not in live for removed in gone):
            raise LakeFailed("Another writer was faster with these files.")
        is_change = self._purpose is not Purpose.COMPACT
        added = write_files(self._folder, rows, self._columns, fsync, self._statistics)
        self.written += len(added)
        self._actions += [file.action(is_change, self._partition) for file in added]
        for removed in gone:
            self._gone.add(removed["path"])
            self._actions.append(json.dumps({"remove": removed}))
        return [str(self._folder / each.name) for each in added]

    def _removed(self, file: Path) -> dict[str, Any]:
        return {
            # As Spark wrote it: a name in other letters would be another file's.
            "path": quote(str(file.relative_to(self._folder)), safe="/="),
            "deletionTimestamp": time.time_ns() // 1_000_000,
            "dataChange": self._purpose is not Purpose.COMPACT,
            "extendedFileMetadata": True,
            "partitionValues": dict(self._partition),
            "size": file.stat().st_size,
        }

    def commit(self, fsync: bool, deleted_rows: int = 0) -> bool:
        """Puts the new files in the place of the old; False where another writer was faster with these.

        deleted_rows: what the table's history is to say of a deletion.
        """
        metrics = {"numAddedFiles": self.written, "numRemovedFiles": len(self._gone)}
        if self._purpose is Purpose.DELETE:
            metrics["numDeletedRows"] = deleted_rows
        info = _commit_info(self._purpose, self._head.version, metrics)
        put = _putting(self._put, [info, *self._actions], fsync)
        self.version = add_entry(self._folder, self._head, put, self._takes_files)
        return self.version is not None

    def _takes_files(self, action: Action) -> bool:
        """Whether somebody else took one of the files that this replaces, or changed the table itself."""
        return alters(action) or action.get("remove", {}).get("path") in self._gone


def _putting(put: Put, actions: Sequence[str], fsync: bool) -> Callable[[LogFolder, int], bool]:
    text = "\n".join(actions)
    return lambda log, version: put(log, version, text, fsync)


def _commit_info(purpose: Purpose, read_version: int, metrics: Mapping[str, int]) -> str:
    """What the table's history says of a commit."""
    operation, parameters = _OPERATIONS[purpose]
    return json.dumps(
        {
            "commitInfo": {
                "timestamp": time.time_ns() // 1_000_000,
                "operation": operation,
                "operationParameters": parameters,
                "readVersion": read_version,
                # Cleanup deletes rows while capture appends others, above every watermark.
                "isolationLevel": "WriteSerializable",
                "isBlindAppend": purpose is Purpose.APPEND,
                "operationMetrics": {name: str(value) for name, value in metrics.items()},
                "engineInfo": "Highwater",
                "txnId": str(uuid.uuid4()),
            }
        }
    )


def _moves_position(action: Action) -> bool:
    """Whether it is of another writer of changes: an append that goes on from before it must fail."""
    return alters(action) or action.get("txn", {}).get("appId") == COMMIT_APP_ID
