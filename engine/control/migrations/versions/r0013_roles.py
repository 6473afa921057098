"""Users with their roles, what holds for the dashboard, and who did what."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE dbo.highwater_users (
        name text PRIMARY KEY,
        role text NOT NULL,
        principal text,
        changed_at timestamptz NOT NULL,
        changed_by text NOT NULL)
    """,
    """
    CREATE TABLE dbo.highwater_dashboard (
        settings_id integer PRIMARY KEY,
        exports boolean NOT NULL,
        zone text NOT NULL)
    """,
    """
    CREATE TABLE dbo.highwater_activity (
        activity_id bigserial PRIMARY KEY,
        started timestamptz NOT NULL,
        ended timestamptz,
        user_name text NOT NULL,
        role text,
        database text,
        command text NOT NULL,
        statement text NOT NULL,
        outcome text NOT NULL,
        error_number integer,
        error_text text)
    """,
)


def upgrade() -> None:
    """Nobody who logs in has a role before an admin gives one."""
    for statement in STATEMENTS:
        op.execute(statement)
