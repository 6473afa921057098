"""Tables and views of schemas cdc and sys, and msdb.dbo.cdc_jobs, as rows (reference/tables.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.model.lsn import Lsn
from engine.tsql.objects import objects, schema_id, schemas
from engine.tsql.types import BIGINT, BIT, DATETIME, GUID, INT, LSN, SYSNAME, TEXT, SqlType

if TYPE_CHECKING:
    from engine.engine import Engine

Columns = Sequence[tuple[str, SqlType]]
LSN_TEXT = SqlType("nvarchar", 23)


@dataclass(frozen=True, slots=True)
class CatalogView:
    """Columns, how the rows of a database are read, and who may: the owner alone, or everybody."""

    columns: Columns
    read: Callable[[Engine, str], Sequence[Sequence[Any]]]
    owners_only: bool = True


def _time(moment: datetime | None) -> datetime | None:
    """UTC without a zone, as datetime has it."""
    return None if moment is None else moment.astimezone(UTC).replace(tzinfo=None)


def _bytes(lsn: Lsn | None) -> bytes | None:
    return None if lsn is None else lsn.raw


def _change_tables(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    return [
        (
            each.object_id, 0, each.source_object_id, each.capture_instance, _bytes(each.start_lsn), None,
            each.supports_net_changes, each.has_drop_pending, each.role_name, each.index_name,
            each.filegroup_name,
            _time(each.create_date), each.partition_switch,
        )
        for each in engine.help_change_data_capture(database)
    ]  # fmt: skip


def _captured_columns(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    return [
        (
            each.object_id, column.column_name, column.column_id, column.column_type, column.column_ordinal,
            column.is_computed,
        )
        for each in engine.help_change_data_capture(database)
        for column in each.columns
    ]  # fmt: skip


def _index_columns(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    return [
        (each.object_id, column.column_name, column.index_ordinal, column.column_id)
        for each in engine.help_change_data_capture(database)
        for column in each.index_columns
    ]


def _ddl_history(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    return [
        (
            each.source_object_id, each.object_id, row.required_column_update, row.ddl_command,
            _bytes(row.ddl_lsn),
            _time(row.ddl_time),
        )
        for each in engine.help_change_data_capture(database)
        for row in engine.get_ddl_history(database, each.capture_instance)
    ]  # fmt: skip


def _databases(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    return [
        (each.name, each.database_id, _time(each.created), each.is_cdc_enabled) for each in engine.databases()
    ]


def _tables(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    tracked: set[int] = set()
    if engine.database(database).is_cdc_enabled:
        tracked = {each.source_object_id for each in engine.help_change_data_capture(database)}
    return [
        (
            each.name, each.source_object_id, schema_id(each.schema), each.schema, "U ", "USER_TABLE",
            each.source_object_id in tracked, False,
        )
        for each in engine.source_tables(database)
    ]  # fmt: skip


def _schemas(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    return [(name, schema_id(name), 1) for name in schemas(engine, database)]


def _objects(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    return [
        (each.name, each.object_id, schema_id(each.schema), *each.kind, each.is_shipped)
        for each in objects(engine, database)
    ]


def _principals(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    """Roles of the source, dbo, and on an enabled database the user cdc, who stands for its owner."""
    with closing(engine.sql_session(database)) as session:
        roles = session.principals()
    own = [("dbo", 1, True), ("db_owner", 16384, False)]
    if engine.database(database).is_cdc_enabled:
        own.append(("cdc", 5, True))
    names = {name for name, _, _ in own}
    return [
        (name, number, "S" if is_user else "R", "SQL_USER" if is_user else "DATABASE_ROLE")
        for name, number, is_user in (*own, *(each for each in roles if each[0] not in names))
    ]


def _sessions(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    names = [name for name, _ in SESSION_COLUMNS]
    return [
        [_time(value) if isinstance(value := getattr(each, name), datetime) else value for name in names]
        for each in engine.scan_sessions(database)
    ]


def _errors(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    names = [name for name, _ in _ERROR_COLUMNS]
    return [
        [_time(value) if isinstance(value := getattr(each, name), datetime) else value for name in names]
        for each in engine.scan_errors(database)
    ]


def _jobs(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    """Jobs of every enabled database: msdb is the server's."""
    return [
        (each.database_id, str(job.job_type), str(job.job_id).upper(), *job_parameters(job))
        for each in engine.databases()
        if each.is_cdc_enabled
        for job in engine.help_jobs(each.name)
    ]


def _schedules(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    found = []
    for number, each in enumerate(engine.collector_schedules(), 1):
        minutes = int(next(iter(re.findall(r"\*/(\d+)", each.cron)), 1))
        by_hours = each.cron.startswith("0 ")
        found.append(
            (number, str(each.schedule_uid).upper(), each.name, True, 4, 1, 8 if by_hours else 4, minutes)
        )
    return found


def _collection_sets(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    uids = {each.cron: str(each.schedule_uid).upper() for each in engine.collector_schedules()}
    return [
        (
            each.collection_set_id, str(each.collection_set_uid).upper(), each.name, None, each.is_system,
            each.is_running, int(each.collection_mode), None, uids.get(each.schedule or ""),
            each.days_until_expiration, each.logging_level, each.description,
        )
        for each in engine.collection_sets()
    ]  # fmt: skip


def _collection_items(engine: Engine, database: str) -> Sequence[Sequence[Any]]:
    return [
        (
            item.collection_item_id, item.collection_set_id, str(item.collection_item_uid).upper(), item.name,
            str(item.collector_type_uid).upper(), item.frequency, item.parameters,
        )
        for each in engine.collection_sets()
        for item in each.items
    ]  # fmt: skip


def job_parameters(job: Any) -> tuple[Any, ...]:
    """maxtrans, maxscans, continuous, pollinginterval, retention, threshold; 0 for those of the other job.

    The reference does not say what those hold (tables.md, dbo.cdc_jobs); SQL Server shows 0.
    """
    values = [getattr(job.configured, name, 0) for name, _ in JOB_PARAMETERS]
    return tuple(
        bool(value) if type_ == BIT else int(value)
        for value, (_, type_) in zip(values, JOB_PARAMETERS, strict=True)
    )


SESSION_COLUMNS: Columns = (
    ("session_id", INT), ("start_time", DATETIME), ("end_time", DATETIME), ("duration", BIGINT),
    ("scan_phase", SqlType("nvarchar", 200)), ("error_count", INT), ("start_lsn", LSN_TEXT),
    ("current_lsn", LSN_TEXT), ("end_lsn", LSN_TEXT), ("tran_count", BIGINT), ("last_commit_lsn", LSN_TEXT),
    ("last_commit_time", DATETIME), ("log_record_count", BIGINT), ("schema_change_count", INT),
    ("command_count", BIGINT), ("first_begin_cdc_lsn", LSN_TEXT), ("last_commit_cdc_lsn", LSN_TEXT),
    ("last_commit_cdc_time", DATETIME), ("latency", INT), ("empty_scan_count", INT),
    ("failed_sessions_count", INT),
)  # fmt: skip
_ERROR_COLUMNS: Columns = (
    ("session_id", INT), ("phase_number", INT), ("entry_time", DATETIME), ("error_number", INT),
    ("error_severity", INT), ("error_state", INT), ("error_message", SqlType("nvarchar", 1024)),
    ("start_lsn", LSN_TEXT), ("begin_lsn", LSN_TEXT), ("sequence_value", LSN_TEXT),
)  # fmt: skip
JOB_PARAMETERS: Columns = (
    ("maxtrans", INT), ("maxscans", INT), ("continuous", BIT), ("pollinginterval", BIGINT),
    ("retention", BIGINT),
    ("threshold", BIGINT),
)  # fmt: skip

VIEWS: Mapping[str, CatalogView] = {
    "cdc.change_tables": CatalogView(
        (
            ("object_id", INT), ("version", INT), ("source_object_id", BIGINT), ("capture_instance", SYSNAME),
            ("start_lsn", LSN), ("end_lsn", LSN), ("supports_net_changes", BIT), ("has_drop_pending", BIT),
            ("role_name", SYSNAME), ("index_name", SYSNAME), ("filegroup_name", SYSNAME),
            ("create_date", DATETIME),
            ("partition_switch", BIT),
        ),
        _change_tables,
    ),
    "cdc.captured_columns": CatalogView(
        (
            ("object_id", INT), ("column_name", SYSNAME), ("column_id", INT), ("column_type", SYSNAME),
            ("column_ordinal", INT), ("is_computed", BIT),
        ),
        _captured_columns,
    ),
    "cdc.index_columns": CatalogView(
        (
            ("object_id", INT), ("column_name", SYSNAME), ("index_ordinal", SqlType("tinyint")),
            ("column_id", INT),
        ),
        _index_columns,
    ),
    "cdc.ddl_history": CatalogView(
        (
            ("source_object_id", BIGINT), ("object_id", INT), ("required_column_update", BIT),
            ("ddl_command", TEXT),
            ("ddl_lsn", LSN), ("ddl_time", DATETIME),
        ),
        _ddl_history,
    ),
    "sys.databases": CatalogView(
        (("name", SYSNAME), ("database_id", INT), ("create_date", DATETIME), ("is_cdc_enabled", BIT)),
        _databases,
        owners_only=False,
    ),
    "sys.tables": CatalogView(
        (
            ("name", SYSNAME), ("object_id", BIGINT), ("schema_id", INT), ("schema_name", SYSNAME),
            ("type", SqlType("char", 2)), ("type_desc", SqlType("nvarchar", 60)), ("is_tracked_by_cdc", BIT),
            ("is_ms_shipped", BIT),
        ),
        _tables,
        owners_only=False,
    ),
    "sys.schemas": CatalogView(
        (("name", SYSNAME), ("schema_id", INT), ("principal_id", INT)), _schemas, owners_only=False
    ),
    "sys.objects": CatalogView(
        (
            ("name", SYSNAME), ("object_id", BIGINT), ("schema_id", INT), ("type", SqlType("char", 2)),
            ("type_desc", SqlType("nvarchar", 60)), ("is_ms_shipped", BIT),
        ),
        _objects,
    ),
    "sys.database_principals": CatalogView(
        (
            ("name", SYSNAME), ("principal_id", BIGINT), ("type", SqlType("char", 1)),
            ("type_desc", SqlType("nvarchar", 60)),
        ),
        _principals,
    ),
    "sys.dm_cdc_log_scan_sessions": CatalogView(SESSION_COLUMNS, _sessions),
    "sys.dm_cdc_errors": CatalogView(_ERROR_COLUMNS, _errors),
    "msdb.dbo.cdc_jobs": CatalogView(
        (("database_id", INT), ("job_type", SqlType("nvarchar", 20)), ("job_id", GUID), *JOB_PARAMETERS),
        _jobs,
    ),
    "msdb.dbo.sysschedules_localserver_view": CatalogView(
        (
            ("schedule_id", INT), ("schedule_uid", GUID), ("name", SYSNAME), ("enabled", BIT),
            ("freq_type", INT), ("freq_interval", INT), ("freq_subday_type", INT),
            ("freq_subday_interval", INT),
        ),
        _schedules,
    ),
    "msdb.dbo.syscollector_collection_sets": CatalogView(
        (
            ("collection_set_id", INT), ("collection_set_uid", GUID), ("name", SYSNAME),
            ("target", SYSNAME), ("is_system", BIT), ("is_running", BIT),
            ("collection_mode", SqlType("smallint")), ("proxy_id", INT), ("schedule_uid", GUID),
            ("days_until_expiration", SqlType("smallint")), ("logging_level", SqlType("smallint")),
            ("description", SqlType("nvarchar", 4000)),
        ),
        _collection_sets,
    ),
    "msdb.dbo.syscollector_collection_items": CatalogView(
        (
            ("collection_item_id", INT), ("collection_set_id", INT), ("collection_item_uid", GUID),
            ("name", SYSNAME), ("collector_type_uid", GUID), ("frequency", INT), ("parameters", TEXT),
        ),
        _collection_items,
    ),
}  # fmt: skip
"""By name in lower case."""
MAPPING_COLUMNS: Columns = (
    ("start_lsn", LSN), ("tran_begin_time", DATETIME), ("tran_end_time", DATETIME),
    ("tran_id", SqlType("varbinary", 10)), ("tran_begin_lsn", LSN),
)  # fmt: skip
"""cdc.lsn_time_mapping."""
