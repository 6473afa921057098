"""The alert hook, and the alerts that were raised."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE dbo.alert_hook (
        hook_id integer PRIMARY KEY,
        command text,
        webhook text,
        lag_seconds integer NOT NULL,
        stall_seconds integer NOT NULL,
        slot_bytes bigint NOT NULL,
        timeout_seconds integer NOT NULL)
    """,
    """
    CREATE TABLE dbo.alerts (
        alert_id bigserial PRIMARY KEY,
        database_id integer NOT NULL REFERENCES dbo.databases (database_id) ON DELETE CASCADE,
        kind text NOT NULL,
        text text NOT NULL,
        raised_at timestamptz NOT NULL,
        cleared_at timestamptz,
        claimed_at timestamptz,
        raised_told text,
        cleared_told text)
    """,
    "CREATE UNIQUE INDEX alerts_standing ON dbo.alerts (database_id, kind) WHERE cleared_at IS NULL",
)


def upgrade() -> None:
    """Nobody is told before a hook is set."""
    for statement in STATEMENTS:
        op.execute(statement)
