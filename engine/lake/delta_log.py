"""Delta tables by path: made, altered and appended to through the Delta of the Spark session's own JVM.

Commits of whole files to a local table need no transaction there (`engine.lake.file_commits`).
"""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType, TimestampNTZType

from engine.lake.conversions import check, converted, in_files
from engine.lake.delta_jvm import Jvm
from engine.lake.failures import java_class
from engine.lake.file_commits import COMMAND_APP_ID, COMMIT_APP_ID, PositionCommit
from engine.lake.file_tables import FileTables
from engine.lake.log_entries import actions_of, entry_file
from engine.lake.parquet_files import MOST_ROWS, STATISTICS_COLUMNS, flush, local_folder, write_files
from engine.lake.table_columns import check_columns, physical_columns, shape
from engine.lake.table_name import readable_name

_ENTRIES_TO_TRY = 20

_ISOLATION, _APPENDS_PASS = "delta.isolationLevel", "WriteSerializable"
"""Cleanup deletes rows while capture appends others: by default either would fail on the other's commit.

What is appended is above every watermark, so the order of the two does not matter. Delta knows the
level, though its SQL does not let it be set.
"""

_KEPT_PROPERTIES = {
    _ISOLATION: _APPENDS_PASS,
    # An entry for each commit: by default Delta keeps those of a month, at a scan a second two million.
    "delta.logRetentionDuration": "interval 2 days",
}
"""What a table of an earlier version is given when it is opened."""

_NEEDS_MAPPING = frozenset(" ,;{}()\n\t=")
"""Characters that a column name may have only in a table with column mapping."""


class DeltaTables:
    """Creates, drops and opens Delta tables by path. Thread-safe.

    files: those of them that are local.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm = Jvm(spark)
        self.files = FileTables(self._put_entry)

    def create(self, path: str, schema: pa.Schema) -> bool:
        """An empty table of ``schema``, all columns nullable; False when it is there already.

        Raises ChangeTableDiffers when it is there with other columns.
        """
        wanted = from_arrow_schema(schema)
        head = self.files.head(path)
        if head is None:
            log = self._log(path)
            newest = self._newest(path, log)
            if newest.version() < 0:
                self._create(path, log, wanted)
                return True
            found = StructType.fromJson(json.loads(newest.metadata().schemaString()))
            has = newest.metadata().configuration().contains
        else:
            found, has = head.schema, head.configuration.__contains__
        check_columns(path, found, wanted)
        if not all(map(has, _KEPT_PROPERTIES)):
            self._complete(self._log(path))
        return False

    def alter(self, path: str, schema: pa.Schema, commit: int, command: int) -> int | None:
        """Converts the table's rows to the types of ``schema``, in one commit that keeps the position.

        Returns the new version; None when the table has these types already. Raises ChangeTableDiffers
        when its columns are others, ColumnNotConverted when values do not fit; then nothing has changed.
        """
        wanted = from_arrow_schema(schema)
        transaction = self._begin_in_jvm(path)
        found = transaction.schema
        if found.names != wanted.names:
            check_columns(path, found, wanted)
        if shape(found) == shape(wanted):
            return None
        rows = self._spark.read.format("delta").load(path)
        check(rows, wanted)
        transaction.rewrite(rows, wanted)
        return transaction.commit(commit, command, fsync=True)

    def drop(self, path: str) -> bool:
        """Renames the folder away, so that no half a table stays behind a crash, then deletes it.

        False when there is none.
        """
        hadoop_path = self._jvm.path(path)
        files = hadoop_path.getFileSystem(self._jvm.hadoop_configuration)
        self._jvm.delta_log_object.invalidateCache(self._jvm.session, hadoop_path)
        self.files.forget(path)
        if not files.exists(hadoop_path):
            return False
        aside = self._jvm.path(f"{path}.dropped-{uuid.uuid4()}")
        files.rename(hadoop_path, aside)
        files.delete(aside, True)
        return True

    def remove_empty(self, folder: str) -> None:
        """Removes a folder unless something is in it; one that is not there is no error."""
        place = self._jvm.path(folder)
        files = place.getFileSystem(self._jvm.hadoop_configuration)
        if files.exists(place) and not files.listStatus(place):
            files.delete(place, False)

    def position(self, path: str) -> tuple[int, int, int]:
        """The table's newest version, and the versions of our two SetTransactions there; 0 for none.

        Every commit of ours has both, so the newest log entries answer it; the state of the whole table is
        asked only when many commits of others came after ours.
        """
        head, folder = self.files.head(path), local_folder(path)
        if head is None or folder is None:
            return self._position_in_jvm(path)
        for entry in range(head.version, max(head.version - _ENTRIES_TO_TRY, -1), -1):
            try:
                actions = actions_of(folder, entry)
            except FileNotFoundError:
                break
            versions = {each["txn"]["appId"]: each["txn"]["version"] for each in actions if "txn" in each}
            if COMMIT_APP_ID in versions:
                return head.version, versions[COMMIT_APP_ID], versions[COMMAND_APP_ID]
            if entry == 0:
                return head.version, 0, 0
        with readable_name(path) as name:
            table = DeltaTable(name, head.version)
            commit, command = (
                table.transaction_version(app_id) for app_id in (COMMIT_APP_ID, COMMAND_APP_ID)
            )
        return head.version, commit or 0, command or 0

    def _position_in_jvm(self, path: str) -> tuple[int, int, int]:
        newest = self._newest(path, self._log(path))
        state = newest.transactions()
        commit, command = (state.get(app_id) for app_id in (COMMIT_APP_ID, COMMAND_APP_ID))
        return (
            newest.version(),
            commit.get() if commit.isDefined() else 0,
            command.get() if command.isDefined() else 0,
        )

    def begin(self, path: str, through_spark: bool = False) -> PositionCommit | DeltaTransaction:
        """An append of changes on the newest version.

        It fails when another one commits a position meanwhile: a writer that should be gone, and is not.
        through_spark: Spark writes the files, not only where Arrow cannot reach the table.
        """
        by_files = None if through_spark else self.files.begin(path)
        return by_files or self._begin_in_jvm(path, through_spark)

    def _begin_in_jvm(self, path: str, through_spark: bool = False) -> DeltaTransaction:
        log = self._log(path)
        # Elsewhere this process alone commits: what it knows is the newest, and to look for it takes a while.
        is_local = local_folder(path) is not None
        snapshot = self._newest(path, log) if is_local else log.unsafeVolatileSnapshot()
        transaction = log.startTransaction(self._jvm.none, self._jvm.some(snapshot))
        transaction.readTxn().addOne(COMMIT_APP_ID)
        return DeltaTransaction(self._spark, self._jvm, path, transaction, through_spark)

    def _put_entry(self, path: str, version: int, text: str, fsync: bool) -> bool:
        """Makes a log entry as Delta's own commits do, by the same object: for one process at a time."""
        log = self._log(path)
        # With its scheme: by that the log chooses the store, whose lock all commits of this process share.
        entry = self._jvm.path_in(log.logPath(), f"{version:020d}.json")
        try:
            log.store().write(entry, self._jvm.single(text), False, self._jvm.hadoop_configuration)
        except (Py4JJavaError, PySparkException) as error:
            if java_class(error) != "FileAlreadyExistsException":
                raise
            return False
        if fsync and (folder := local_folder(path)):
            _flush_log_entry(folder, version)
        return True

    def checkpoint(self, path: str, every: int) -> None:
        """Writes a checkpoint at the newest version, when ``every`` have come since the last."""
        log = self._log(path)
        newest = self._newest(path, log)
        if newest.version() - max(newest.checkpointProvider().version(), 0) >= every:
            written = log.writeCheckpointFiles(newest, self._jvm.none)
            self._point_to(log, path, written)
            log.doLogCleanup(newest, self._jvm.none)
            log.update(False, self._jvm.none, self._jvm.none)  # from here on the log begins at the checkpoint

    def _point_to(self, log: Any, path: str, checkpoint: Any) -> None:
        """Tells readers of a checkpoint that has been written.

        Delta empties the file that does before it writes it anew: a reader that has opened it meanwhile
        fails, and one that was killed in between would leave it empty. Here it takes the other's place.
        """
        if (folder := local_folder(path)) is None:
            log.writeLastCheckpointFile(log, checkpoint, True)
            return
        text = self._jvm.last_checkpoint_object.serializeToJson(checkpoint, True, False)
        new = folder / "_delta_log" / "._last_checkpoint.new"
        new.write_text(text, encoding="utf-8")
        flush(new)
        new.replace(folder / "_delta_log" / "_last_checkpoint")

    def _newest(self, path: str, log: Any) -> Any:
        """The newest snapshot, which is the one that whoever asks Delta goes on from.

        To look for it Delta lists the log's folder: a quarter of a second for 10,000 entries. Not where the
        one that this process knows is still there, the same as ever, and has none after it.
        """
        folder, known = local_folder(path), log.unsafeVolatileSnapshot()
        if folder is not None and (version := known.version()) >= 0:
            committed = known.logSegment().lastCommitFileModificationTimestamp()
            if _modified(entry_file(folder, version)) == committed and not (
                entry_file(folder, version + 1).exists()
            ):
                return known
        return log.update(False, self._jvm.none, self._jvm.none)

    def _log(self, path: str) -> Any:
        self._jvm.enter()
        return self._jvm.delta_log_object.forTable(self._jvm.session, path)

    def _complete(self, log: Any) -> None:
        """Gives a table of an earlier version the properties that new ones have."""
        transaction = log.startTransaction()
        metadata = json.loads(transaction.metadata().json())
        metadata["metaData"]["configuration"].update(_KEPT_PROPERTIES)
        transaction.updateMetadata(self._jvm.action(json.dumps(metadata)), False)
        transaction.commit(self._jvm.as_seq([]), self._jvm.write)

    def _create(self, path: str, log: Any, schema: StructType) -> None:
        """What CREATE TABLE does, without the planning around it, which costs ten times as much."""
        metadata = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema.json(),
            "partitionColumns": [],
            "configuration": _properties(schema),
            "createdTime": time.time_ns() // 1_000_000,
        }
        log.createLogDirectoriesIfNotExists()
        transaction = log.startTransaction()
        transaction.updateMetadataForNewTable(self._jvm.action(json.dumps({"metaData": metadata})))
        operation = self._jvm.create_table(transaction.metadata(), False, False, self._jvm.none)
        transaction.commit(self._jvm.as_seq([]), operation)
        self.files.made(path)


class DeltaTransaction:
    """One commit of Delta's in the making: data files, then the position that they reach.

    read_version: the version of the table that it goes on from; schema: its columns there.
    """

    def __init__(
        self, spark: SparkSession, jvm: Jvm, path: str, transaction: Any, through_spark: bool
    ) -> None:
        self.read_version: int = transaction.readVersion()
        self.schema = StructType.fromJson(json.loads(transaction.metadata().schemaString()))
        self._spark = spark
        self._jvm = jvm
        self._path = path
        self._transaction = transaction
        self._through_spark = through_spark
        self._actions: list[Any] = []

    def add(self, rows: pa.Table, fsync: bool) -> None:
        """Writes rows into files: by Arrow where it reaches the table, else, or if so wished, by Spark.

        Raises ChangeTableDiffers, before anything is written, when they are not of the table's columns.
        """
        check_columns(self._path, self.schema, from_arrow_schema(rows.schema))
        folder = None if self._through_spark else local_folder(self._path)
        if folder:
            files = write_files(folder, rows, physical_columns(self.schema), fsync)
            self._actions += [self._jvm.action(file.action()) for file in files]
        else:
            frame = self._spark.createDataFrame(rows)
            frame = frame.coalesce(1) if len(rows) <= MOST_ROWS else frame
            self._actions += self._jvm.as_list(self._transaction.writeFiles(frame._jdf))

    def rewrite(self, rows: DataFrame, wanted: StructType) -> None:
        """Replaces the table's files by ``rows``, all that it has, converted to the types of ``wanted``."""
        metadata = json.loads(self._transaction.metadata().json())
        schema = json.loads(metadata["metaData"]["schemaString"])
        for field, new in zip(schema["fields"], wanted, strict=True):
            field["type"] = new.dataType.jsonValue()
        metadata["metaData"]["schemaString"] = json.dumps(schema)
        if any(isinstance(field.dataType, TimestampNTZType) for field in wanted):
            metadata["metaData"]["configuration"]["delta.feature.timestampNtz"] = "supported"
        self._jvm.enter()
        removed = [file.remove() for file in self._jvm.as_list(self._transaction.filterFiles())]
        self._transaction.updateMetadata(self._jvm.action(json.dumps(metadata)), False)
        if removed:
            files = in_files(converted(rows, wanted), rows.count())
            self._actions += self._jvm.as_list(self._transaction.writeFiles(files._jdf))
        self._actions += removed

    def commit(self, commit: int, command: int, fsync: bool) -> int:
        """Makes the files visible together with the position (commit, command); the new version."""
        for app_id, reached in ((COMMIT_APP_ID, commit), (COMMAND_APP_ID, command)):
            self._actions.append(self._jvm.action(json.dumps({"txn": {"appId": app_id, "version": reached}})))
        self._jvm.enter()
        version: int = self._transaction.commit(self._jvm.as_seq(self._actions), self._jvm.write)
        if fsync and (folder := local_folder(self._path)):
            _flush_log_entry(folder, version)
        return version


def _properties(schema: StructType) -> dict[str, str]:
    skipping = [f"`{name}`" for name in schema.names if name in STATISTICS_COLUMNS]
    properties = {
        "delta.dataSkippingStatsColumns": ",".join(skipping),
        # Checkpoints are the agent's, off the hot path: one in a commit costs five times the commit.
        "delta.checkpointInterval": "1000000",
        **_KEPT_PROPERTIES,
    }
    if any(_NEEDS_MAPPING & set(name) for name in schema.names):
        properties["delta.columnMapping.mode"] = "name"
    return properties


def _modified(entry: Path) -> int | None:
    """When a log entry was written, in ms since 1970; None where it is gone."""
    try:
        return entry.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None


def _flush_log_entry(folder: Path, version: int) -> None:
    """Hadoop renames the entry in place without a flush; the source may forget the changes only after one."""
    entry = entry_file(folder, version)
    flush(entry)
    flush(entry.parent)
