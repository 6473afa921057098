"""Clients that cleanup waits for, and compactions."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Two tables, empty: no client is registered, no compaction asked for."""
    op.execute(
        """
        CREATE TABLE cdc.clients (
            object_id integer NOT NULL REFERENCES cdc.change_tables ON DELETE CASCADE,
            client_name text NOT NULL,
            acknowledged_lsn bytea,
            acknowledged_at timestamptz NOT NULL,
            registered_at timestamptz NOT NULL,
            expires_seconds bigint,
            earlier_lsn bytea,
            earlier_at timestamptz NOT NULL,
            held_lsn bytea,
            held_since timestamptz,
            PRIMARY KEY (object_id, client_name))
        """
    )
    op.execute(
        """
        CREATE TABLE dbo.compactions (
            database_id integer PRIMARY KEY REFERENCES dbo.databases ON DELETE CASCADE,
            wanted boolean NOT NULL,
            start_time timestamptz,
            end_time timestamptz,
            outcome text,
            message text NOT NULL)
        """
    )
