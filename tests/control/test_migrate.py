"""Migrations: the schema they make, races, and schemas of newer versions."""

from __future__ import annotations

import subprocess
import sys

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from engine.control import ControlDatabase
from engine.control.schema import metadata
from engine.errors import ControlUnreachable, HomeTooNew

MIGRATE = (
    "import sys; from engine.control import ControlDatabase; ControlDatabase.open(sys.argv[1]).migrate()"
)


def test_migrations_make_the_tables_that_the_code_knows(control):
    options = {
        "include_schemas": True,
        "version_table": "schema_version",
        "version_table_schema": "dbo",
        "include_object": lambda thing, name, kind, *_: kind != "table" or thing.schema in ("cdc", "dbo"),
    }
    with control._connections.begin() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_migrating_again_changes_nothing(control):
    control.migrate()
    assert [source.name for source in control.sources.list()] == ["hr"]


def test_processes_that_migrate_at_once_do_not_collide(control_dsn):
    processes = [
        subprocess.Popen([sys.executable, "-c", MIGRATE, control_dsn], stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [(b"", 0)] * 3
    control = ControlDatabase.open(control_dsn)
    assert control.sources.list() == []
    control.close()


def test_a_newer_schema_is_refused(control, control_dsn):
    with psycopg.connect(control_dsn) as connection:
        connection.execute("UPDATE dbo.schema_version SET version_num = '9999'")
    with pytest.raises(HomeTooNew, match="9999"):
        control.migrate()


def test_a_control_database_that_is_away_is_named_as_such():
    with pytest.raises(ControlUnreachable, match="highwater start"):
        ControlDatabase.open("postgresql://nobody@localhost:1/none").sources.list()
