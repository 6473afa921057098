"""Capture jobs with a step of one's own, and runs with parameters, retries and output."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    ALTER TABLE dbo.cdc_jobs
        ADD COLUMN subsystem text,
        ADD COLUMN command text,
        ADD COLUMN running_subsystem text,
        ADD COLUMN running_command text
    """,
    """
    ALTER TABLE dbo.job_history
        ADD COLUMN retries integer NOT NULL DEFAULT 0,
        ADD COLUMN parameters jsonb NOT NULL DEFAULT '{}',
        ADD COLUMN output text NOT NULL DEFAULT ''
    """,
)


def upgrade() -> None:
    """Jobs stay as they are; of older runs nobody knows the parameters."""
    for statement in STATEMENTS:
        op.execute(statement)
