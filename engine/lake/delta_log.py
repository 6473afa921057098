"""The Delta transactions of the Spark session's own JVM, over py4j.

The classes are Delta's internal ones: this module is all that knows them.
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
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType, TimestampNTZType

from engine.errors import CdcError
from engine.lake.conversions import check, converted, in_files
from engine.lake.failures import java_class
from engine.lake.log_entries import Action, actions_of, entry_file
from engine.lake.parquet_files import (
    MOST_ROWS,
    STATISTICS_COLUMNS,
    PhysicalColumn,
    flush,
    local_folder,
    write_files,
)

COMMIT_APP_ID = "highwater.start_lsn"
"""appId of the SetTransaction whose version is the position of the last commit LSN in a table."""
COMMAND_APP_ID = "highwater.command_id"
"""appId of the SetTransaction whose version is the last ``__$command_id`` of that commit."""

COMMITS_A_CHECKPOINT = 100
"""Log entries that a reader replays at most, about, when `DeltaTables.checkpoint` is called often enough."""

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

_CONFLICTS = ("Concurrent", "MetadataChanged", "ProtocolChanged")
"""How the names of Delta's exceptions begin for a commit that another one has forestalled."""

_NEEDS_MAPPING = frozenset(" ,;{}()\n\t=")
"""Characters that a column name may have only in a table with column mapping."""


_COUNTS: WeakKeyDictionary[SparkSession, dict[str, tuple[int, Any]]] = WeakKeyDictionary()
"""By path: a version of the table, and Delta's counts of it, from whichever writer of this process."""


class ChangeTableDiffers(CdcError):  # noqa: N818 - named like the errors of engine.errors
    """A table is already there with other columns than the capture instance has."""

    number = 50020


class Purpose(Enum):
    """What a commit of files is for: what the table's history calls it, and whether streams see it."""

    APPEND = "append"
    COMPACT = "compact"
    DELETE = "delete"


class DeltaTables:
    """Creates, drops and opens Delta tables by path. Thread-safe."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm = Jvm(spark)
        self._schemas: dict[str, StructType] = {}
        self._counts = _COUNTS.setdefault(spark, {})

    def create(self, path: str, schema: pa.Schema) -> bool:
        """An empty table of ``schema``, all columns nullable; False when it is there already.

        Raises ChangeTableDiffers when it is there with other columns.
        """
        wanted = from_arrow_schema(schema)
        log = self._log(path)
        newest = self._newest(path, log)
        if newest.version() < 0:
            self._create(log, wanted)
            return True
        found = StructType.fromJson(json.loads(newest.metadata().schemaString()))
        _check_columns(path, found, wanted)
        configuration = newest.metadata().configuration()
        if not all(configuration.contains(name) for name in _KEPT_PROPERTIES):
            self._complete(log)
        return False

    def alter(self, path: str, schema: pa.Schema, commit: int, command: int) -> int | None:
        """Converts the table's rows to the types of ``schema``, in one commit that keeps the position.

        Returns the new version; None when the table has these types already. Raises ChangeTableDiffers
        when its columns are others, ColumnNotConverted when values do not fit; then nothing has changed.
        """
        wanted = from_arrow_schema(schema)
        self._newest(path, self._log(path))
        transaction = self.begin(path)
        found = self._schemas[path]
        if found.names != wanted.names:
            _check_columns(path, found, wanted)
        if _shape(found) == _shape(wanted):
            return None
        rows = self._spark.read.format("delta").load(path)
        check(rows, wanted)
        transaction.rewrite(rows, wanted)
        self._schemas.pop(path, None)
        return transaction.commit(commit, command, fsync=True)

    def drop(self, path: str) -> bool:
        """Renames the folder away, so that no half a table stays behind a crash, then deletes it.

        False when there is none.
        """
        hadoop_path = self._jvm.path(path)
        files = hadoop_path.getFileSystem(self._jvm.hadoop_configuration)
        self._jvm.delta_log_object.invalidateCache(self._jvm.session, hadoop_path)
        self._schemas.pop(path, None)
        self._counts.pop(path, None)
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

        Every commit of ours has both, so the newest log entries answer it; the state of the whole table,
        which costs three Spark jobs, is asked only when many commits of others came after ours.
        """
        log = self._log(path)
        newest = self._newest(path, log)
        version = newest.version()
        for entry in range(version, max(version - _ENTRIES_TO_TRY, -1), -1):
            versions = self._transactions_in(log, f"{path}/_delta_log/{entry:020d}.json")
            if COMMIT_APP_ID in versions:
                return version, versions[COMMIT_APP_ID], versions[COMMAND_APP_ID]
            if entry == 0:
                return version, 0, 0
        state = newest.transactions()
        commit, command = (state.get(app_id) for app_id in (COMMIT_APP_ID, COMMAND_APP_ID))
        return (
            version,
            commit.get() if commit.isDefined() else 0,
            command.get() if command.isDefined() else 0,
        )

    def begin(self, path: str) -> DeltaTransaction:
        """A transaction on the newest version that this process knows of.

        It fails when another one commits a position meanwhile: a writer that should be gone, and is not.
        """
        log = self._log(path)
        transaction = self._started(path, log, log.unsafeVolatileSnapshot())
        transaction.readTxn().addOne(COMMIT_APP_ID)
        if path not in self._schemas:
            self._schemas[path] = StructType.fromJson(json.loads(transaction.metadata().schemaString()))
        return DeltaTransaction(self, self._spark, self._jvm, path, transaction, self._schemas[path])

    def moved_on(self, path: str, since: int, matters: Callable[[Action], bool]) -> Any | None:
        """A transaction of Delta's on the newest version that this process knows of, in a local table.

        since: the version that the caller goes on from. None where that is the newest, or where one of the
        actions that came after it ``matters``. A commit whose version another one has taken first finds its
        place, but Delta counts the table's files anew for it and for the one after it, by Spark jobs, while
        every other commit of the table waits.
        """
        log = self._log(path)
        newest = log.unsafeVolatileSnapshot()
        folder = local_folder(path)
        assert folder is not None, path
        versions = range(since + 1, newest.version() + 1)
        if not versions or any(
            matters(action) for number in versions for action in actions_of(folder, number)
        ):
            return None
        return self._started(path, log, newest)

    def begin_files(
        self,
        path: str,
        purpose: Purpose,
        partition: Mapping[str, str] | None = None,
        statistics: Collection[str] = STATISTICS_COLUMNS,
    ) -> FileCommit:
        """A transaction on the newest version that adds files, or puts them in the place of others.

        It reads no position, so that appends pass it; it fails where one of its files is gone meanwhile.
        partition: the one that all its files are of, as Delta's log writes it; statistics: columns whose
        bounds the log is to tell, of times and texts.
        """
        log = self._log(path)
        transaction = self._started(path, log, self._newest(path, log))
        return FileCommit(self, self._jvm, path, transaction, purpose, partition or {}, statistics)

    def _started(self, path: str, log: Any, snapshot: Any) -> Any:
        """Delta's transaction on a snapshot."""
        return log.startTransaction(self._jvm.none, self._jvm.some(self._counted(path, log, snapshot)))

    def _counted(self, path: str, log: Any, snapshot: Any) -> Any:
        """A snapshot, or one of the same version, that knows how many files the table has.

        A commit hands that on to the snapshot after it. Whoever looks in between, be it a query, leaves all
        of the process with a snapshot that does not know: the next commit would count by Spark jobs, which
        take seconds, while every other commit of the table waits.
        """
        version, counts = snapshot.version(), snapshot.checksumOpt()
        if counts.isDefined():
            self._counts[path] = version, counts.get()
        elif (derived := self._derived(path, log, snapshot)) is not None:
            self._counts[path] = version, derived
            none, derived_counts = self._jvm.none, self._jvm.some(derived)
            return log.createSnapshot(snapshot.logSegment(), none, none, derived_counts)
        return snapshot

    def _derived(self, path: str, log: Any, snapshot: Any) -> Any | None:
        """The counts of a snapshot, from those that this process knew last and the log entries since."""
        folder, version = local_folder(path), snapshot.version()
        if folder is None or path not in self._counts:
            return None
        known, counts = self._counts[path]
        if not 0 <= version - known <= _ENTRIES_TO_TRY:
            return None
        recorder = log.startTransaction(self._jvm.none, self._jvm.some(snapshot))
        for number in range(known + 1, version + 1):
            try:
                actions = actions_of(folder, number)
            except FileNotFoundError:
                return None  # cleaned up: nothing is known of what it did
            if any(map(_alters, actions)):
                return None
            found = recorder.incrementallyDeriveChecksum(
                self._jvm.session,
                log,
                number,
                self._jvm.as_seq([self._jvm.action(json.dumps(action)) for action in actions]),
                self._jvm.some(counts.metadata()),
                self._jvm.some(counts.protocol()),
                "WRITE",
                self._jvm.none,
                self._jvm.right(counts),
                False,
                False,
            )
            if found.isLeft():
                return None
            counts = found.value()
        return counts

    def checkpoint(self, path: str) -> None:
        """Writes a checkpoint at the newest version, when `COMMITS_A_CHECKPOINT` have come since the last."""
        log = self._log(path)
        newest = self._newest(path, log)
        if newest.version() - max(newest.checkpointProvider().version(), 0) >= COMMITS_A_CHECKPOINT:
            written = log.writeCheckpointFiles(self._counted(path, log, newest), self._jvm.none)
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

    def _transactions_in(self, log: Any, entry: str) -> Mapping[str, int]:
        place, configuration = self._jvm.path(entry), self._jvm.hadoop_configuration
        if not place.getFileSystem(configuration).exists(place):
            return {}
        lines = self._jvm.as_list(log.store().read(place, configuration))
        found = [json.loads(line)["txn"] for line in lines if line.startswith('{"txn"')]
        return {transaction["appId"]: transaction["version"] for transaction in found}

    def _newest(self, path: str, log: Any) -> Any:
        """The newest snapshot, which is the one that `begin` and whoever asks Delta go on from.

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

    def _create(self, log: Any, schema: StructType) -> None:
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


class DeltaTransaction:
    """One commit in the making: data files, then the position that they reach.

    read_version: the version of the table that it goes on from.
    """

    def __init__(
        self,
        tables: DeltaTables,
        spark: SparkSession,
        jvm: Jvm,
        path: str,
        transaction: Any,
        schema: StructType,
    ) -> None:
        self.read_version: int = transaction.readVersion()
        self._tables = tables
        self._spark = spark
        self._jvm = jvm
        self._path = path
        self._transaction = transaction
        self._schema = schema
        self._actions: list[Any] = []
        self._by_spark = False

    def add(self, rows: pa.Table, fsync: bool, through_spark: bool) -> None:
        """Writes rows into files: by Arrow where it reaches the table, else, or if so wished, by Spark.

        Raises ChangeTableDiffers, before anything is written, when they are not of the table's columns.
        """
        _check_columns(self._path, self._schema, from_arrow_schema(rows.schema))
        folder = None if through_spark else local_folder(self._path)
        if folder:
            files = write_files(folder, rows, _physical_columns(self._schema), fsync)
            self._actions += [self._jvm.action(file.action()) for file in files]
        else:
            self._by_spark = True
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
        self._by_spark = True
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
        version: int = self._newest().commit(self._jvm.as_seq(self._actions), self._jvm.write)
        if fsync and (folder := local_folder(self._path)):
            _flush_log_entry(folder, version)
        return version

    def _newest(self) -> Any:
        """Delta's transaction, on the newest version where others have come meanwhile; it minds the same."""
        if self._by_spark or local_folder(self._path) is None:
            return self._transaction
        moved_on = self._tables.moved_on(self._path, self.read_version, _moves_position)
        if moved_on is None:
            return self._transaction
        moved_on.readTxn().addOne(COMMIT_APP_ID)
        return moved_on


class FileCommit:
    """A commit in the making that adds files, or puts some in the place of others; of a local table.

    read_version: the version that it goes on from; schema: the columns that its files have, which are the
    table's without those of the partition; written: how many files are new.
    """

    def __init__(
        self,
        tables: DeltaTables,
        jvm: Jvm,
        path: str,
        transaction: Any,
        purpose: Purpose,
        partition: Mapping[str, str],
        statistics: Collection[str],
    ) -> None:
        found = StructType.fromJson(json.loads(transaction.metadata().schemaString()))
        found = StructType([field for field in found if field.name not in partition])
        folder = local_folder(path)
        assert folder is not None, path
        self.read_version: int = transaction.readVersion()
        self.schema: pa.Schema = to_arrow_schema(found, timezone="UTC")
        self.written = 0
        self._tables = tables
        self._path = path
        self._gone: set[str] = set()
        self._found = found
        self._columns = _physical_columns(found)
        self._jvm = jvm
        self._folder = folder
        self._transaction = transaction
        self._purpose = purpose
        self._partition = partition
        self._statistics = statistics
        self._actions: list[Any] = []

    def rows(self, file: str) -> pa.Table:
        """The rows of one of the table's files."""
        # Spark's files may have times in twelve bytes, of which Arrow would make nanoseconds.
        with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as parquet:
            # Spark writes the columns of the partition into them too, though nobody reads these.
            rows = parquet.read([column.name for column in self._columns.values()])
            return rows.rename_columns(self.schema.names).cast(self.schema)

    def append(self, rows: pa.Table, fsync: bool) -> None:
        """Writes ``rows`` into new files. Raises ChangeTableDiffers, before, when they have other columns."""
        _check_columns(str(self._folder), self._found, from_arrow_schema(rows.schema))
        self.replace([], rows, fsync)

    def replace(self, files: Sequence[str], rows: pa.Table, fsync: bool) -> Sequence[str]:
        """Writes ``rows``, which are those of ``files`` that stay, into new files; without rows into none.

        The new files' paths.
        """
        is_change = self._purpose is not Purpose.COMPACT
        added = write_files(self._folder, rows, self._columns, fsync, self._statistics)
        self.written += len(added)
        self._actions += [self._jvm.action(file.action(is_change, self._partition)) for file in added]
        for file in files:
            removed = self._removed(Path(file))
            self._gone.add(removed["path"])
            self._actions.append(self._jvm.action(json.dumps({"remove": removed})))
        return [str(self._folder / each.name) for each in added]

    def _removed(self, file: Path) -> dict[str, Any]:
        """Without the size Delta would count the table's files anew, by Spark jobs at the next commits."""
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
        self._jvm.enter()
        operation = {
            Purpose.APPEND: self._jvm.write,
            Purpose.COMPACT: self._jvm.optimize,
            Purpose.DELETE: self._jvm.delete,
        }[self._purpose]
        moved_on = self._tables.moved_on(self._path, self.read_version, self._takes_files)
        transaction = moved_on or self._transaction
        if self._purpose is Purpose.DELETE:
            self._jvm.tell(transaction, "numDeletedRows", deleted_rows)
        try:
            version: int = transaction.commit(self._jvm.as_seq(self._actions), operation)
        except (Py4JJavaError, PySparkException) as error:
            if java_class(error).startswith(_CONFLICTS):
                return False
            raise
        if fsync:
            _flush_log_entry(self._folder, version)
        return True

    def _takes_files(self, action: Action) -> bool:
        """Whether somebody else took one of the files that this replaces, or changed the table itself."""
        return _alters(action) or action.get("remove", {}).get("path") in self._gone


class Jvm:
    """The handful of JVM objects that commits need, looked up once: each look-up is a round trip."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        delta = jvm.org.apache.spark.sql.delta
        self.session = spark._jsparkSession
        # The method itself: to look it up at each call takes two round trips more.
        self._set_active_session = jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession
        self.hadoop_configuration = self.session.sessionState().newHadoopConf()
        self.none = getattr(jvm.scala, "None$").__getattr__("MODULE$")
        self._option = getattr(jvm.scala, "Option$").__getattr__("MODULE$")
        self.right = jvm.scala.util.Right
        self.delta_log_object = getattr(delta, "DeltaLog$").__getattr__("MODULE$")
        self.last_checkpoint_object = getattr(delta, "LastCheckpointInfo$").__getattr__("MODULE$")
        self._action_object = getattr(delta.actions, "Action$").__getattr__("MODULE$")
        self._python_utils = jvm.PythonUtils
        self._metrics = jvm.org.apache.spark.sql.execution.metric.SQLMetrics
        self._path = jvm.org.apache.hadoop.fs.Path
        self._converters = jvm.scala.jdk.javaapi.CollectionConverters
        append = jvm.org.apache.spark.sql.SaveMode.Append
        # A checksum file beside each log entry costs a run of chmod and a flush more than it is worth.
        jvm.org.apache.hadoop.fs.FileSystem.getLocal(self.hadoop_configuration).setWriteChecksum(False)
        self.create_table = delta.DeltaOperations.CreateTable
        empty = jvm.PythonUtils.toSeq([])
        self.optimize = delta.DeltaOperations.Optimize(empty, empty, False, self.none, False)
        self.delete = delta.DeltaOperations.Delete(empty)
        self.write = delta.DeltaOperations.Write(append, *[self.none] * 8)

    def enter(self) -> None:
        """Makes the session this thread's: once a table has a checkpoint, Delta asks the thread for it."""
        self._set_active_session(self.session)

    def tell(self, transaction: Any, metric: str, value: int) -> None:
        """Gives the commit of a transaction a metric, which the table's history has."""
        counter = self._metrics.createMetric(self.session.sparkContext(), metric)
        counter.set(value)
        transaction.registerSQLMetrics(self.session, self._python_utils.toScalaMap({metric: counter}))

    def some(self, value: Any) -> Any:
        """A Scala Some."""
        return self._option.apply(value)

    def path(self, text: str) -> Any:
        """A Hadoop path."""
        return self._path(text)

    def action(self, text: str) -> Any:
        """An action of Delta's log from its JSON."""
        return self._action_object.fromJson(text)

    def as_seq(self, values: list[Any]) -> Any:
        """A Scala Seq."""
        return self._python_utils.toSeq(values)

    def as_list(self, values: Any) -> Sequence[Any]:
        """The elements of a Scala Seq."""
        return list(self._converters.asJava(values))


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


def _shape(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema]


def _check_columns(path: str, found: StructType, wanted: StructType) -> None:
    if _shape(found) != _shape(wanted):
        raise ChangeTableDiffers(
            f"The table at '{path}' has other columns than expected: "
            f"{found.simpleString()}, not {wanted.simpleString()}."
        )


def _physical_columns(schema: StructType) -> Mapping[str, PhysicalColumn]:
    """How each column is called in Parquet."""
    columns = {}
    for field in schema:
        facts = field.metadata or {}
        columns[field.name] = PhysicalColumn(
            facts.get("delta.columnMapping.physicalName", field.name), facts.get("delta.columnMapping.id")
        )
    return columns


def _modified(entry: Path) -> int | None:
    """When a log entry was written, in ms since 1970; None where it is gone."""
    try:
        return entry.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None


def _alters(action: Action) -> bool:
    """Whether an action changes what the table is, not what it has."""
    return "metaData" in action or "protocol" in action


def _moves_position(action: Action) -> bool:
    """Whether it is of another writer of changes: a transaction that goes on from before it must fail."""
    return _alters(action) or action.get("txn", {}).get("appId") == COMMIT_APP_ID


def _flush_log_entry(folder: Path, version: int) -> None:
    """Hadoop renames the entry in place without a flush; the source may forget the changes only after one."""
    entry = entry_file(folder, version)
    flush(entry)
    flush(entry.parent)
