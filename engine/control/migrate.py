"""Brings a control database to the schema of this version."""

from __future__ import annotations

from pathlib import Path

from alembic.command import upgrade
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from engine.errors import HomeTooNew

_ADVISORY_KEY = 0x4857_6D69_6772  # "HWmigr"


def migrate(engine: Engine) -> None:
    """Runs pending revisions in one transaction; of several processes at once, one does it, the others wait.

    Raises HomeTooNew when the schema's revision is none that this version knows.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    scripts = ScriptDirectory.from_config(config)
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_KEY})
        revision = _revision(connection)
        if revision == scripts.get_current_head():
            return
        if revision is not None and revision not in {script.revision for script in scripts.walk_revisions()}:
            raise HomeTooNew("The control database", f"schema revision {revision}")
        connection.execute(text("CREATE SCHEMA IF NOT EXISTS cdc"))
        connection.execute(text("CREATE SCHEMA IF NOT EXISTS dbo"))
        config.attributes["connection"] = connection
        upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    """The revision recorded in the database; None for a new one."""
    if connection.scalar(text("SELECT to_regclass('dbo.schema_version')")) is None:
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM dbo.schema_version"))
    return revision
