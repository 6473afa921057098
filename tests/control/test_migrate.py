"""Migrations: the schema they make, races, and schemas of newer versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.command import upgrade
from alembic.config import Config
from alembic.migration import MigrationContext

import engine.control
from engine.control import ControlDatabase
from engine.control.schema import metadata
from engine.errors import ControlUnreachable, HomeTooNew
from engine.model.job import CLEANUP_SCHEDULE, CleanupParameters, JobState

MIGRATIONS = Path(engine.control.__file__).parent / "migrations"

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


def test_a_database_with_tracked_tables_gets_the_cleanup_job_of_today(control_dsn):
    control = ControlDatabase.open(control_dsn)
    with control._connections.begin() as connection:
        for schema in ("cdc", "dbo"):
            connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        upgrade(config, "0004")
        for name in ("hr", "idle"):
            connection.exec_driver_sql(
                "INSERT INTO dbo.databases (name, kind, dsn, is_cdc_enabled, create_date)"
                f" VALUES ('{name}', 'postgresql', '', true, now())"
            )
        connection.exec_driver_sql(
            "INSERT INTO cdc.change_tables SELECT 1, 0, 1, 'i', NULL, NULL, false, false, NULL, NULL, NULL,"
            " now(), true, database_id, 's', 't' FROM dbo.databases WHERE name = 'hr'"
        )
        connection.exec_driver_sql(
            "INSERT INTO dbo.leases SELECT database_id, 'me', 7, 10, now() FROM dbo.databases"
        )
    control.migrate()
    [job] = control.jobs.list()
    assert (job.name, job.configured, job.schedule) == (
        "cdc.hr_cleanup",
        CleanupParameters(),
        CLEANUP_SCHEDULE,
    )
    assert (job.wanted, job.state, job.next_run) == (False, JobState.STOPPED, None)
    assert [lease.holder for lease in control.leases.list()] == ["me", "me"]
    control.close()


def test_a_newer_schema_is_refused(control, control_dsn):
    with psycopg.connect(control_dsn) as connection:
        connection.execute("UPDATE dbo.schema_version SET version_num = '9999'")
    with pytest.raises(HomeTooNew, match="9999"):
        control.migrate()


def test_a_control_database_that_is_away_is_named_as_such():
    with pytest.raises(ControlUnreachable, match="highwater start"):
        ControlDatabase.open("postgresql://nobody@localhost:1/none").sources.list()
