"""Enabling and disabling tables (reference/procedures.md, 2).

Control database and source commit one after the other: the control transaction stays open while the
source's commits. Should the process die in between, the source's log holds the word, and the
capture job, which reads it, makes the control database agree: nothing stays half-enabled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import structlog

from engine.control import ControlDatabase
from engine.errors import (
    CdcError,
    InstanceNotOfTable,
    ParameterEmpty,
    SchemaWithoutName,
    TableMissing,
    TableNotTracked,
)
from engine.model.capture_instance import CaptureInstance
from engine.model.job import CaptureParameters, CleanupParameters
from engine.procedures.databases import Databases
from engine.procedures.table_rules import (
    EnableRequest,
    check_parameters,
    check_table_name,
    filegroup,
    partition_note,
    partition_switch,
    plan,
)
from engine.sources.base import SourceAdmin, SourceTable

_log = structlog.get_logger(__name__)

ALL_INSTANCES = "all"


class Tables:
    """Capture instances of source tables."""

    def __init__(self, control: ControlDatabase, databases: Databases, clock: Callable[[], datetime]) -> None:
        self._control = control
        self._databases = databases
        self._clock = clock

    def of_source(self, database: str) -> list[SourceTable]:
        """Every table of the source that could be tracked."""
        return list(self._databases.admin(database).tables())

    def enable(
        self, database: str, request: EnableRequest, on_message: Callable[[CdcError], None] | None = None
    ) -> CaptureInstance:
        """sys.sp_cdc_enable_table; the first tracked table adds both jobs and starts capture.

        on_message is told messages of severity 10, once the table is enabled; without it they are logged.
        Raises ObjectsNotCreated where an earlier version enabled the database and the role can't upgrade it.
        """
        self._databases.enabled(database)
        check_parameters(request)
        admin = self._databases.admin(database)
        table = admin.table(request.source_schema, request.source_name)
        if table is None:
            raise TableMissing(request.source_schema, request.source_name)
        self._forget_gone(database, admin)
        filegroup_name = filegroup(request.filegroup_name, admin.tablespaces)
        instances = self._control.instances.list(database)
        admin.upgrade(instances)
        planned = plan(request, table, instances)
        note = partition_note(request, table, admin.refuses_ddl())
        if planned.role_name is not None:
            admin.create_role(planned.role_name)
        instance = CaptureInstance(
            object_id=self._control.instances.next_object_id(),
            database=database,
            capture_instance=planned.capture_instance,
            source_schema=table.schema,
            source_table=table.name,
            source_object_id=table.source_object_id,
            start_lsn=None,
            supports_net_changes=planned.supports_net_changes,
            role_name=planned.role_name,
            index_name=planned.index_name,
            filegroup_name=filegroup_name,
            create_date=self._clock(),
            columns=planned.columns,
            index_columns=planned.index_columns,
            partition_switch=partition_switch(request, table),
            source_columns=table.shape,
        )
        with self._control.instances.add(instance, CaptureParameters(), CleanupParameters()):
            admin.enable_table(instance)
        _log.info("table enabled", database=database, capture_instance=instance.capture_instance)
        if note is not None and on_message is not None:
            on_message(note)
        elif note is not None:
            _log.warning(str(note), database=database)
        return instance

    def disable(
        self, database: str, source_schema: str, source_name: str, capture_instance: str | None
    ) -> None:
        """sys.sp_cdc_disable_table for one instance, or for ``'all'``; the last tracked table drops the jobs.

        The instances are gone at once from metadata and query functions. Their change tables are listed
        for the agent, which removes them when its scan meets the end in the log.
        """
        self._databases.enabled(database)
        check_table_name(source_schema, source_name)
        if not capture_instance:
            raise ParameterEmpty("@capture_instance")
        admin = self._databases.admin(database)
        tracked = self._tracked_now(database, admin, source_schema, source_name)
        ending = _ending(tracked, source_schema, source_name, capture_instance)
        with self._control.instances.remove(database, [instance.object_id for instance in ending]):
            left = len(tracked)
            for instance in ending:
                left -= 1
                admin.disable_table(instance, last_of_table=left == 0)
        for instance in ending:
            _log.info("table disabled", database=database, capture_instance=instance.capture_instance)

    def help(
        self, database: str, source_schema: str | None, source_name: str | None
    ) -> list[CaptureInstance]:
        """sys.sp_cdc_help_change_data_capture: every instance, or those of one table."""
        self._databases.enabled(database)
        if (source_schema is None) != (source_name is None):
            raise SchemaWithoutName
        if source_schema is None or source_name is None:
            return self._control.instances.list(database)
        return list(self.tracked(database, source_schema, source_name))

    def _tracked_now(
        self, database: str, admin: SourceAdmin, source_schema: str, source_name: str
    ) -> Sequence[CaptureInstance]:
        """The instances of the table that has this name at the source now, or had it when it was dropped.

        The log may not have told of a renaming yet. Raises TableMissing, TableNotTracked.
        """
        name = (source_schema, source_name)
        instances = self._control.instances.list(database)
        names = _names_now(admin, instances)
        found = [one for one in instances if names.get(one.source_object_id) == name]
        gone = [one for one in instances if one.source_object_id not in names]
        dropped = [one for one in gone if (one.source_schema, one.source_table) == name]
        if not found and not dropped:
            raise _not_tracked(admin, source_schema, source_name)
        return found or dropped

    def _forget_gone(self, database: str, admin: SourceAdmin) -> None:
        """A dropped table takes its instances along, also where the capture job has not read of it yet."""
        instances = self._control.instances.list(database)
        names = _names_now(admin, instances)
        gone = [instance for instance in instances if instance.source_object_id not in names]
        if gone:
            with self._control.instances.remove(database, [instance.object_id for instance in gone]):
                for instance in gone:
                    admin.disable_table(instance, last_of_table=True)

    def tracked(self, database: str, source_schema: str, source_name: str) -> Sequence[CaptureInstance]:
        """The instances of a table, one or two. Raises TableMissing, TableNotTracked."""
        found = [
            instance
            for instance in self._control.instances.list(database)
            if (instance.source_schema, instance.source_table) == (source_schema, source_name)
        ]
        if not found:
            raise _not_tracked(self._databases.admin(database), source_schema, source_name)
        return found


def _names_now(admin: SourceAdmin, instances: Sequence[CaptureInstance]) -> Mapping[int, tuple[str, str]]:
    """What the source calls the instances' tables now; those that are gone are not in it."""
    return admin.table_names([instance.source_object_id for instance in instances])


def _not_tracked(admin: SourceAdmin, source_schema: str, source_name: str) -> CdcError:
    """Why a table has no instances: it is not there, or not tracked."""
    if admin.table(source_schema, source_name) is None:
        return TableMissing(source_schema, source_name)
    return TableNotTracked(source_schema, source_name)


def _ending(
    tracked: Sequence[CaptureInstance], source_schema: str, source_name: str, capture_instance: str
) -> Sequence[CaptureInstance]:
    if capture_instance == ALL_INSTANCES:
        return tracked
    ending = [instance for instance in tracked if instance.capture_instance == capture_instance.rstrip()]
    if not ending:
        raise InstanceNotOfTable(capture_instance, source_schema, source_name)
    return ending
