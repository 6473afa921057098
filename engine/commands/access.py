"""What each role may do: every public method of `Engine` by name, in one table. Pure.

A viewer reads, an operator also runs jobs, cleanup and the collector, an admin also changes what is captured,
how long it is kept, and who may do what. A method that the table lacks is an admin's, and a test finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.model.user import Role

VIEWER, OPERATOR, ADMIN = Role.VIEWER, Role.OPERATOR, Role.ADMIN


@dataclass(frozen=True, slots=True)
class Free:
    """No question of anybody's rights: pure, or about the object itself."""


@dataclass(frozen=True, slots=True)
class Read:
    """It changes nothing. ``of_data``: asked with the user's principal, so that gating roles hold."""

    least: Role = VIEWER
    of_data: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """It changes something, and is written down with the T-SQL that does the same.

    procedure: its name in T-SQL; ``renamed``: T-SQL's names of parameters that differ from the method's.
    ``in_database``: the database is the one of USE rather than a parameter. ``routine``: programs of the
    home's owner call it all day long, so theirs is not written down.
    """

    least: Role
    procedure: str
    renamed: Mapping[str, str] | None = None
    in_database: bool = True
    routine: bool = False


Access = Free | Read | Command

_MONITORING, _DATA = Read(), Read(of_data=True)


def _sys(name: str, least: Role, routine: bool = False) -> Command:
    return Command(least, f"sys.sp_{name}", routine=routine)


def _own(name: str, least: Role, in_database: bool = True, routine: bool = False) -> Command:
    return Command(least, f"highwater.{name}", in_database=in_database, routine=routine)


def _collector(name: str) -> Command:
    renamed = {"schedule": "schedule_name", "collection_set": "collection_set_id"}
    return Command(OPERATOR, f"msdb.dbo.sp_syscollector_{name}", renamed, in_database=False)


ACCESS: Mapping[str, Access] = {
    # Itself
    "open": Free(),
    "close": Free(),
    "prepare_queries": Free(),
    "acting_as": Free(),
    "user": Free(),
    "least_role": Free(),
    "increment_lsn": Free(),
    "decrement_lsn": Free(),
    "is_bit_set": Free(),
    "collector_schedules": Free(),
    # Databases
    "databases": _MONITORING,
    "database": _MONITORING,
    "connect": _own("connect", ADMIN, in_database=False),
    "disconnect": _own("disconnect", ADMIN, in_database=False),
    "dsn": Read(ADMIN),
    "enable_db": _sys("cdc_enable_db", ADMIN),
    "disable_db": _sys("cdc_disable_db", ADMIN),
    # Tables
    "source_tables": _MONITORING,
    "enable_table": _sys("cdc_enable_table", ADMIN),
    "disable_table": _sys("cdc_disable_table", ADMIN),
    "help_change_data_capture": _DATA,
    "get_captured_columns": _DATA,
    "get_ddl_history": _DATA,
    "schema_changes": _DATA,
    "generate_wrapper_function": _DATA,
    # Positions and changes
    "get_min_lsn": _DATA,
    "get_max_lsn": _MONITORING,
    "watermarks": _MONITORING,
    "map_lsn_to_time": _MONITORING,
    "map_lsns_to_times": _MONITORING,
    "map_time_to_lsn": _MONITORING,
    "lsn_time_mapping": _MONITORING,
    "last_commit_upto": _MONITORING,
    "get_all_changes": _DATA,
    "newest_changes": _DATA,
    "row_history": _DATA,
    "table_as_of": _DATA,
    "get_net_changes": _DATA,
    "all_changes_by_time": _DATA,
    "net_changes_by_time": _DATA,
    "change_schema": _DATA,
    "change_files": _DATA,
    "change_table": _DATA,
    "change_table_size": _MONITORING,
    "get_column_ordinal": _DATA,
    "has_column_changed": _DATA,
    "begin_export": Command(VIEWER, "highwater.begin_export"),
    # Working with SQL
    "spark_session": _MONITORING,
    "results_folder": _MONITORING,
    "row_stream": _MONITORING,
    "sql_session": _MONITORING,
    "script_session": _DATA,
    "batch": _MONITORING,
    "privileges": _MONITORING,
    # The demo
    "is_demo": _MONITORING,
    "run_demo": _own("demo", OPERATOR),
    # Scanning and cleaning up
    "scan": _sys("cdc_scan", OPERATOR, routine=True),
    "sync": Read(OPERATOR),
    "cleanup_change_table": _sys("cdc_cleanup_change_table", ADMIN),
    "cleanup": _sys("MScdc_cleanup_job", OPERATOR),
    "cleanup_preview": _MONITORING,
    "cleanup_change_table_preview": _MONITORING,
    "compact": _own("compact", OPERATOR),
    "last_compaction": _MONITORING,
    # Clients
    "register_client": _own("register_client", ADMIN),
    "acknowledge": _own("acknowledge", OPERATOR, routine=True),
    "drop_client": _own("drop_client", ADMIN),
    "clients": _MONITORING,
    "client_lags": _MONITORING,
    # Jobs
    "help_jobs": _MONITORING,
    "job_history": _MONITORING,
    "add_job": _sys("cdc_add_job", ADMIN),
    "drop_job": _sys("cdc_drop_job", ADMIN),
    "start_job": _sys("cdc_start_job", OPERATOR),
    "stop_job": _sys("cdc_stop_job", OPERATOR),
    "change_job": _sys("cdc_change_job", OPERATOR),
    "update_job_step": _own("update_job_step", ADMIN),
    # Alerts
    "alert_hook": Read(ADMIN),
    "alert_thresholds": _MONITORING,
    "set_alert_hook": _own("set_alert_hook", ADMIN, in_database=False),
    "test_alert_hook": _own("test_alert_hook", ADMIN, in_database=False),
    "alerts": _MONITORING,
    # Monitoring
    "scan_sessions": _MONITORING,
    "session_history": _MONITORING,
    "scan_pauses": _MONITORING,
    "scan_errors": _MONITORING,
    "slot": _MONITORING,
    "status": _MONITORING,
    # The data collector
    "collection_sets": _MONITORING,
    "create_collection_set": _collector("create_collection_set"),
    "create_collection_item": _collector("create_collection_item"),
    "start_collection_set": _collector("start_collection_set"),
    "stop_collection_set": _collector("stop_collection_set"),
    "update_collection_set": _collector("update_collection_set"),
    "delete_collection_set": _collector("delete_collection_set"),
    "collect": _own("collect", OPERATOR, in_database=False),
    "collection_runs": _MONITORING,
    "collected_rows": _MONITORING,
    "collected_tables": _MONITORING,
    "custom_snapshots": _MONITORING,
    "collected_sessions": _MONITORING,
    "collected_series": _MONITORING,
    "collection_breaks": _MONITORING,
    # Users and what they did
    "users": _MONITORING,
    "set_role": _own("set_role", ADMIN, in_database=False),
    "drop_role": _own("drop_role", ADMIN, in_database=False),
    "activity": _MONITORING,
    "dashboard_settings": _MONITORING,
    "set_dashboard_settings": _own("set_dashboard_settings", ADMIN, in_database=False),
}
FORGOTTEN = Command(ADMIN, "highwater.?")
"""What holds for a method that the table lacks."""


def access_to(method: str) -> Access:
    """What calling this method of `Engine` needs."""
    return ACCESS.get(method, FORGOTTEN)


def least_role(method: str, arguments: Mapping[str, object]) -> Role:
    """The least role for a call with these arguments; a viewer's for what is free to all.

    An operator tunes capture; how long changes are kept, and when they go, is an admin's to say.
    """
    access = access_to(method)
    if isinstance(access, Free):
        return VIEWER
    if method == "change_job" and any(arguments.get(name) is not None for name in _KEEPING):
        return ADMIN
    if method == "change_job" and arguments.get("job_type") == "cleanup":
        return ADMIN
    return access.least


_KEEPING = ("retention", "threshold", "schedule")
