"""The first schema: sources, jobs, leases, capture instances, watermarks, sessions and errors."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

DATABASE = "integer NOT NULL REFERENCES dbo.databases ON DELETE CASCADE"

STATEMENTS = (
    """
    CREATE TABLE dbo.databases (
        database_id serial PRIMARY KEY,
        name text NOT NULL UNIQUE,
        kind text NOT NULL,
        dsn text NOT NULL,
        is_cdc_enabled boolean NOT NULL,
        create_date timestamptz NOT NULL)
    """,
    f"""
    CREATE TABLE dbo.cdc_jobs (
        database_id {DATABASE},
        job_type text NOT NULL,
        job_id uuid NOT NULL UNIQUE,
        maxtrans integer,
        maxscans integer,
        continuous boolean,
        pollinginterval bigint,
        retention bigint,
        threshold bigint,
        wanted boolean NOT NULL,
        state text NOT NULL,
        since timestamptz NOT NULL,
        message text NOT NULL,
        running_maxtrans integer,
        running_maxscans integer,
        running_continuous boolean,
        running_pollinginterval bigint,
        PRIMARY KEY (database_id, job_type))
    """,
    f"""
    CREATE TABLE dbo.leases (
        database_id {DATABASE} PRIMARY KEY,
        holder text NOT NULL,
        token bigint NOT NULL,
        seconds integer NOT NULL,
        expires timestamptz NOT NULL)
    """,
    "CREATE SEQUENCE cdc.object_ids START 1001",
    f"""
    CREATE TABLE cdc.change_tables (
        object_id integer PRIMARY KEY,
        version integer NOT NULL,
        source_object_id bigint NOT NULL,
        capture_instance text NOT NULL,
        start_lsn bytea CHECK (length(start_lsn) = 10),
        end_lsn bytea,
        supports_net_changes boolean NOT NULL,
        has_drop_pending boolean NOT NULL,
        role_name text,
        index_name text,
        filegroup_name text,
        create_date timestamptz NOT NULL,
        partition_switch boolean NOT NULL,
        database_id {DATABASE},
        source_schema text NOT NULL,
        source_table text NOT NULL,
        UNIQUE (database_id, capture_instance))
    """,
    """
    CREATE TABLE cdc.captured_columns (
        object_id integer NOT NULL REFERENCES cdc.change_tables ON DELETE CASCADE,
        column_name text NOT NULL,
        column_id integer NOT NULL,
        column_type text NOT NULL,
        column_ordinal integer NOT NULL,
        is_computed boolean NOT NULL,
        lake_type text NOT NULL,
        PRIMARY KEY (object_id, column_ordinal))
    """,
    """
    CREATE TABLE cdc.index_columns (
        object_id integer NOT NULL REFERENCES cdc.change_tables ON DELETE CASCADE,
        column_name text NOT NULL,
        index_ordinal smallint NOT NULL,
        column_id integer NOT NULL,
        PRIMARY KEY (object_id, index_ordinal))
    """,
    f"""
    CREATE TABLE cdc.dropped_tables (
        object_id integer PRIMARY KEY,
        database_id {DATABASE},
        capture_instance text,
        drop_date timestamptz NOT NULL)
    """,
    f"""
    CREATE TABLE cdc.watermarks (
        database_id {DATABASE} PRIMARY KEY,
        high bytea CHECK (length(high) = 10),
        checkpoint bytea CHECK (length(checkpoint) = 10),
        scanned bytea CHECK (length(scanned) = 10),
        last_commit_time timestamptz,
        published_at timestamptz,
        system_identifier text,
        timeline integer,
        slot text)
    """,
    f"""
    CREATE TABLE cdc.scan_runs (
        database_id {DATABASE} PRIMARY KEY,
        engine_start timestamptz NOT NULL,
        last_session_id integer NOT NULL)
    """,
    f"""
    CREATE TABLE cdc.scan_sessions (
        database_id {DATABASE},
        engine_start timestamptz NOT NULL,
        session_id integer NOT NULL,
        start_time timestamptz NOT NULL,
        end_time timestamptz,
        duration bigint NOT NULL,
        scan_phase text NOT NULL,
        error_count integer NOT NULL,
        start_lsn text NOT NULL,
        current_lsn text NOT NULL,
        end_lsn text,
        tran_count bigint NOT NULL,
        last_commit_lsn text NOT NULL,
        last_commit_time timestamptz,
        log_record_count bigint NOT NULL,
        schema_change_count integer NOT NULL,
        command_count bigint NOT NULL,
        first_begin_cdc_lsn text NOT NULL,
        last_commit_cdc_lsn text NOT NULL,
        last_commit_cdc_time timestamptz,
        latency integer NOT NULL,
        empty_scan_count bigint NOT NULL,
        failed_sessions_count integer NOT NULL,
        PRIMARY KEY (database_id, engine_start, session_id))
    """,
    "CREATE INDEX scan_sessions_start_time ON cdc.scan_sessions (database_id, start_time)",
    f"""
    CREATE TABLE cdc.scan_errors (
        entry_id bigserial PRIMARY KEY,
        database_id {DATABASE},
        engine_start timestamptz,
        session_id integer NOT NULL,
        phase_number integer NOT NULL,
        entry_time timestamptz NOT NULL,
        error_number integer NOT NULL,
        error_severity integer NOT NULL,
        error_state integer NOT NULL,
        error_message text NOT NULL,
        start_lsn text NOT NULL,
        begin_lsn text NOT NULL,
        sequence_value text NOT NULL)
    """,
    "CREATE INDEX scan_errors_database ON cdc.scan_errors (database_id, entry_id)",
)


def upgrade() -> None:
    """Makes every table; schemas ``cdc`` and ``dbo`` are there already."""
    for statement in STATEMENTS:
        op.execute(statement)
