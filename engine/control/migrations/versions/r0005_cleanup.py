"""Cleanup jobs: their schedule and history, a lease of their own, and one for each database that has none."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    ALTER TABLE dbo.cdc_jobs
        ADD COLUMN running_retention bigint,
        ADD COLUMN running_threshold bigint,
        ADD COLUMN schedule text,
        ADD COLUMN next_run timestamptz
    """,
    """
    CREATE TABLE dbo.job_history (
        run_id bigserial PRIMARY KEY,
        job_id uuid NOT NULL REFERENCES dbo.cdc_jobs (job_id) ON DELETE CASCADE,
        start_time timestamptz NOT NULL,
        end_time timestamptz,
        outcome text NOT NULL,
        message text NOT NULL,
        deleted_rows bigint NOT NULL)
    """,
    "CREATE INDEX job_history_job ON dbo.job_history (job_id, run_id)",
    "ALTER TABLE dbo.leases ADD COLUMN job_type text NOT NULL DEFAULT 'capture'",
    "ALTER TABLE dbo.leases DROP CONSTRAINT leases_pkey, ADD PRIMARY KEY (database_id, job_type)",
    """
    INSERT INTO dbo.cdc_jobs
        (database_id, job_type, job_id, retention, threshold, schedule, wanted, state, since, message)
    SELECT database_id, 'cleanup', gen_random_uuid(), 4320, 5000, '0 2 * * *', false, 'stopped', now(),
        'It has not run yet.'
    FROM dbo.databases
    WHERE EXISTS (SELECT FROM cdc.change_tables WHERE change_tables.database_id = databases.database_id)
    ON CONFLICT DO NOTHING
    """,
)


def upgrade() -> None:
    """Databases with tracked tables get the job that enabling their first table would have added today."""
    for statement in STATEMENTS:
        op.execute(statement)
