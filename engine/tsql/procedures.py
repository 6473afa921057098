"""Stored procedures by their names in T-SQL over `Engine` (reference/procedures.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from engine.errors import ColumnListUnmappable, JobMissing
from engine.model.job import JobType, is_capture
from engine.model.lsn import Lsn
from engine.procedures.column_list import parse_column_list
from engine.sources.base import SourceTable
from engine.tsql.calling import REQUIRED, Call, Parameter, Procedure
from engine.tsql.catalog_views import JOB_PARAMETERS, job_parameters
from engine.tsql.messages import INFORMATION, Message
from engine.tsql.msdb import MSDB_PROCEDURES
from engine.tsql.own_procedures import OWN_PROCEDURES
from engine.tsql.types import BIGINT, BIT, DATETIME, GUID, INT, LSN, SYSNAME, TEXT, SqlType

_JOB_TYPE = SqlType("nvarchar", 20)
_SMALLINT, _TINYINT = SqlType("smallint"), SqlType("tinyint")


# Databases and tables


def _enable_db(call: Call) -> None:
    call.engine.enable_db(call.database, call.principal)


def _disable_db(call: Call) -> None:
    call.engine.disable_db(call.database, call.principal, force=bool(call["force"]))


def _enable_table(call: Call) -> None:
    schema, name, table = call.table()
    index, columns = call["index_name"], call["captured_column_list"]
    if table is not None:
        names = [each.name for each in table.indexes]
        index = _as_created(index, names) if index else index
        columns = _listed(columns, table) if columns else columns
    given = call["allow_partition_switch"]
    call.engine.enable_table(
        call.database,
        schema,  # type: ignore[arg-type]
        name,  # type: ignore[arg-type]
        role_name=call["role_name"],
        capture_instance=call["capture_instance"],
        supports_net_changes=call["supports_net_changes"],
        index_name=index,
        captured_column_list=columns,
        filegroup_name=call["filegroup_name"],
        allow_partition_switch=True if given is None else given,
        principal=call.principal,
    )


def _as_created(name: str, names: Sequence[str]) -> str:
    matches = [each for each in names if each.lower() == name.lower()]
    return name if name in matches or len(matches) != 1 else matches[0]


def _listed(columns: str, table: SourceTable) -> str:
    """The captured column list with names as they were created; one that can't be read stays as it is."""
    try:
        names = parse_column_list(columns, table.schema, table.name)
    except ColumnListUnmappable:
        return columns
    created = [_as_created(name, [each.name for each in table.columns]) for name in names]
    return ", ".join("[" + name.replace("]", "]]") + "]" for name in created)


def _disable_table(call: Call) -> None:
    schema, name, _ = call.table()
    given = call["capture_instance"]
    instance = "all" if given is not None and given.lower() == "all" else call.instance(given)
    call.engine.disable_table(call.database, schema, name, instance, call.principal)  # type: ignore[arg-type]


# Jobs


def _job_values(call: Call) -> dict[str, Any]:
    return {name: call[name] for name, _ in JOB_PARAMETERS} | {"schedule": call["schedule"]}


def _add_job(call: Call) -> None:
    start = call["start_job"]
    call.engine.add_job(
        call.database,
        call["job_type"],
        start_job=True if start is None else start,
        principal=call.principal,
        **_job_values(call),
    )


def _change_job(call: Call) -> None:
    call.engine.change_job(call.database, call["job_type"], principal=call.principal, **_job_values(call))


def _drop_job(call: Call) -> None:
    call.engine.drop_job(call.database, call["job_type"], call.principal)


def _start_job(call: Call) -> None:
    call.engine.start_job(call.database, call["job_type"], call.principal)


def _stop_job(call: Call) -> None:
    call.engine.stop_job(call.database, call["job_type"], call.principal)


def _help_jobs(call: Call) -> None:
    call.rows(
        (("job_id", GUID), ("job_type", _JOB_TYPE), *JOB_PARAMETERS),
        [
            (str(job.job_id).upper(), str(job.job_type), *job_parameters(job))
            for job in call.engine.help_jobs(call.database, call.principal)
        ],
    )


def _cleanup(call: Call) -> None:
    mark, threshold = call["low_water_mark"], call["threshold"]
    outcome = call.engine.cleanup_change_table(
        call.database,
        call.instance(call["capture_instance"]) or "",
        None if mark is None else Lsn(mark),
        0 if threshold is None else threshold,
        call.principal,
        force=bool(call["force"]),
    )
    call.outputs["@fcleanupfailed"] = outcome.cleanup_failed
    if outcome.message:
        call.sink.message(Message(22852, INFORMATION, 1, outcome.message, 0))


def _scan(call: Call) -> None:
    call.engine.scan(
        call.database,
        call["maxtrans"],
        call["maxscans"],
        call["continuous"],
        call["pollinginterval"],
        call.stopped,
        principal=call.principal,
    )


def _capture_job(call: Call) -> None:
    """sys.sp_MScdc_capture_job: the scan with the parameters of the capture job, until it ends."""
    for job in call.engine.help_jobs(call.database, call.principal):
        if is_capture(job):
            found = job.configured
            call.engine.scan(
                call.database,
                found.maxtrans,
                found.maxscans,
                found.continuous,
                found.pollinginterval if found.continuous else 0,
                call.stopped,
                principal=call.principal,
            )
            return
    raise JobMissing(JobType.CAPTURE, call.database)


def _cleanup_job(call: Call) -> None:
    """sys.sp_MScdc_cleanup_job: what the cleanup job does, now."""
    call.engine.cleanup(call.database, call.principal)


def _sync(call: Call) -> None:
    timeout = call["timeout"]
    call.engine.sync(call.database, 60.0 if timeout is None else float(timeout))


# Metadata


def _time(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


def _help_change_data_capture(call: Call) -> None:
    schema, name, _ = call.table()
    rows = [
        (
            each.source_schema, each.source_table, each.capture_instance, each.object_id,
            each.source_object_id,
            None if each.start_lsn is None else each.start_lsn.raw, None, each.supports_net_changes,
            each.has_drop_pending, each.role_name, each.index_name, each.filegroup_name,
            _time(each.create_date),
            _bracketed(each.index_column_names), _bracketed(each.column_names),
        )
        for each in call.engine.help_change_data_capture(call.database, schema, name, call.principal)
    ]  # fmt: skip
    call.rows(
        (
            ("source_schema", SYSNAME), ("source_table", SYSNAME), ("capture_instance", SYSNAME),
            ("object_id", INT), ("source_object_id", BIGINT), ("start_lsn", LSN), ("end_lsn", LSN),
            ("supports_net_changes", BIT), ("has_drop_pending", BIT), ("role_name", SYSNAME),
            ("index_name", SYSNAME), ("filegroup_name", SYSNAME), ("create_date", DATETIME),
            ("index_column_list", TEXT), ("captured_column_list", TEXT),
        ),
        rows,
    )  # fmt: skip


def _bracketed(names: Sequence[str]) -> str | None:
    """``[a], [b]`` as the original lists columns; NULL for none."""
    return ", ".join("[" + name.replace("]", "]]") + "]" for name in names) or None


def _captured_columns(call: Call) -> None:
    columns: Sequence[tuple[str, SqlType]] = (
        ("source_schema", SYSNAME), ("source_table", SYSNAME), ("capture_instance", SYSNAME),
        ("column_name", SYSNAME), ("column_id", INT), ("column_ordinal", INT), ("data_type", SYSNAME),
        ("character_maximum_length", INT), ("numeric_precision", _TINYINT),
        ("numeric_precision_radix", _SMALLINT), ("numeric_scale", INT), ("datetime_precision", _SMALLINT),
    )  # fmt: skip
    instance = call.instance(call["capture_instance"]) or ""
    found = call.engine.get_captured_columns(call.database, instance, call.principal)
    call.rows(columns, [[getattr(row, name) for name, _ in columns] for row in found])


def _ddl_history(call: Call) -> None:
    instance = call.instance(call["capture_instance"]) or ""
    found = call.engine.get_ddl_history(call.database, instance, call.principal)
    call.rows(
        (
            ("source_schema", SYSNAME), ("source_table", SYSNAME), ("capture_instance", SYSNAME),
            ("required_column_update", BIT), ("ddl_command", TEXT), ("ddl_lsn", LSN), ("ddl_time", DATETIME),
        ),
        [
            (
                row.source_schema, row.source_table, row.capture_instance, row.required_column_update,
                row.ddl_command, row.ddl_lsn.raw, _time(row.ddl_time),
            )
            for row in found
        ],
    )  # fmt: skip


def _wrapper_functions(call: Call) -> None:
    closed = call["closed_high_end_point"]
    found = call.engine.generate_wrapper_function(
        call.database,
        call.instance(call["capture_instance"]),
        True if closed is None else closed,
        call["column_list"],
        call["update_flag_list"],
        call.principal,
    )
    call.rows(
        (("function_name", SqlType("nvarchar", 145)), ("create_script", TEXT)),
        [(row.function_name, row.create_script) for row in found],
    )


_FORCE = Parameter("@force", BIT, False)
"""Ours: what the method's ``force`` says."""
_LISTS = (Parameter("@column_list", TEXT), Parameter("@update_flag_list", TEXT))
_TABLE = (Parameter("@source_schema", SYSNAME, REQUIRED), Parameter("@source_name", SYSNAME, REQUIRED))
_INSTANCE = Parameter("@capture_instance", SYSNAME, REQUIRED)
_JOB_PARAMETERS = (
    *(Parameter(f"@{name}", type_) for name, type_ in JOB_PARAMETERS),
    Parameter("@schedule", TEXT),  # ours: in the original a procedure of msdb sets it
)

_ALL = (
    Procedure("sp_cdc_enable_db", (), _enable_db, changes=True),
    Procedure("sp_cdc_disable_db", (_FORCE,), _disable_db, changes=True),
    Procedure(
        "sp_cdc_enable_table",
        (
            *_TABLE,
            Parameter("@capture_instance", SYSNAME),
            Parameter("@supports_net_changes", BIT),
            Parameter("@role_name", SYSNAME, REQUIRED),
            Parameter("@index_name", SYSNAME),
            Parameter("@captured_column_list", TEXT),
            Parameter("@filegroup_name", SYSNAME),
            Parameter("@allow_partition_switch", BIT, True),
        ),
        _enable_table,
        changes=True,
    ),
    Procedure(
        "sp_cdc_disable_table",
        (*_TABLE, Parameter("@capture_instance", SYSNAME)),
        _disable_table,
        changes=True,
    ),
    Procedure(
        "sp_cdc_add_job",
        (Parameter("@job_type", _JOB_TYPE, REQUIRED), Parameter("@start_job", BIT, True), *_JOB_PARAMETERS),
        _add_job,
    ),
    Procedure(
        "sp_cdc_change_job", (Parameter("@job_type", _JOB_TYPE, "capture"), *_JOB_PARAMETERS), _change_job
    ),
    Procedure("sp_cdc_drop_job", (Parameter("@job_type", _JOB_TYPE, REQUIRED),), _drop_job),
    Procedure("sp_cdc_start_job", (Parameter("@job_type", _JOB_TYPE, "capture"),), _start_job),
    Procedure("sp_cdc_stop_job", (Parameter("@job_type", _JOB_TYPE, "capture"),), _stop_job),
    Procedure("sp_cdc_help_jobs", (), _help_jobs),
    Procedure("sp_MScdc_capture_job", (), _capture_job),
    Procedure("sp_MScdc_cleanup_job", (), _cleanup_job),
    Procedure(
        "sp_cdc_cleanup_change_table",
        (
            _INSTANCE,
            Parameter("@low_water_mark", LSN, REQUIRED),
            Parameter("@threshold", BIGINT, 5000),
            Parameter("@fcleanupfailed", BIT, False, is_output=True),
            _FORCE,
        ),
        _cleanup,
    ),
    Procedure(
        "sp_cdc_scan",
        (
            Parameter("@maxtrans", INT, 500),
            Parameter("@maxscans", INT, 10),
            Parameter("@continuous", _TINYINT, 0),
            Parameter("@pollinginterval", BIGINT, 0),
            Parameter("@is_from_job", INT),
        ),
        _scan,
    ),
    Procedure(
        "sp_cdc_help_change_data_capture",
        (Parameter("@source_schema", SYSNAME), Parameter("@source_name", SYSNAME)),
        _help_change_data_capture,
    ),
    Procedure("sp_cdc_get_captured_columns", (_INSTANCE,), _captured_columns),
    Procedure("sp_cdc_get_ddl_history", (_INSTANCE,), _ddl_history),
    Procedure(
        "sp_cdc_generate_wrapper_function",
        (Parameter("@capture_instance", SYSNAME), Parameter("@closed_high_end_point", BIT, True), *_LISTS),
        _wrapper_functions,
    ),
)
SYNC = Procedure("sync", (Parameter("@timeout", SqlType("float")),), _sync)
OWN: Mapping[str, Procedure] = {"sync": SYNC, **OWN_PROCEDURES}
"""Procedures of schema highwater, by their names."""

PROCEDURES: Mapping[str, Procedure] = {procedure.name.lower(): procedure for procedure in _ALL}
"""Procedures of schema sys, by their names in lower case."""


def procedure_of(name: Sequence[str]) -> Procedure | None:
    """The procedure of a name with or without its schema; None for one that is not ours."""
    *qualifier, last = [part.lower() for part in name]
    schema = qualifier[-1] if qualifier else ""
    if qualifier[:-1] == ["msdb"] and last in MSDB_PROCEDURES:
        return MSDB_PROCEDURES[last]
    if schema == "highwater":
        return OWN.get(last)
    if schema not in ("", "sys", "dbo"):
        return None
    return PROCEDURES.get(last)
