"""DDL of tracked tables: their shape as the log tells it, and cdc.ddl_history."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE cdc.change_tables ADD COLUMN source_columns jsonb NOT NULL DEFAULT '[]'",
    """
    CREATE TABLE cdc.ddl_history (
        entry_id bigserial PRIMARY KEY,
        source_object_id bigint NOT NULL,
        object_id integer NOT NULL REFERENCES cdc.change_tables ON DELETE CASCADE,
        required_column_update boolean NOT NULL,
        ddl_command text NOT NULL,
        ddl_lsn bytea NOT NULL,
        ddl_time timestamptz NOT NULL)
    """,
    "CREATE INDEX ddl_history_object ON cdc.ddl_history (object_id, entry_id)",
)


def upgrade() -> None:
    """Instances enabled before have an empty shape: their columns are taken to be as they were captured."""
    for statement in STATEMENTS:
        op.execute(statement)
