"""Calls of sys.sp_cdc_scan by others than the capture job."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A table of calls, empty but while somebody calls."""
    op.execute(
        """
        CREATE TABLE dbo.scan_calls (
            call_id serial PRIMARY KEY,
            database_id integer NOT NULL REFERENCES dbo.databases ON DELETE CASCADE,
            maxtrans integer NOT NULL,
            maxscans integer NOT NULL,
            continuous boolean NOT NULL,
            pollinginterval bigint NOT NULL,
            wanted boolean NOT NULL DEFAULT true,
            claimed boolean NOT NULL DEFAULT false,
            ended boolean NOT NULL DEFAULT false,
            error_number integer,
            error_severity integer,
            error_state integer,
            error_message text)
        """
    )
