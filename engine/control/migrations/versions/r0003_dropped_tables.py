"""cdc.dropped_tables names the database: what is to be cleared away outlives its registration."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE cdc.dropped_tables ADD COLUMN database text",
    """
    UPDATE cdc.dropped_tables t SET database = d.name
    FROM dbo.databases d WHERE d.database_id = t.database_id
    """,
    "ALTER TABLE cdc.dropped_tables ALTER COLUMN database SET NOT NULL, DROP COLUMN database_id",
)


def upgrade() -> None:
    """The change tables of a database that is disconnected are still listed, by its name."""
    for statement in STATEMENTS:
        op.execute(statement)
