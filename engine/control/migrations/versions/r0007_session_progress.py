"""When a session's row was written last: it tells a scan that takes long from one that stands still."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rows of earlier versions do not say."""
    op.execute("ALTER TABLE cdc.scan_sessions ADD COLUMN written_at timestamptz")
