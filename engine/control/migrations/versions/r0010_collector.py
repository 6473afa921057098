"""The data collector: collection sets, their items, runs, and how far each item has come; a default set."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE dbo.syscollector_collection_sets (
        collection_set_id serial PRIMARY KEY,
        collection_set_uid uuid NOT NULL UNIQUE,
        name text NOT NULL,
        description text,
        is_system boolean NOT NULL,
        is_running boolean NOT NULL,
        collection_mode smallint NOT NULL,
        schedule text,
        days_until_expiration integer NOT NULL,
        logging_level smallint NOT NULL,
        wanted boolean NOT NULL DEFAULT false,
        next_run timestamptz,
        dropped timestamptz,
        last_upkeep timestamptz,
        uncompacted integer NOT NULL DEFAULT 0)
    """,
    """
    CREATE UNIQUE INDEX syscollector_collection_sets_name
        ON dbo.syscollector_collection_sets (lower(name)) WHERE dropped IS NULL
    """,
    """
    CREATE TABLE dbo.syscollector_collection_items (
        collection_item_id serial PRIMARY KEY,
        collection_set_id integer NOT NULL
            REFERENCES dbo.syscollector_collection_sets ON DELETE CASCADE,
        collection_item_uid uuid NOT NULL UNIQUE,
        collector_type_uid uuid NOT NULL,
        name text NOT NULL,
        frequency integer NOT NULL,
        parameters text NOT NULL)
    """,
    """
    CREATE TABLE dbo.syscollector_runs (
        snapshot_id bigserial PRIMARY KEY,
        collection_set_id integer NOT NULL
            REFERENCES dbo.syscollector_collection_sets ON DELETE CASCADE,
        snapshot_time timestamptz NOT NULL,
        end_time timestamptz,
        outcome text NOT NULL,
        message text NOT NULL,
        rows bigint NOT NULL,
        interval_seconds integer,
        agent_start timestamptz NOT NULL)
    """,
    "CREATE INDEX syscollector_runs_set ON dbo.syscollector_runs (collection_set_id, snapshot_id)",
    "CREATE INDEX syscollector_runs_time ON dbo.syscollector_runs (snapshot_time)",
    "CREATE INDEX syscollector_runs_outcome ON dbo.syscollector_runs (snapshot_id)"
    " WHERE outcome <> 'succeeded'",
    """
    CREATE TABLE dbo.syscollector_positions (
        collection_item_id integer NOT NULL
            REFERENCES dbo.syscollector_collection_items ON DELETE CASCADE,
        view_name text NOT NULL,
        database_id integer NOT NULL REFERENCES dbo.databases ON DELETE CASCADE,
        engine_start timestamptz,
        last_id bigint NOT NULL,
        PRIMARY KEY (collection_item_id, view_name, database_id))
    """,
    """
    INSERT INTO dbo.syscollector_collection_sets
        (collection_set_uid, name, description, is_system, is_running, collection_mode, schedule,
         days_until_expiration, logging_level)
    VALUES (gen_random_uuid(), 'Change Data Capture',
        'Scan sessions, errors, jobs, log held and table sizes of every enabled database.',
        true, true, 0, '*/5 * * * *', 30, 1)
    """,
    """
    INSERT INTO dbo.syscollector_collection_items
        (collection_set_id, collection_item_uid, collector_type_uid, name, frequency, parameters)
    SELECT collection_set_id, gen_random_uuid(), '302E93D1-3424-4BE7-AA8E-84813ECF2419', item, 300,
        format('<TSQLQueryCollector><Query><Value>SELECT * FROM %s</Value>'
            '<OutputTable>%s</OutputTable></Query></TSQLQueryCollector>', view, output_table)
    FROM dbo.syscollector_collection_sets, (VALUES
        (1, 'Scan sessions', 'sys.dm_cdc_log_scan_sessions', 'cdc_log_scan_data'),
        (2, 'Scan errors', 'sys.dm_cdc_errors', 'cdc_errors_data'),
        (3, 'Job state', 'highwater.cdc_job_state', 'cdc_job_data'),
        (4, 'Log held', 'highwater.cdc_slot', 'cdc_slot_data'),
        (5, 'Table sizes', 'highwater.cdc_table_sizes', 'cdc_table_size_data'))
        AS items (place, item, view, output_table)
    ORDER BY place
    """,
)


def upgrade() -> None:
    """The default set collects from the start, every five minutes, and keeps thirty days."""
    for statement in STATEMENTS:
        op.execute(statement)
