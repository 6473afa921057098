"""The shape of a source table before and after each row of cdc.ddl_history."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rows of before have none: nobody kept it."""
    op.execute("ALTER TABLE cdc.ddl_history ADD COLUMN columns_before jsonb, ADD COLUMN columns_after jsonb")
