"""Alerts that are about no database: the agent, the data collector."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE dbo.alerts ALTER COLUMN database_id DROP NOT NULL",
    """
    CREATE UNIQUE INDEX alerts_standing_of_home ON dbo.alerts (kind)
        WHERE cleared_at IS NULL AND database_id IS NULL
    """,
)


def upgrade() -> None:
    """Alerts that were raised before keep their database."""
    for statement in STATEMENTS:
        op.execute(statement)
