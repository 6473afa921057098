"""What a cleanup came to, table by table."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Earlier runs have none."""
    op.execute("ALTER TABLE dbo.job_history ADD COLUMN tables jsonb NOT NULL DEFAULT '[]'")
