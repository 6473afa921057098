"""`Engine`: the one way in, for pages, the command line and programs."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, NoReturn, Self
from uuid import UUID

from engine.collector.schedules import SCHEDULES
from engine.commands.access import least_role
from engine.commands.guard import Actor, Record, guarded
from engine.control import ControlDatabase
from engine.demo import Summary
from engine.errors import CdcError, InvalidObjectName, SourceDenied
from engine.lake.parquet_files import local_folder
from engine.lake.tables import Lake
from engine.lake.tail import TableTail
from engine.model.activity import Action
from engine.model.alert import Alert, AlertHook, AlertThresholds
from engine.model.capture_instance import CaptureInstance
from engine.model.cleanup import CleanupOutcome, CleanupPreview, RetentionOutcome
from engine.model.client import EXPIRES_AFTER, Client, ClientLag
from engine.model.collection import (
    DEFAULT_SET,
    TSQL_COLLECTOR,
    CollectedTable,
    CollectionRun,
    CollectionSet,
    CollectorSchedule,
    HistoryBreak,
    HistoryPoint,
)
from engine.model.column_description import ColumnDescription
from engine.model.compaction import CompactionRun
from engine.model.dashboard import DashboardSettings
from engine.model.ddl_history import DdlHistoryRow, SchemaChange
from engine.model.job import AnyJob, JobRun, JobType
from engine.model.lsn import Lsn
from engine.model.mask import is_bit_set
from engine.model.scan_session import ScanError, ScanPauses, ScanSession
from engine.model.source_database import SourceDatabase
from engine.model.table_size import TableSize
from engine.model.user import NOBODY, Membership, Role, User
from engine.model.watermark import Watermarks
from engine.model.workload_mix import Mix
from engine.model.wrapper import WrapperFunction
from engine.monitoring.status import EngineStatus, ProcessStatus, StatusReader, processes_of
from engine.procedures.alerts import Alerts
from engine.procedures.as_of import AsOf
from engine.procedures.caller_rule import CallerRule
from engine.procedures.cleanup import THRESHOLD, Cleanup
from engine.procedures.clients import Clients
from engine.procedures.collector import Collector
from engine.procedures.compaction import Compactions
from engine.procedures.databases import Databases, Secrets
from engine.procedures.demo import Demo
from engine.procedures.jobs import Jobs
from engine.procedures.metadata import Metadata
from engine.procedures.scan import Scans
from engine.procedures.table_rules import EnableRequest
from engine.procedures.tables import Tables
from engine.procedures.users import Users
from engine.procedures.wrapper_rules import wrapper_shape
from engine.query import lsn_arithmetic
from engine.runtime.embedded_postgres import control_dsn
from engine.runtime.home import Home
from engine.runtime.owner import owner
from engine.settings import Settings
from engine.sources.base import Privileges, SlotState, SourceProblem, SourceTable
from engine.sources.registry import Sources
from engine.sources.sql_session import SqlSession
from engine.spark_client import SparkClient

if TYPE_CHECKING:
    from pyarrow import Schema, Table
    from pyspark.sql import DataFrame, SparkSession

    from engine.query.change_files import ChangeFiles
    from engine.query.row_stream import RowStream
    from engine.query.table_as_of import TableAsOf
    from engine.tsql.script_session import ScriptSession
    from engine.tsql.sink import Sink

SESSIONS_SHOWN = 1000
"""Scan sessions that `Engine.scan_sessions` returns when no limit is given."""
RUNS_SHOWN = 1000
"""Runs of jobs that `Engine.job_history` returns when no limit is given."""
ALERTS_SHOWN = 1000
"""Alerts that `Engine.alerts` returns when no limit is given."""
COMPACTION_SECONDS = 3600.0
"""How long `Engine.compact` waits for the agent unless it is told otherwise."""
ACTIONS_SHOWN = 1000
"""Actions that `Engine.activity` returns when no limit is given."""
AS_OF_SECONDS = 600.0
"""How long `Engine.table_as_of` waits for the source and for capture unless it is told otherwise."""
LOOKS_REST = 10.0
"""Seconds that `Engine.status` keeps its connections to sources for the next call."""
HISTORY_SHOWN = 100_000
"""Scan sessions that `Engine.session_history` returns at most, the newest."""


_IMPORTING = threading.Lock()
"""pyspark's modules import each other: threads that begin to at the same time lock each other out."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _goes_on(seconds: float) -> bool:
    sleep(seconds)
    return False


def _no_processes() -> tuple[ProcessStatus, ...]:
    return ()


@guarded
class Engine:
    """Change data capture of the databases of one home. Threads may share one.

    Methods have the original's names without their prefix (sp_cdc_enable_table: `enable_table`) and
    raise its errors (`engine.errors`). Wherever a database is named, UnknownDatabase is possible;
    wherever it must be enabled, DatabaseNotEnabled. Queries need the agent, which owns Spark;
    everything else works without.

    ``principal`` is a role of the source on whose behalf a call is made; None is the owner. To read it needs
    SELECT on all captured columns and membership in the gating role (`engine.procedures.read_rule`). To call
    what changes capture it must own the database (CallerNotOwner, 22904), to enable or disable a database be
    a superuser (CallerNotSysadmin, 22902; `engine.procedures.caller_rule`).

    An engine that was opened acts as the home's owner, who may all; `acting_as` gives one that acts as
    somebody else. Then each call may also raise LoginFailed (18456) and ExecuteDenied (229), by the table
    `engine.commands.access`. What changes something is written down, whoever it is (`activity`).
    """

    def __init__(
        self,
        control: ControlDatabase,
        sources: Sources,
        lake: Lake,
        spark: Callable[[], SparkSession],
        secrets: Secrets,
        processes: Callable[[], tuple[ProcessStatus, ...]] = _no_processes,
        clock: Callable[[], datetime] = _utc_now,
        on_close: Callable[[], None] = lambda: None,
        owner: Callable[[], str] = owner,
    ) -> None:
        """``spark`` gives the session when a query needs it; ``processes`` those of the home.

        ``owner``: who acts here, by name.
        """
        self._control = control
        self._actor = Actor(control, User(owner(), Role.ADMIN), is_owner=True)
        self._sources = sources
        self._lake = lake
        self._spark = spark
        self._tail = TableTail()
        self._on_close = on_close
        self._databases = Databases(control, sources, secrets)
        self._callers = CallerRule(self._databases)
        self._tables = Tables(control, self._databases, clock)
        self._metadata = Metadata(control, self._databases)
        self._jobs = Jobs(control, self._databases)
        self._as_of = AsOf(control, self._databases, self._jobs, lake)
        self._alerts = Alerts(control)
        self._scans = Scans(control, self._databases)
        self._cleanup = Cleanup(control, self._databases, lake, spark, clock)
        self._collector = Collector(control, lake, spark, clock)
        self._compactions = Compactions(control, self._databases)
        self._clients = Clients(control, self._databases, lake, clock)
        self._users = Users(control)
        self._status = StatusReader(control, sources, processes, clock, lake, LOOKS_REST)
        self._demo = Demo(self._databases)

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """A client of a home. Nothing is connected before it is needed.

        The home's control database must have been migrated, which the agent does.
        """
        home = Home(settings.home)
        spark = SparkClient(home)
        return cls(
            control=ControlDatabase.open(control_dsn(settings)),
            sources=Sources(home.secret),
            lake=Lake(settings.lake),
            spark=spark,
            secrets=home,
            processes=lambda: processes_of(home),
            on_close=spark.close,
        )

    @staticmethod
    def prepare_queries() -> None:
        """Loads what queries need, for a program that would rather not wait at its first question."""
        modules = ("pyspark.sql.connect.session", "engine.query.all_changes", "engine.query.net_changes")
        with _IMPORTING:
            for module in (*modules, "engine.query.lsn_functions", "engine.lake.spark"):
                import_module(module)

    def close(self) -> None:
        """Gives up connections."""
        self._status.close()
        self._on_close()
        self._control.close()

    def acting_as(self, who: User | str) -> Self:
        """The same engine as somebody else uses it; it is closed with this one.

        A name is looked up in the roles at each call (`set_role`), so that what was taken holds at once; a
        `User` is as it says.
        """
        other = copy(self)
        other._actor = Actor(self._control, who)
        return other

    def user(self) -> User:
        """Who acts, with the role and the principal of now."""
        return self._actor.user

    @staticmethod
    def least_role(method: str, **arguments: object) -> Role:
        """The least role for a call of that method of this class, with these arguments where they matter."""
        return least_role(method, arguments)

    # Databases

    def databases(self) -> list[SourceDatabase]:
        """Every registered database, by name."""
        return self._control.sources.list()

    def database(self, name: str | None = None) -> SourceDatabase:
        """One database; without a name, the only one there is. Raises UnknownDatabase, which lists them."""
        return self._databases.get(name)

    def connect(self, name: str, dsn: str) -> list[SourceProblem]:
        """Registers a PostgreSQL database as a source; returns what could be better there.

        Raises NameInvalid, SourceUnreachable, SourceUnfit, DatabaseExists; then nothing has changed.
        """
        return self._databases.connect(name, dsn)

    def disconnect(self, database: str, force: bool = False) -> list[SourceProblem]:
        """Forgets a source, the opposite of `connect`; returns what may be left there, with its removal.

        One that is enabled is to be disabled first. With ``force`` that is tried, and done without where
        the source can't be reached or refuses: instances, jobs, watermarks, sessions and change tables go
        all the same. Raises DatabaseStillEnabled; then nothing has changed.
        """
        return self._databases.disconnect(database, force)

    def dsn(self, database: str) -> str:
        """The libpq URI of a source, with its password."""
        return self._databases.dsn(database)

    def enable_db(self, database: str, principal: str | None = None) -> None:
        """sys.sp_cdc_enable_db.

        Raises DatabaseAlreadyEnabled (severity 10), SourceUnfit, SystemDatabase, CdcSchemaExists.
        """
        self._callers.check_sysadmin(database, principal)
        self._databases.enable(database)

    def disable_db(self, database: str, principal: str | None = None, *, force: bool = False) -> None:
        """sys.sp_cdc_disable_db: instances, change tables and jobs go.

        A database that this home has not enabled is cleaned of what came along with a copy, and with
        ``force`` of what another home enabled. Raises DatabaseNotEnabled, SameDatabase, EnabledElsewhere.
        """
        self._callers.check_sysadmin(database, principal)
        self._databases.disable(database, force)

    # Tables

    def source_tables(self, database: str) -> list[SourceTable]:
        """Every table of the source that could be tracked, by schema and name."""
        return self._tables.of_source(database)

    def enable_table(
        self,
        database: str,
        source_schema: str,
        source_name: str,
        *,
        role_name: str | None,
        capture_instance: str | None = None,
        supports_net_changes: bool | None = None,
        index_name: str | None = None,
        captured_column_list: str | None = None,
        filegroup_name: str | None = None,
        allow_partition_switch: bool = True,
        on_message: Callable[[CdcError], None] | None = None,
        principal: str | None = None,
    ) -> CaptureInstance:
        """sys.sp_cdc_enable_table; the first tracked table adds both jobs and starts capture.

        Returns the instance; its start_lsn is None until the capture job meets it in the log. Columns are
        captured in the order of the source table. on_message is told messages of severity 10 (22855, 22856,
        22857); without it they are logged. Raises what reference/errors.md lists under "Enable table".

        With ``allow_partition_switch`` 0 the source refuses ATTACH and DETACH PARTITION of a partitioned
        table (22842, 22843), and DROP of a partition too: its rows would go uncaptured.
        """
        self._callers.check_owner(database, principal)
        request = EnableRequest(
            source_schema=source_schema,
            source_name=source_name,
            role_name=role_name,
            capture_instance=capture_instance,
            supports_net_changes=supports_net_changes,
            index_name=index_name,
            captured_column_list=captured_column_list,
            filegroup_name=filegroup_name,
            allow_partition_switch=allow_partition_switch,
        )
        return self._tables.enable(database, request, on_message)

    def disable_table(
        self,
        database: str,
        source_schema: str,
        source_name: str,
        capture_instance: str | None,
        principal: str | None = None,
    ) -> None:
        """sys.sp_cdc_disable_table for one instance or ``'all'``; the last tracked table drops the jobs.

        The instance is gone at once from metadata and query functions; the agent removes the change
        table. Raises TableMissing, TableNotTracked, InstanceNotOfTable, TableNotUnmarked.
        """
        self._callers.check_owner(database, principal)
        self._tables.disable(database, source_schema, source_name, capture_instance)

    def help_change_data_capture(
        self,
        database: str,
        source_schema: str | None = None,
        source_name: str | None = None,
        principal: str | None = None,
    ) -> list[CaptureInstance]:
        """sys.sp_cdc_help_change_data_capture: the instances that the principal may read.

        Raises SchemaWithoutName, TableMissing, TableNotTracked.
        """
        instances = self._tables.help(database, source_schema, source_name)
        return self._metadata.readable(database, instances, principal)

    def get_captured_columns(
        self, database: str, capture_instance: str, principal: str | None = None
    ) -> list[ColumnDescription]:
        """sys.sp_cdc_get_captured_columns, by ordinal.

        Raises ParameterEmpty, ObjectDenied (22981) for an instance that is unknown or not to be read.
        """
        return self._metadata.captured_columns(database, capture_instance, principal)

    def get_ddl_history(
        self, database: str, capture_instance: str, principal: str | None = None
    ) -> list[DdlHistoryRow]:
        """sys.sp_cdc_get_ddl_history, in log order: DDL that the capture job has read so far.

        Raises ParameterEmpty, ObjectDenied (22981) for an instance that is unknown or not to be read.
        """
        return self._metadata.ddl_history(database, capture_instance, principal)

    def schema_changes(self, database: str, principal: str | None = None) -> Sequence[SchemaChange]:
        """cdc.ddl_history of all instances that the principal may read, in log order, with the source
        table's columns before and after each statement (ours: the original keeps no shapes)."""
        return self._metadata.schema_changes(database, principal)

    def generate_wrapper_function(
        self,
        database: str,
        capture_instance: str | None = None,
        closed_high_end_point: bool = True,
        column_list: str | None = None,
        update_flag_list: str | None = None,
        principal: str | None = None,
    ) -> list[WrapperFunction]:
        """sys.sp_cdc_generate_wrapper_function: names and T-SQL of fn_all_changes_… and fn_net_changes_….

        Without an instance, of all that the principal may read. The functions themselves are
        `all_changes_by_time` and `net_changes_by_time`. Raises WrapperInstanceMissing,
        WrapperListsWithoutInstance, WrapperColumnNotCaptured, WrapperFlagNotCaptured, NotABit.
        """
        return self._metadata.wrapper_functions(
            database, capture_instance, closed_high_end_point, column_list, update_flag_list, principal
        )

    # Positions and changes

    def get_min_lsn(self, database: str, capture_instance: str, principal: str | None = None) -> Lsn:
        """sys.fn_cdc_get_min_lsn: zero for an instance unknown, not yet met in the log, or not to be read."""
        return self._metadata.min_lsn(database, capture_instance, principal)

    def get_max_lsn(self, database: str) -> Lsn | None:
        """sys.fn_cdc_get_max_lsn: the high watermark; None before anything was published."""
        return self._control.watermarks.get(database).high

    def watermarks(self, database: str) -> Watermarks:
        """How far the database is captured and published."""
        return self._control.watermarks.get(database)

    @staticmethod
    def increment_lsn(lsn: Lsn | None) -> Lsn | None:
        """sys.fn_cdc_increment_lsn: the next LSN; None for None. Raises LsnOverflow at the top."""
        return lsn_arithmetic.increment_lsn(lsn)

    @staticmethod
    def decrement_lsn(lsn: Lsn | None) -> Lsn | None:
        """sys.fn_cdc_decrement_lsn: the LSN before; None for None. Raises LsnOverflow at zero."""
        return lsn_arithmetic.decrement_lsn(lsn)

    def map_lsn_to_time(self, database: str, lsn: Lsn | None) -> datetime | None:
        """sys.fn_cdc_map_lsn_to_time: when the transaction with that commit LSN ended, UTC; or None."""
        high = self.get_max_lsn(database)
        if high is None:
            return None
        from engine.query.lsn_functions import LsnTimeMapping  # imports pyspark

        return LsnTimeMapping(self._spark(), self._lake, database, high).map_lsn_to_time(lsn)

    def map_lsns_to_times(
        self, database: str, lsns: Collection[Lsn], rounded: bool = False
    ) -> dict[Lsn, datetime]:
        """sys.fn_cdc_map_lsn_to_time of several, by the lake's files alone; those without a row are missing.

        rounded: one without a row has the time of the last commit up to it. Raises TableNotReadable, and
        what the file system raises where there is no table.
        """
        from engine.query.mapping_files import MappingFiles  # imports Arrow

        mapping = MappingFiles(self._lake, database, self.get_max_lsn(database))
        return mapping.times_upto(lsns) if rounded else mapping.times_of(lsns)

    def map_time_to_lsn(
        self, database: str, relational_operator: str, tracking_time: datetime | None
    ) -> Lsn | None:
        """sys.fn_cdc_map_time_to_lsn; None where no commit stands so. A time without a zone is UTC.

        Raises InvalidTimeOperator.
        """
        high = self.get_max_lsn(database)
        from engine.query.lsn_functions import LsnTimeMapping  # imports pyspark

        mapping = LsnTimeMapping(self._spark(), self._lake, database, high)
        return mapping.map_time_to_lsn(relational_operator, tracking_time)

    def lsn_time_mapping(self, database: str) -> DataFrame:
        """cdc.lsn_time_mapping as far as it is published."""
        from engine.query.lsn_functions import published_mapping  # imports pyspark

        return published_mapping(self._spark(), self._lake, database, self.get_max_lsn(database))

    def get_all_changes(
        self,
        database: str,
        capture_instance: str,
        from_lsn: Lsn | None,
        to_lsn: Lsn | None,
        row_filter_option: str = "all",
        principal: str | None = None,
    ) -> DataFrame:
        """cdc.fn_cdc_get_all_changes_<capture_instance>: every change, both ends included, in order.

        Raises InvalidObjectName for an unknown instance, SelectDenied, RangeOutsideValidity.
        """
        instance, high, version = self._queried(database, capture_instance, "all", principal)
        from engine.query.all_changes import all_changes  # imports pyspark

        return all_changes(
            self._spark(), self._lake, instance, from_lsn, to_lsn, high, row_filter_option, version
        )

    def newest_changes(
        self,
        database: str,
        count: int,
        capture_instance: str | None = None,
        since: Lsn = Lsn.ZERO,
        upto: Lsn = Lsn.MAX,
        principal: str | None = None,
    ) -> dict[str, Table] | None:
        """The newest rows of one capture instance, or of each that may be read, without Spark.

        From ``since`` to ``upto``, as far as published; by name of the instance; at most ``count`` rows
        each, in log order, with commit times, columns as `engine.query.newest_changes`. None where files
        can't tell (the lake is not in a local folder, its log was cut, nothing is published): ask
        `get_all_changes` then.
        """
        high = self.get_max_lsn(database)
        if high is None:
            return None
        from engine.query.newest_changes import newest_changes

        instances = [
            instance
            for instance in self._control.instances.list(database)
            if instance.start_lsn is not None and capture_instance in (None, instance.capture_instance)
        ]
        instances = self._metadata.readable(database, instances, principal)
        upto = min(high, upto)
        return newest_changes(self._tail, self._lake, database, instances, upto, count, since)

    def row_history(
        self,
        database: str,
        capture_instance: str,
        key: Mapping[str, object],
        count: int,
        principal: str | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> Table:
        """The newest ``count`` changes of one row in the validity interval, without Spark, newest first.

        key: its values by column, those that identify rows as a rule. Columns: those of `get_all_changes`
        with ``all update old``, then ``__$command_id``. check: called while files are read; what it raises
        ends the search. Raises as `change_files`.
        """
        low, high = self.get_min_lsn(database, capture_instance), self.get_max_lsn(database)
        files = self.change_files(
            database, capture_instance, low, high, "all update old", principal=principal
        )
        from engine.query.row_history import row_history  # imports Arrow

        return row_history(files, key, count, check)

    def table_as_of(
        self,
        database: str,
        capture_instance: str,
        lsn: Lsn | None,
        principal: str | None = None,
        timeout: float = AS_OF_SECONDS,
        check: Callable[[], None] = lambda: None,
    ) -> TableAsOf:
        """The captured columns of the source table as they were when ``lsn`` was the newest commit.

        Reads the whole table at the source, in one snapshot, waits until what that has is published, and
        takes back by change data what was committed after ``lsn`` (`engine.query.table_as_of`). Needs the
        agent and a capture job that runs. To be closed. timeout: seconds for waiting; check: called
        meanwhile and while rows are read; what it raises ends it, and nothing stays behind.

        What comes out: values as change data have them (docs/types.md), computed columns and those dropped
        before as NULL. A column that is not captured is not in it. Values that DDL alone has changed since,
        as a label of an enum that was renamed, are as they are now; rows of partitions that were dropped
        since are missing. Where DDL since then has dropped or retyped a captured column, or attached or
        detached a partition, the rows can't be told. TRUNCATE can't have happened: it is refused (4711).

        Raises InvalidObjectName for an unknown instance, SelectDenied, RowIdentifierMissing,
        RangeOutsideValidity for an LSN outside the validity interval, RowsNotTold with the reason,
        SourceDenied for a user without a principal who is no admin, SyncTimeout, AgentNotRunning.
        """
        if principal == NOBODY:
            self._deny_source(database)
        instance, high, _ = self._queried(database, capture_instance, "all", principal)
        from engine.query import table_as_of as as_of  # imports pyspark

        asked = as_of.checked_lsn(instance, lsn, high)
        self._as_of.check(instance, asked)
        spark, lake = self._spark(), self._lake
        rows = self._as_of.read(
            instance,
            asked,
            lambda unseen, upto: as_of.unseen_commits(spark, lake, database, unseen, upto),
            lambda batches, folder: as_of.spooled_rows(batches, instance, folder, check),
            principal,
            timeout,
            check,
        )
        try:
            # Cleanup, DDL and what disables the table may have come meanwhile.
            now, high, version = self._queried(database, capture_instance, "all", principal)
            if now.object_id != instance.object_id:
                raise InvalidObjectName(f"cdc.{instance.change_table}")
            as_of.checked_lsn(now, asked, high)
            self._as_of.check(now, asked)
            unseen = as_of.unseen_commits(spark, lake, database, rows.unseen, rows.end)
            frame = as_of.rows_as_of(spark, lake, now, rows.place, asked, rows.end, unseen, version)
        except BaseException:
            as_of.removed(rows.place)
            raise
        return as_of.TableAsOf(asked, frame, rows.row_count, rows.place)

    def get_net_changes(
        self,
        database: str,
        capture_instance: str,
        from_lsn: Lsn | None,
        to_lsn: Lsn | None,
        row_filter_option: str = "all",
        principal: str | None = None,
    ) -> DataFrame:
        """cdc.fn_cdc_get_net_changes_<capture_instance>: one row for each key changed; no order.

        Raises InvalidObjectName for an unknown instance or one without net changes, SelectDenied,
        RangeOutsideValidity.
        """
        instance, high, version = self._queried(database, capture_instance, "net", principal)
        from engine.query.net_changes import net_changes  # imports pyspark

        return net_changes(
            self._spark(), self._lake, instance, from_lsn, to_lsn, high, row_filter_option, version
        )

    def all_changes_by_time(
        self,
        database: str,
        capture_instance: str,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        row_filter_option: str = "all",
        *,
        closed_high_end_point: bool = True,
        column_list: str | None = None,
        update_flag_list: str | None = None,
        principal: str | None = None,
    ) -> DataFrame:
        """fn_all_changes_<capture_instance>, the wrapper: changes committed in (start, end], in order.

        Columns and errors as `engine.query.wrappers.all_changes_by_time`; parameters of the function's
        shape as `generate_wrapper_function`. Raises InvalidObjectName, SelectDenied too.
        """
        instance, high, version = self._queried(database, capture_instance, "all", principal)
        shape = wrapper_shape(instance, closed_high_end_point, column_list, update_flag_list)
        from engine.query.wrappers import all_changes_by_time  # imports pyspark

        return all_changes_by_time(
            self._spark(), self._lake, instance, start_time, end_time, high, row_filter_option, shape, version
        )

    def net_changes_by_time(
        self,
        database: str,
        capture_instance: str,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        row_filter_option: str = "all",
        *,
        closed_high_end_point: bool = True,
        column_list: str | None = None,
        update_flag_list: str | None = None,
        principal: str | None = None,
    ) -> DataFrame:
        """fn_net_changes_<capture_instance>, the wrapper: net changes of (start, end]; no order.

        As `all_changes_by_time`. Columns as `engine.query.wrappers.net_changes_by_time`.
        """
        instance, high, version = self._queried(database, capture_instance, "net", principal)
        shape = wrapper_shape(instance, closed_high_end_point, column_list, update_flag_list)
        from engine.query.wrappers import net_changes_by_time  # imports pyspark

        return net_changes_by_time(
            self._spark(), self._lake, instance, start_time, end_time, high, row_filter_option, shape, version
        )

    # Changes as files, for readers with a Spark session of their own: `engine.spark_source`

    def change_schema(
        self, database: str, capture_instance: str, *, net: bool = False, principal: str | None = None
    ) -> Schema:
        """Columns of what `change_files` finds. Raises InvalidObjectName, SelectDenied."""
        instance, _ = self._metadata.queried(database, capture_instance, "net" if net else "all", principal)
        from engine.query.change_files import answer_schema

        return answer_schema(instance, net)

    def change_files(
        self,
        database: str,
        capture_instance: str,
        from_lsn: Lsn | None,
        to_lsn: Lsn | None,
        row_filter_option: str = "all",
        *,
        net: bool = False,
        principal: str | None = None,
    ) -> ChangeFiles:
        """What `get_all_changes`, or `get_net_changes`, answers, as files of the lake to be read in parts.

        Needs no agent. Raises what those do, and TableNotReadable.
        """
        kind = "net" if net else "all"
        instance, high, version = self._queried(database, capture_instance, kind, principal)
        from engine.query.change_files import change_files

        return change_files(self._lake, instance, net, from_lsn, to_lsn, high, row_filter_option, version)

    def last_commit_upto(self, database: str, time: datetime) -> Lsn | None:
        """`map_time_to_lsn` with 'largest less than or equal', without the agent; ``time`` has its zone."""
        high = self.get_max_lsn(database)
        if high is None:
            return None
        from engine.query.change_files import last_commit_upto

        return last_commit_upto(self._lake, database, time, high)

    # Working with SQL: `engine.tsql`

    def change_table(self, database: str, capture_instance: str, principal: str | None = None) -> DataFrame:
        """cdc.<capture_instance>_CT as far as it is published, columns as in reference/tables.md.

        Raises InvalidObjectName for an unknown instance, SelectDenied.
        """
        instance, high = self._metadata.queried(database, capture_instance, "all", principal)
        from engine.query.all_changes import change_table  # imports pyspark

        return change_table(self._spark(), self._lake, instance, high)

    def change_table_size(self, database: str, capture_instance: str) -> TableSize | None:
        """Rows, data files and bytes of cdc.<capture_instance>_CT, from its Delta log: no row is read.

        What a scan that goes on has appended counts too. None where capture has not made the table yet.
        Ours. Raises InvalidObjectName for an unknown instance, LakeFailed.
        """
        if self._control.instances.get(database, capture_instance) is None:
            raise InvalidObjectName(f"cdc.{capture_instance}_CT")
        from engine.lake.table_sizes import table_size  # imports pyspark

        return table_size(self._lake.change_table(database, capture_instance), self._spark)

    def spark_session(self) -> SparkSession:
        """The agent's Spark, for SQL of one's own over these DataFrames. Raises AgentNotRunning."""
        return self._spark()

    def results_folder(self) -> Path | None:
        """Through which large results of SQL pass; None where the lake is in no local folder."""
        return local_folder(self._lake.results)

    def row_stream(self, frame: DataFrame) -> RowStream:
        """The rows of one of these DataFrames part by part: however many, few of them are in memory."""
        from engine.query.row_stream import row_stream  # imports pyspark

        return row_stream(frame, self.results_folder())

    def sql_session(self, database: str) -> SqlSession:
        """A session with SQL at a source, in the source's own dialect. Nothing is connected yet.

        Its statements have the rights of the user's principal, a viewer's change nothing. Raises SourceDenied
        for a user without one who is no admin.
        """
        user = self._actor.user
        if user.reads_as == NOBODY:
            self._deny_source(database)
        return self._databases.sql_session(database, user.principal, read_only=not user.may(Role.OPERATOR))

    def _deny_source(self, database: str) -> NoReturn:
        user, name = self._actor.user, self._databases.get(database).name
        raise SourceDenied(user.name, name, shlex.quote(user.name), user.role)

    def script_session(self, database: str, sink: Sink, principal: str | None = None) -> ScriptSession:
        """A session with T-SQL (docs/tsql.md): what its statements give goes to ``sink``. To be closed.

        Nothing is connected yet.
        """
        from engine.tsql.script_session import ScriptSession  # T-SQL stands on this module

        return ScriptSession(self, self._databases.get(database).name, sink, principal)

    @contextmanager
    def batch(self, database: str, text: str) -> Iterator[Record]:
        """Writes down a batch of T-SQL while it runs; what fails is said to what this gives."""
        with self._actor.recorded(self._actor.user, database, "batch", text) as record:
            yield record

    def privileges(self, database: str, principal: str) -> Privileges:
        """What a role of the source may do there. Raises SourceUnreachable."""
        instances = self._control.instances.list(database)
        return self._databases.admin(database).privileges(principal, instances)

    # The demo

    def is_demo(self, database: str) -> bool:
        """Whether the demo company is in a database: where trying things out hurts nobody.

        Raises SourceUnreachable.
        """
        return self._demo.is_there(database)

    def run_demo(
        self,
        database: str,
        rate: float = 10.0,
        seconds: float = 60.0,
        seed: int = 1,
        stopped: Callable[[float], bool] = _goes_on,
        mix: Mix | None = None,
    ) -> Summary:
        """The demo's workload: ``rate`` × ``seconds`` transactions, at most ``rate`` a second; what it did.

        The same ``seed`` on a new demo does the same. ``stopped`` waits some seconds and says whether to end;
        it is asked before every transaction. mix: of what it is made; None: of what the company does.
        Raises DemoMissing, WorkloadInvalid, WorkloadMixInvalid, SourceUnreachable.
        """
        return self._demo.run(database, rate, seconds, seed, stopped, mix or Mix())

    def _queried(
        self, database: str, capture_instance: str, kind: str, principal: str | None
    ) -> tuple[CaptureInstance, Lsn | None, int | None]:
        """The instance, how far may be looked, and the version of its change table that is looked at.

        Cleanup moves the low endpoint before it deletes: read after the version, it refuses whatever that
        version may lack, and what is deleted later is still in it. None where the lake is no local folder.
        """
        instance, high = self._metadata.queried(database, capture_instance, kind, principal)
        version = self._tail.version(self._lake.change_table(database, capture_instance))
        return self._metadata.as_now(instance), high, version

    # Update masks; over a column of masks: `engine.query.mask_columns`

    def get_column_ordinal(
        self, database: str, capture_instance: str, column_name: str, principal: str | None = None
    ) -> int | None:
        """sys.fn_cdc_get_column_ordinal: the column's 1-based place among the captured ones, and in masks.

        None for an unknown instance or column, or one the principal may not read: not documented; NULL is
        what a lookup in cdc.captured_columns gives.
        """
        return self._metadata.column_ordinal(database, capture_instance, column_name, principal)

    @staticmethod
    def is_bit_set(position: int, update_mask: bytes | None) -> bool:
        """sys.fn_cdc_is_bit_set: whether that ordinal's bit is set; False for NULL and beyond the mask."""
        return is_bit_set(position, update_mask)

    def has_column_changed(
        self,
        database: str,
        capture_instance: str,
        column_name: str,
        update_mask: bytes | None,
        principal: str | None = None,
    ) -> bool | None:
        """sys.fn_cdc_has_column_changed: `is_bit_set` by the column's name; None where it has no ordinal."""
        return self._metadata.has_column_changed(
            database, capture_instance, column_name, update_mask, principal
        )

    # Scanning and cleaning up

    def scan(
        self,
        database: str,
        maxtrans: int | None = 500,
        maxscans: int | None = 10,
        continuous: bool | int | None = 0,
        pollinginterval: int | None = 0,
        stop: Callable[[], bool] | None = None,
        principal: str | None = None,
    ) -> None:
        """sys.sp_cdc_scan: the agent scans the log now, and the call returns when that scan has ended.

        Once, up to ``maxscans`` cycles of ``maxtrans`` transactions (as the job pages say; the procedure's
        page has "a single scan cycle"); with ``continuous`` until ``stop`` says so, which is asked a few
        times a second, or the caller's process ends, with ``pollinginterval`` seconds between drains. None
        is a parameter's default. For programs that capture by a plan of their own, in place of a capture
        job that is stopped. Raises MaxTransOutOfRange, MaxScansOutOfRange, ContinuousNotABit,
        PollingIntervalOutOfRange, PollingWithoutContinuous, AgentNotRunning; ScanFailed with the number and
        text of what ended the scan: 22903 where the capture job runs or another scans.
        """
        self._callers.check_owner(database, principal)
        self._scans.run(database, maxtrans, maxscans, continuous, pollinginterval, stop)

    def cleanup_change_table(
        self,
        database: str,
        capture_instance: str,
        low_water_mark: Lsn | None,
        threshold: int | None = THRESHOLD,
        principal: str | None = None,
        *,
        force: bool = False,
    ) -> CleanupOutcome:
        """sys.sp_cdc_cleanup_change_table: moves the low endpoint, then deletes the rows below it.

        ``low_water_mark`` is a commit LSN of cdc.lsn_time_mapping; None leaves the low endpoint where it is
        and deletes what is left below. ``threshold``: rows that one statement deletes at most. A low
        watermark beyond what a client has acknowledged is refused: changes would go that somebody relies on
        reading; with ``force`` such clients are dropped, each with a row of sys.dm_cdc_errors. Raises
        ParameterEmpty, ThresholdOutOfRange, ObjectDenied, LowWatermarkNotMapped,
        LowWatermarkOutsideTimeline, LowWatermarkPassesClient; then nothing has changed.
        """
        self._callers.check_owner(database, principal)
        return self._cleanup.change_table(database, capture_instance, low_water_mark, threshold, force)

    def cleanup(self, database: str, principal: str | None = None) -> RetentionOutcome:
        """sys.sp_MScdc_cleanup_job: what the cleanup job does when it runs, now and for the caller.

        Changes older than the job's retention go: it counts back from the last captured commit, not from
        now, and never passes a client (`register_client`): ``held`` of what is returned says whom it waits
        for. Raises JobMissing, LowEndpointNotComputed (22923), CleanupFailed (22924) where rows could not
        be deleted, or the job is just running.
        """
        self._callers.check_owner(database, principal)
        return self._cleanup.by_retention(database)

    def cleanup_preview(
        self,
        database: str,
        retention: int | None = None,
        threshold: int | None = None,
        principal: str | None = None,
    ) -> CleanupPreview:
        """What the cleanup job would do if it ran now, by the rules that it runs by. Ours.

        How each low endpoint would move, which rows would go in how many statements, whom it would wait for
        and which silent clients it would drop. retention (minutes), threshold: in place of the job's own.
        Raises JobMissing, RetentionOutOfRange, ThresholdOutOfRange, LowEndpointNotComputed (22923).
        """
        self._callers.check_owner(database, principal)
        return self._cleanup.preview(database, retention, threshold)

    def cleanup_change_table_preview(
        self,
        database: str,
        capture_instance: str,
        low_water_mark: Lsn | None,
        threshold: int | None = THRESHOLD,
        principal: str | None = None,
        *,
        force: bool = False,
    ) -> CleanupPreview:
        """What `cleanup_change_table` would do; raises what it raises, and changes nothing. Ours."""
        self._callers.check_owner(database, principal)
        return self._cleanup.preview_of_table(database, capture_instance, low_water_mark, threshold, force)

    def compact(
        self, database: str, timeout: float = COMPACTION_SECONDS, principal: str | None = None
    ) -> CompactionRun:
        """The agent makes few files of many small ones, in change tables and cdc.lsn_time_mapping.

        Neighbours in LSN order become one file; no row changes, capture and readers go on. Then files that
        no version of the last ``vacuum_after_hours`` hours (a setting) refers to are deleted. The agent does
        it after each cleanup by itself. timeout: seconds to wait for it. Ours; nothing of the original's.
        Raises AgentNotRunning, SyncTimeout; CompactionFailed for what a table refused.
        """
        self._callers.check_owner(database, principal)
        return self._compactions.run(database, timeout)

    def last_compaction(self, database: str, principal: str | None = None) -> CompactionRun | None:
        """The last compaction of a database, or the one that runs; None where there was none."""
        self._callers.check_owner(database, principal)
        return self._compactions.last(database)

    # Clients: consumers that cleanup waits for. Ours; the original has none.

    def register_client(
        self,
        database: str,
        name: str,
        capture_instance: str,
        expires_after: timedelta | None = EXPIRES_AFTER,
        principal: str | None = None,
    ) -> Client:
        """Cleanup of the instance waits for this client from now on; it begins at the low endpoint.

        A client of several instances is registered with each. ``expires_after``: one of which nothing is
        heard for so long is dropped by the next cleanup, with a row of sys.dm_cdc_errors; None for never. One
        that is registered already keeps its place and gets this limit. Raises ClientNameInvalid,
        ExpiryInvalid, ParameterEmpty, ObjectDenied (22981).
        """
        self._callers.check_owner(database, principal)
        return self._clients.register(database, name, capture_instance, expires_after)

    def acknowledge(
        self, database: str, name: str, capture_instance: str, lsn: Lsn | None, principal: str | None = None
    ) -> Client:
        """The client has every change up to ``lsn``, itself included: cleanup may take what is below it.

        It never goes back; the same LSN again is a sign of life. The changes of ``lsn`` itself stay until a
        later one is acknowledged. Whoever may read the instance may call it. Raises ParameterEmpty,
        ObjectDenied (22981), ClientUnknown, AcknowledgementRefused; then nothing has changed.
        """
        return self._clients.acknowledge(database, name, capture_instance, lsn, principal)

    def drop_client(
        self, database: str, name: str, capture_instance: str, principal: str | None = None
    ) -> None:
        """Cleanup of the instance no longer waits for this client. Raises ClientUnknown."""
        self._callers.check_owner(database, principal)
        self._clients.drop(database, name, capture_instance)

    def clients(
        self, database: str, capture_instance: str | None = None, principal: str | None = None
    ) -> Sequence[Client]:
        """The clients of a database, or of one instance, as they were last heard of."""
        self._callers.check_owner(database, principal)
        return self._clients.list(database, capture_instance)

    def client_lags(
        self, database: str, capture_instance: str | None = None, principal: str | None = None
    ) -> Sequence[ClientLag]:
        """The same with how far each is behind, in log, time and rows, and what becomes of it.

        Read from the lake's files without the agent, so it costs more the further they are behind.
        """
        self._callers.check_owner(database, principal)
        return self._clients.lags(database, capture_instance)

    # Jobs

    def help_jobs(self, database: str, principal: str | None = None) -> list[AnyJob]:
        """sys.sp_cdc_help_jobs, with the agent's state of each: the capture job, then the cleanup job.

        Both are added with the first tracked table and go with the last.
        """
        self._callers.check_owner(database, principal)
        return self._jobs.list(database)

    def job_history(
        self,
        database: str,
        job_type: str | None = None,
        limit: int = RUNS_SHOWN,
        principal: str | None = None,
    ) -> Sequence[JobRun]:
        """What a database's jobs did each time they ran, newest first: msdb's history of a job.

        A capture job runs from its first scan that went well to its end or failure; what it scans is in
        `scan_sessions`. It goes with the job. Raises JobTypeUnsupported.
        """
        self._callers.check_owner(database, principal)
        return self._jobs.history(database, job_type, limit)

    def add_job(
        self,
        database: str,
        job_type: str | None,
        start_job: bool = True,
        maxtrans: int | None = None,
        maxscans: int | None = None,
        continuous: bool | None = None,
        pollinginterval: int | None = None,
        retention: int | None = None,
        threshold: int | None = None,
        schedule: str | None = None,
        principal: str | None = None,
    ) -> None:
        """sys.sp_cdc_add_job, for a job that was dropped or must be there before the first table.

        None: 500 transactions a cycle, 10 cycles, continuous, 5 seconds; for a cleanup job 4320 minutes,
        5000 rows a statement, daily at 02:00. With ``start_job`` it starts as soon as the agent sees it: a
        cleanup job runs once, then by its ``schedule``: cron text, empty for none, its hours in the
        zone that the settings say (UTC by default). A capture job has none unless it is given one: it is
        started then, where it does not run. Raises ParameterEmpty, JobTypeUnsupported, NotABit,
        MaxTransOutOfRange, MaxScansOutOfRange, ContinuousNotABit, PollingIntervalOutOfRange,
        CleanupParametersForCapture, RetentionOutOfRange, ThresholdOutOfRange, ScheduleInvalid,
        CaptureParametersForCleanup; JobNotAdded (22836) where there is one.
        """
        self._callers.check_owner(database, principal)
        self._jobs.add(
            database,
            job_type,
            start_job,
            maxtrans,
            maxscans,
            continuous,
            pollinginterval,
            retention,
            threshold,
            schedule,
        )

    def drop_job(self, database: str, job_type: str | None, principal: str | None = None) -> None:
        """sys.sp_cdc_drop_job: the agent stops the job and forgets its parameters and its history.

        Without a capture job the agent still looks at the log now and then, so that the source need not
        keep it for ever: to keep changes in the log, stop the job instead. The next table enabled adds it
        again; a cleanup job only the first one. Raises ParameterEmpty, JobTypeUnsupported, JobMissing.
        """
        self._callers.check_owner(database, principal)
        self._jobs.drop(database, job_type)

    def start_job(self, database: str, job_type: str = JobType.CAPTURE, principal: str | None = None) -> None:
        """sys.sp_cdc_start_job: returns when the agent says that it runs; a cleanup job runs once.

        Raises JobTypeUnsupported, JobMissing, CaptureJobFailed, CleanupFailed, SyncTimeout; AgentNotRunning
        when there is no agent: then the job starts with it.
        """
        self._callers.check_owner(database, principal)
        self._jobs.start(database, job_type)

    def stop_job(self, database: str, job_type: str = JobType.CAPTURE, principal: str | None = None) -> None:
        """sys.sp_cdc_stop_job: returns when the agent says that it has stopped; the source keeps its log.

        A cleanup job ends after the statement that it is at, and runs again by its schedule. Raises
        JobTypeUnsupported, JobMissing, SyncTimeout.
        """
        self._callers.check_owner(database, principal)
        self._jobs.stop(database, job_type)

    def change_job(
        self,
        database: str,
        job_type: str = JobType.CAPTURE,
        maxtrans: int | None = None,
        maxscans: int | None = None,
        continuous: bool | None = None,
        pollinginterval: int | None = None,
        retention: int | None = None,
        threshold: int | None = None,
        schedule: str | None = None,
        principal: str | None = None,
    ) -> None:
        """sys.sp_cdc_change_job; None leaves a value as it is. Takes effect after stop and start.

        A cleanup job starts anew with each run; a ``schedule``, as `add_job` takes it, counts at once.
        Raises JobTypeUnsupported, JobMissing, MaxTransOutOfRange, MaxScansOutOfRange, ContinuousNotABit,
        PollingIntervalOutOfRange, CleanupParametersForCapture, RetentionOutOfRange, ThresholdOutOfRange,
        ScheduleInvalid, CaptureParametersForCleanup.
        """
        self._callers.check_owner(database, principal)
        self._jobs.change(
            database,
            job_type,
            maxtrans,
            maxscans,
            continuous,
            pollinginterval,
            retention,
            threshold,
            schedule,
        )

    def update_job_step(
        self, database: str, subsystem: str | None, command: str | None, principal: str | None = None
    ) -> None:
        """msdb.dbo.sp_update_jobstep for the capture job: a script in its scan's place, after stop and start.

        subsystem: ``TSQL`` or ``PYTHON``; command: the script's text, None for the scan. The script calls
        sys.sp_cdc_scan, or `scan`, itself; the agent runs it as a process of its own, with the agent's
        rights, so a principal must be sysadmin. One that ends well is not started again but by `start_job`
        or by the schedule, one that fails is tried again. Raises JobMissing, SubsystemUnknown, StepInvalid.
        """
        self._callers.check_sysadmin(database, principal)
        self._jobs.set_step(database, subsystem, command)

    def sync(self, database: str, timeout: float = 60.0) -> None:
        """Returns when everything committed on the source before the call is published.

        timeout: seconds. Raises SyncTimeout with the reason, at once when the job is stopped; ObjectsGone
        where schema, publication or slot of ours were dropped at the source.
        """
        self._jobs.sync(database, timeout)

    # Alerts

    def alert_hook(self) -> AlertHook:
        """Who is told of failures, stalls, lag and slot, and from where on; the same for all databases."""
        return self._alerts.hook()

    def alert_thresholds(self) -> AlertThresholds:
        """From where on the hook is told: for everybody to see, as the hook itself may hold a secret."""
        return self._alerts.hook().thresholds

    def set_alert_hook(self, hook: AlertHook) -> None:
        """Another hook: a command that the agents run, or a webhook that they call, with JSON.

        Each alert is told once when it is raised and once when it is over (`engine.model.alert.Alert`), at
        the latest after three tries within the hook's time. Raises AlertHookInvalid.
        """
        self._alerts.set_hook(hook)

    def test_alert_hook(self) -> str:
        """Tells the hook of a test from this process; how it took it. AlertHookInvalid, AlertNotDelivered."""
        return self._alerts.test()

    def alerts(self, limit: int = ALERTS_SHOWN) -> list[Alert]:
        """The newest alerts of all databases, newest first, with how the hook took them."""
        return self._alerts.list(limit)

    # Monitoring

    def scan_sessions(self, database: str, limit: int = SESSIONS_SHOWN) -> list[ScanSession]:
        """sys.dm_cdc_log_scan_sessions: session 0, then the newest ``limit`` of the agent's present run."""
        total = self._control.sessions.aggregate(database)
        return ([] if total is None else [total]) + self._control.sessions.list(database, limit)

    def session_history(self, database: str, since: datetime) -> list[ScanSession]:
        """Sessions of all runs of the agent that began at ``since`` or later, without session 0, by start.

        Ids count from 1 in each run.
        """
        return self._control.sessions.since(database, since, HISTORY_SHOWN)

    def scan_pauses(self, database: str, since: datetime, longer_than: timedelta) -> ScanPauses:
        """Times that ended after ``since`` in which no scan read the log for ``longer_than``.

        As far as sessions and the job's history are kept, across runs of the agent.
        """
        return self._control.pauses.since(database, since, longer_than)

    def scan_errors(self, database: str) -> list[ScanError]:
        """sys.dm_cdc_errors: errors of the last 32 sessions that had any, oldest first."""
        return self._control.errors.list(database)

    def slot(self, database: str) -> SlotState | None:
        """The log that the source keeps for capture; None where the database is not enabled.

        Raises SourceUnreachable, LogBroken.
        """
        source = self._databases.get(database)
        return self._status.slot(source) if source.is_cdc_enabled else None

    def status(self) -> EngineStatus:
        """Everything at a glance, with what is wrong, why, and the fix. Raises ControlUnreachable."""
        return self._status.read()

    # The data collector. A set is named by its id, or by its name in any case

    def collection_sets(self) -> Sequence[CollectionSet]:
        """msdb.dbo.syscollector_collection_sets and _items, with each set's newest run; by id.

        The first one is the default: what monitoring shows of every enabled database, every five minutes,
        kept thirty days.
        """
        return self._collector.sets()

    @staticmethod
    def collector_schedules() -> Sequence[CollectorSchedule]:
        """msdb.dbo.sysschedules_localserver_view: the schedules that the collector comes with."""
        return SCHEDULES

    def create_collection_set(
        self,
        name: str | None,
        schedule: str | None = None,
        schedule_uid: UUID | None = None,
        interval_minutes: int | None = None,
        collection_mode: int = 0,
        days_until_expiration: int = 30,
        logging_level: int = 1,
        description: str | None = None,
    ) -> int:
        """sp_syscollector_create_collection_set: a set without items that does not run; its id.

        One of the three says when it collects: ``schedule`` is a name of `collector_schedules` or cron text,
        whose hours are those of the setting ``schedule_zone``. days_until_expiration: 0 keeps data for ever
        (the procedure's own default is 730). Raises CollectorNameInvalid, CollectorObjectExists,
        CollectorObjectMissing, CollectorValueInvalid, ScheduleNotNamedOnce, CachedModeNeedsSchedule,
        CollectionScheduleInvalid.
        """
        return self._collector.create(
            name,
            schedule,
            schedule_uid,
            interval_minutes,
            collection_mode,
            days_until_expiration,
            logging_level,
            description,
        )

    def create_collection_item(
        self,
        collection_set: int | str,
        name: str | None,
        parameters: str | None,
        frequency: int = 5,
        collector_type_uid: UUID = TSQL_COLLECTOR,
    ) -> int:
        """sp_syscollector_create_collection_item: what a set collects, and where to; the item's id.

        parameters: XML of the Generic T-SQL Query collector type, whose queries are ``SELECT *`` of
        sys.dm_cdc_log_scan_sessions, sys.dm_cdc_errors, highwater.cdc_job_state, highwater.cdc_slot or
        highwater.cdc_table_sizes. frequency: seconds, kept and not used. Raises CollectorObjectMissing,
        CollectorNameInvalid, CollectorObjectExists, CollectorValueInvalid, CollectionParametersInvalid,
        CollectionSetNotChangeable while the set runs, SystemCollectionSet for the default one.
        """
        return self._collector.create_item(collection_set, name, parameters, frequency, collector_type_uid)

    def start_collection_set(self, collection_set: int | str) -> None:
        """sp_syscollector_start_collection_set: the agent takes the first snapshot as soon as it sees it.

        Raises CollectorObjectMissing, CollectionSetNeedsSchedule; CollectionSetEmpty (severity 10) where
        there is nothing to collect, and the set runs all the same.
        """
        self._collector.start(collection_set)

    def stop_collection_set(self, collection_set: int | str) -> None:
        """sp_syscollector_stop_collection_set: no more snapshots; what was collected still expires.

        Raises CollectorObjectMissing.
        """
        self._collector.stop(collection_set)

    def update_collection_set(
        self,
        collection_set: int | str,
        new_name: str | None = None,
        schedule: str | None = None,
        schedule_uid: UUID | None = None,
        interval_minutes: int | None = None,
        collection_mode: int | None = None,
        days_until_expiration: int | None = None,
        logging_level: int | None = None,
        description: str | None = None,
    ) -> None:
        """sp_syscollector_update_collection_set; None leaves a value. Schedule and days count at once.

        Fewer days make expire what was collected before them. Raises what `create_collection_set` raises;
        CollectionSetNotChangeable for name, mode and logging level while it runs, SystemCollectionSet for
        these and the description of the default set.
        """
        self._collector.update(
            collection_set,
            new_name,
            schedule,
            schedule_uid,
            interval_minutes,
            collection_mode,
            days_until_expiration,
            logging_level,
            description,
        )

    def delete_collection_set(self, collection_set: int | str) -> None:
        """sp_syscollector_delete_collection_set: what it collected stays until it expires.

        Raises CollectorObjectMissing, CollectionSetActive while it runs, SystemCollectionSet.
        """
        self._collector.delete(collection_set)

    def collect(self, collection_set: int | str = DEFAULT_SET) -> CollectionRun:
        """Takes a snapshot now, whether or not the set runs; returns when it counts.

        Raises CollectorObjectMissing, AgentNotRunning, CollectionFailed, SyncTimeout.
        """
        return self._collector.collect(collection_set)

    def collection_runs(
        self, collection_set: int | str | None = None, limit: int = RUNS_SHOWN
    ) -> Sequence[CollectionRun]:
        """The newest runs of a set, or of all, newest first. Raises CollectorObjectMissing."""
        return self._collector.runs(collection_set, limit)

    def collected_rows(
        self, output_table: str, start: datetime, end: datetime, database: str | None = None
    ) -> Table | None:
        """Rows of a table of the default set whose snapshots were taken in [start, end), each as it was then.

        Columns are the view's, then ``database_name``, ``snapshot_time``, ``snapshot_id``; in no order.
        None where nothing was collected into it. Raises HistoryRangeInvalid, InvalidObjectName.
        """
        return self._collector.taken(output_table, start, end, database)

    def collected_tables(self, collection_set: int | str = DEFAULT_SET) -> Sequence[CollectedTable]:
        """What a set collects into, with rows, files and bytes, from Delta's logs. CollectorObjectMissing."""
        return self._collector.tables(collection_set)

    def custom_snapshots(self, output_table: str, database: str | None = None) -> DataFrame:
        """custom_snapshots.<output_table>: the rows of every snapshot that counts, of all databases or one.

        Columns are the collected view's, then `engine.collector.views.SNAPSHOT_COLUMNS`. Raises
        InvalidObjectName for a table that nothing was collected into.
        """
        found = self._collector.rows(output_table, database)
        if found is None:
            raise InvalidObjectName(f"custom_snapshots.{output_table}")
        return found

    def collected_sessions(self, start: datetime, end: datetime, database: str | None = None) -> DataFrame:
        """Scan sessions that began in [start, end), each once, as the last snapshot has it.

        Columns ``database_name``, ``engine_start`` (session ids count from 1 in each), then those of
        sys.dm_cdc_log_scan_sessions; in no order; session 0 is none of them. Times have a zone. Raises
        HistoryRangeInvalid.
        """
        return self._collector.sessions(start, end, database)

    def collected_series(
        self,
        start: datetime,
        end: datetime,
        database: str | None = None,
        bucket_seconds: int | None = None,
    ) -> Sequence[HistoryPoint]:
        """Latency, throughput and empty scans of [start, end), by database and time.

        bucket_seconds: how long a stretch is, from full ones since 1970 on, so that the same stretches come
        again; None: as short as 2000 of them allow. A stretch without a session has no point: whether it is
        a gap, `collection_breaks` says. Raises HistoryRangeInvalid.
        """
        return self._collector.series(start, end, database, bucket_seconds)

    def collection_breaks(
        self,
        start: datetime,
        end: datetime,
        database: str | None = None,
        collection_set: int | str = DEFAULT_SET,
    ) -> Sequence[HistoryBreak]:
        """Where the history of [start, end) does not go on as before, in order of time.

        Gaps in the set's snapshots, with what failed meanwhile; other agents that collected; other runs of
        capture, by database. Raises HistoryRangeInvalid, CollectorObjectMissing.
        """
        return self._collector.breaks(start, end, database, collection_set)

    # Users and what they did

    def users(self) -> Sequence[Membership]:
        """Who has which role among those who log in to the dashboard, by name."""
        return self._users.list()

    def set_role(self, name: str, role: str, source_principal: str | None = None) -> None:
        """Gives a user a role: viewer, operator or admin; another one, and its principal, from now on.

        name: what the provider of identities calls them, an e-mail address mostly. source_principal: the role
        of the sources whose change data they read and whose rights their statements have. Raises RoleInvalid.
        """
        self._users.set(name, role, source_principal, self._actor.user.name)

    def drop_role(self, name: str) -> None:
        """Takes a user's role: the next call is refused, in tabs that are open too. Raises UserUnknown."""
        self._users.drop(name)

    def activity(
        self, limit: int = ACTIONS_SHOWN, database: str | None = None, user_name: str | None = None
    ) -> Sequence[Action]:
        """Who changed what, or tried to: the newest actions, newest first."""
        return self._control.activity.list(limit, database, user_name)

    def dashboard_settings(self) -> DashboardSettings:
        """What holds for every viewer of the dashboard."""
        return self._control.users.settings()

    def set_dashboard_settings(self, settings: DashboardSettings) -> None:
        """Another, from now on. Raises RoleInvalid for a zone that is none."""
        self._users.set_settings(settings)

    def begin_export(self, database: str, statement: str) -> None:
        """Before change data are downloaded: written down, with the query. Raises ExportsOff."""
        self._users.check_exports()
