"""The control database's tables: what the original keeps in schema ``cdc`` and in msdb's ``dbo``.

Names and columns are those of reference/tables.md; columns of our own follow after the original's.
LSNs are ``bytea``, which PostgreSQL compares bytewise. Migrations make these tables (migrations/);
a test compares the two.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from engine.model.lsn import Lsn


class LsnColumn(TypeDecorator[Lsn]):
    """An `Lsn` kept as its 10 bytes."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Lsn | None, dialect: Dialect) -> bytes | None:
        """The 10 bytes."""
        return None if value is None else value.raw

    def process_result_value(self, value: Any, dialect: Dialect) -> Lsn | None:
        """The LSN of 10 bytes."""
        return None if value is None else Lsn(bytes(value))


INSTANT = TIMESTAMP(timezone=True)

metadata = MetaData()

databases = Table(
    "databases",
    metadata,
    Column("database_id", Integer, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("dsn", Text, nullable=False),
    Column("is_cdc_enabled", Boolean, nullable=False),
    Column("create_date", INSTANT, nullable=False),
    schema="dbo",
)


def _database_key(primary_key: bool = True) -> Column[int]:
    """The database a row belongs to; the row goes with the database."""
    target = ForeignKey("dbo.databases.database_id", ondelete="CASCADE")
    return Column(
        "database_id", Integer, target, primary_key=primary_key, nullable=False, autoincrement=False
    )


cdc_jobs = Table(
    "cdc_jobs",
    metadata,
    _database_key(),
    Column("job_type", Text, primary_key=True),
    Column("job_id", Uuid, nullable=False, unique=True),
    Column("maxtrans", Integer),
    Column("maxscans", Integer),
    Column("continuous", Boolean),
    Column("pollinginterval", BigInteger),
    Column("retention", BigInteger),
    Column("threshold", BigInteger),
    Column("wanted", Boolean, nullable=False),
    Column("state", Text, nullable=False),
    Column("since", INSTANT, nullable=False),
    Column("message", Text, nullable=False),
    Column("running_maxtrans", Integer),
    Column("running_maxscans", Integer),
    Column("running_continuous", Boolean),
    Column("running_pollinginterval", BigInteger),
    Column("running_retention", BigInteger),
    Column("running_threshold", BigInteger),
    Column("schedule", Text),
    Column("next_run", INSTANT),
    Column("subsystem", Text),
    Column("command", Text),
    Column("running_subsystem", Text),
    Column("running_command", Text),
    schema="dbo",
)

job_history = Table(
    "job_history",
    metadata,
    Column("run_id", BigInteger, primary_key=True, autoincrement=True),
    Column("job_id", Uuid, ForeignKey("dbo.cdc_jobs.job_id", ondelete="CASCADE"), nullable=False),
    Column("start_time", INSTANT, nullable=False),
    Column("end_time", INSTANT),
    Column("outcome", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("deleted_rows", BigInteger, nullable=False),
    Column("retries", Integer, nullable=False, server_default="0"),
    Column("parameters", JSONB, nullable=False, server_default="{}"),
    Column("output", Text, nullable=False, server_default=""),
    Column("tables", JSONB, nullable=False, server_default="[]"),
    Index("job_history_job", "job_id", "run_id"),
    schema="dbo",
)

compactions = Table(
    "compactions",
    metadata,
    _database_key(),
    Column("wanted", Boolean, nullable=False),
    Column("start_time", INSTANT),
    Column("end_time", INSTANT),
    Column("outcome", Text),
    Column("message", Text, nullable=False),
    schema="dbo",
)

leases = Table(
    "leases",
    metadata,
    _database_key(),
    Column("job_type", Text, primary_key=True, server_default="capture"),
    Column("holder", Text, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("seconds", Integer, nullable=False),
    Column("expires", INSTANT, nullable=False),
    schema="dbo",
)

scan_calls = Table(
    "scan_calls",
    metadata,
    Column("call_id", Integer, primary_key=True, autoincrement=True),
    _database_key(primary_key=False),
    Column("maxtrans", Integer, nullable=False),
    Column("maxscans", Integer, nullable=False),
    Column("continuous", Boolean, nullable=False),
    Column("pollinginterval", BigInteger, nullable=False),
    Column("wanted", Boolean, nullable=False, server_default="true"),
    Column("claimed", Boolean, nullable=False, server_default="false"),
    Column("ended", Boolean, nullable=False, server_default="false"),
    Column("error_number", Integer),
    Column("error_severity", Integer),
    Column("error_state", Integer),
    Column("error_message", Text),
    schema="dbo",
)

alert_hook = Table(
    "alert_hook",
    metadata,
    Column("hook_id", Integer, primary_key=True, autoincrement=False),
    Column("command", Text),
    Column("webhook", Text),
    Column("lag_seconds", Integer, nullable=False),
    Column("stall_seconds", Integer, nullable=False),
    Column("slot_bytes", BigInteger, nullable=False),
    Column("timeout_seconds", Integer, nullable=False),
    schema="dbo",
)

alerts = Table(
    "alerts",
    metadata,
    Column("alert_id", BigInteger, primary_key=True, autoincrement=True),
    Column("database_id", Integer, ForeignKey("dbo.databases.database_id", ondelete="CASCADE")),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("raised_at", INSTANT, nullable=False),
    Column("cleared_at", INSTANT),
    Column("claimed_at", INSTANT),
    Column("raised_told", Text),
    Column("cleared_told", Text),
    Index("alerts_standing", "database_id", "kind", unique=True, postgresql_where=text("cleared_at IS NULL")),
    Index(
        "alerts_standing_of_home",
        "kind",
        unique=True,
        postgresql_where=text("cleared_at IS NULL AND database_id IS NULL"),
    ),
    schema="dbo",
)

object_ids = Sequence("object_ids", start=1001, schema="cdc", metadata=metadata)

change_tables = Table(
    "change_tables",
    metadata,
    Column("object_id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
    Column("source_object_id", BigInteger, nullable=False),
    Column("capture_instance", Text, nullable=False),
    Column("start_lsn", LsnColumn),
    Column("end_lsn", LsnColumn),
    Column("supports_net_changes", Boolean, nullable=False),
    Column("has_drop_pending", Boolean, nullable=False),
    Column("role_name", Text),
    Column("index_name", Text),
    Column("filegroup_name", Text),
    Column("create_date", INSTANT, nullable=False),
    Column("partition_switch", Boolean, nullable=False),
    _database_key(primary_key=False),
    Column("source_schema", Text, nullable=False),
    Column("source_table", Text, nullable=False),
    Column("source_columns", JSONB, nullable=False, server_default="[]"),
    UniqueConstraint("database_id", "capture_instance"),
    schema="cdc",
)


def _object_key() -> Column[int]:
    target = ForeignKey("cdc.change_tables.object_id", ondelete="CASCADE")
    return Column("object_id", Integer, target, primary_key=True, autoincrement=False)


captured_columns = Table(
    "captured_columns",
    metadata,
    _object_key(),
    Column("column_name", Text, nullable=False),
    Column("column_id", Integer, nullable=False),
    Column("column_type", Text, nullable=False),
    Column("column_ordinal", Integer, primary_key=True, autoincrement=False),
    Column("is_computed", Boolean, nullable=False),
    Column("lake_type", Text, nullable=False),
    schema="cdc",
)

index_columns = Table(
    "index_columns",
    metadata,
    _object_key(),
    Column("column_name", Text, nullable=False),
    Column("index_ordinal", SmallInteger, primary_key=True, autoincrement=False),
    Column("column_id", Integer, nullable=False),
    schema="cdc",
)

ddl_history = Table(
    "ddl_history",
    metadata,
    Column("entry_id", BigInteger, primary_key=True, autoincrement=True),
    Column("source_object_id", BigInteger, nullable=False),
    Column(
        "object_id",
        Integer,
        ForeignKey("cdc.change_tables.object_id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("required_column_update", Boolean, nullable=False),
    Column("ddl_command", Text, nullable=False),
    Column("ddl_lsn", LsnColumn, nullable=False),
    Column("ddl_time", INSTANT, nullable=False),
    Column("columns_before", JSONB),
    Column("columns_after", JSONB),
    Index("ddl_history_object", "object_id", "entry_id"),
    schema="cdc",
)

clients = Table(
    "clients",
    metadata,
    _object_key(),
    Column("client_name", Text, primary_key=True),
    Column("acknowledged_lsn", LsnColumn),
    Column("acknowledged_at", INSTANT, nullable=False),
    Column("registered_at", INSTANT, nullable=False),
    Column("expires_seconds", BigInteger),
    Column("earlier_lsn", LsnColumn),
    Column("earlier_at", INSTANT, nullable=False),
    Column("held_lsn", LsnColumn),
    Column("held_since", INSTANT),
    schema="cdc",
)

dropped_tables = Table(
    "dropped_tables",
    metadata,
    Column("object_id", Integer, primary_key=True, autoincrement=False),
    Column("capture_instance", Text),
    Column("drop_date", INSTANT, nullable=False),
    Column("database", Text, nullable=False),
    schema="cdc",
)

watermarks = Table(
    "watermarks",
    metadata,
    _database_key(),
    Column("high", LsnColumn),
    Column("checkpoint", LsnColumn),
    Column("scanned", LsnColumn),
    Column("last_commit_time", INSTANT),
    Column("published_at", INSTANT),
    Column("system_identifier", Text),
    Column("timeline", Integer),
    Column("slot", Text),
    schema="cdc",
)

scan_runs = Table(
    "scan_runs",
    metadata,
    _database_key(),
    Column("engine_start", INSTANT, nullable=False),
    Column("last_session_id", Integer, nullable=False),
    schema="cdc",
)

scan_sessions = Table(
    "scan_sessions",
    metadata,
    _database_key(),
    Column("engine_start", INSTANT, primary_key=True),
    Column("session_id", Integer, primary_key=True, autoincrement=False),
    Column("start_time", INSTANT, nullable=False),
    Column("end_time", INSTANT),
    Column("duration", BigInteger, nullable=False),
    Column("scan_phase", Text, nullable=False),
    Column("error_count", Integer, nullable=False),
    Column("start_lsn", Text, nullable=False),
    Column("current_lsn", Text, nullable=False),
    Column("end_lsn", Text),
    Column("tran_count", BigInteger, nullable=False),
    Column("last_commit_lsn", Text, nullable=False),
    Column("last_commit_time", INSTANT),
    Column("log_record_count", BigInteger, nullable=False),
    Column("schema_change_count", Integer, nullable=False),
    Column("command_count", BigInteger, nullable=False),
    Column("first_begin_cdc_lsn", Text, nullable=False),
    Column("last_commit_cdc_lsn", Text, nullable=False),
    Column("last_commit_cdc_time", INSTANT),
    Column("latency", Integer, nullable=False),
    Column("empty_scan_count", BigInteger, nullable=False),
    Column("failed_sessions_count", Integer, nullable=False),
    # When the row was written last: none of the view's columns.
    Column("written_at", INSTANT),
    Index("scan_sessions_start_time", "database_id", "start_time"),
    schema="cdc",
)

scan_errors = Table(
    "scan_errors",
    metadata,
    Column("entry_id", BigInteger, primary_key=True, autoincrement=True),
    _database_key(primary_key=False),
    Column("engine_start", INSTANT),
    Column("session_id", Integer, nullable=False),
    Column("phase_number", Integer, nullable=False),
    Column("entry_time", INSTANT, nullable=False),
    Column("error_number", Integer, nullable=False),
    Column("error_severity", Integer, nullable=False),
    Column("error_state", Integer, nullable=False),
    Column("error_message", Text, nullable=False),
    Column("start_lsn", Text, nullable=False),
    Column("begin_lsn", Text, nullable=False),
    Column("sequence_value", Text, nullable=False),
    Index("scan_errors_database", "database_id", "entry_id"),
    schema="cdc",
)

collection_sets = Table(
    "syscollector_collection_sets",
    metadata,
    Column("collection_set_id", Integer, primary_key=True, autoincrement=True),
    Column("collection_set_uid", Uuid, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("is_system", Boolean, nullable=False),
    Column("is_running", Boolean, nullable=False),
    Column("collection_mode", SmallInteger, nullable=False),
    Column("schedule", Text),
    Column("days_until_expiration", Integer, nullable=False),
    Column("logging_level", SmallInteger, nullable=False),
    Column("wanted", Boolean, nullable=False, server_default="false"),
    Column("next_run", INSTANT),
    Column("dropped", INSTANT),
    Column("last_upkeep", INSTANT),
    Column("uncompacted", Integer, nullable=False, server_default="0"),
    schema="dbo",
)
Index(
    "syscollector_collection_sets_name",
    func.lower(collection_sets.c.name),
    unique=True,
    postgresql_where=collection_sets.c.dropped.is_(None),
)


def _set_key() -> Column[int]:
    target = ForeignKey("dbo.syscollector_collection_sets.collection_set_id", ondelete="CASCADE")
    return Column("collection_set_id", Integer, target, nullable=False)


collection_items = Table(
    "syscollector_collection_items",
    metadata,
    Column("collection_item_id", Integer, primary_key=True, autoincrement=True),
    _set_key(),
    Column("collection_item_uid", Uuid, nullable=False, unique=True),
    Column("collector_type_uid", Uuid, nullable=False),
    Column("name", Text, nullable=False),
    Column("frequency", Integer, nullable=False),
    Column("parameters", Text, nullable=False),
    schema="dbo",
)

collection_runs = Table(
    "syscollector_runs",
    metadata,
    Column("snapshot_id", BigInteger, primary_key=True, autoincrement=True),
    _set_key(),
    Column("snapshot_time", INSTANT, nullable=False),
    Column("end_time", INSTANT),
    Column("outcome", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("interval_seconds", Integer),
    Column("agent_start", INSTANT, nullable=False),
    Index("syscollector_runs_set", "collection_set_id", "snapshot_id"),
    Index("syscollector_runs_time", "snapshot_time"),
    Index(
        "syscollector_runs_outcome",
        "snapshot_id",
        postgresql_where=text("outcome <> 'succeeded'"),
    ),
    schema="dbo",
)

collection_positions = Table(
    "syscollector_positions",
    metadata,
    Column(
        "collection_item_id",
        Integer,
        ForeignKey("dbo.syscollector_collection_items.collection_item_id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("view_name", Text, primary_key=True),
    _database_key(),
    Column("engine_start", INSTANT),
    Column("last_id", BigInteger, nullable=False),
    schema="dbo",
)

users = Table(
    "highwater_users",
    metadata,
    Column("name", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("principal", Text),
    Column("changed_at", INSTANT, nullable=False),
    Column("changed_by", Text, nullable=False),
    schema="dbo",
)

dashboard_settings = Table(
    "highwater_dashboard",
    metadata,
    Column("settings_id", Integer, primary_key=True, autoincrement=False),
    Column("exports", Boolean, nullable=False),
    Column("zone", Text, nullable=False),
    schema="dbo",
)

activity = Table(
    "highwater_activity",
    metadata,
    Column("activity_id", BigInteger, primary_key=True, autoincrement=True),
    Column("started", INSTANT, nullable=False),
    Column("ended", INSTANT),
    Column("user_name", Text, nullable=False),
    Column("role", Text),
    Column("database", Text),
    Column("command", Text, nullable=False),
    Column("statement", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("error_number", Integer),
    Column("error_text", Text),
    schema="dbo",
)
