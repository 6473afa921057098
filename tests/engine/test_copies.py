"""Copies of an enabled database are cleaned and enabled by themselves; the original notices nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from engine.control import ControlDatabase
from engine.engine import Engine
from engine.errors import CdcSchemaExists, DatabaseNotEnabled, EnabledElsewhere, SameDatabase
from engine.lake.tables import Lake
from engine.runtime.embedded_postgres import _binaries
from engine.runtime.home import Home
from engine.sources.registry import Sources
from tests.engine.conftest import no_spark

OURS = """
SELECT 'publication ' || pubname FROM pg_publication
UNION ALL SELECT 'trigger ' || evtname FROM pg_event_trigger
UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname = 'cdc'
UNION ALL SELECT 'slot ' || slot_name FROM pg_replication_slots WHERE database = current_database()
UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgname LIKE 'highwater%'
"""
IDENTITIES = """
SELECT relname, relreplident::text FROM pg_class
WHERE relnamespace = 'hr'::regnamespace AND relkind = 'r' ORDER BY relname
"""
BEFORE = [("department", "d"), ("note", "n"), ("room", "i")]


def run(dsn: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def original(engine, enabled, source_dsn) -> str:
    """Tables of every replica identity, tracked."""
    run(
        source_dsn,
        "CREATE TABLE hr.room (n int NOT NULL CONSTRAINT room_n UNIQUE);"
        "ALTER TABLE hr.room REPLICA IDENTITY USING INDEX room_n;"
        "ALTER TABLE hr.note REPLICA IDENTITY NOTHING",
    )
    for table in ("department", "note", "room"):
        engine.enable_table(enabled, "hr", table, role_name=None)
    return enabled


@pytest.fixture
def copied(postgres, source_dsn) -> Iterator[Callable[[], str]]:
    """Makes a copy of the source database within its server; its DSN."""
    name = conninfo_to_dict(source_dsn)["dbname"]

    def make() -> str:
        run(postgres.dsn(), f"CREATE DATABASE {name}_copy TEMPLATE {name}")
        return make_conninfo(source_dsn, dbname=f"{name}_copy")

    yield make
    run(
        postgres.dsn(),
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        f" WHERE database = '{name}_copy'",
    )
    run(postgres.dsn(), f"DROP DATABASE IF EXISTS {name}_copy WITH (FORCE)")


def test_a_copy_is_cleaned_and_the_original_keeps_its_own(engine, original, source_dsn, copied):
    before = run(source_dsn, OURS), engine.slot(original).slot
    dsn = copied()
    notes = {note.subject: note for note in engine.connect("copy", dsn)}
    assert notes["copy"].fix == "highwater disable -d copy"
    with pytest.raises(CdcSchemaExists, match="highwater disable -d copy"):
        engine.enable_db("copy")
    engine.disable_db("copy")
    assert run(dsn, OURS) == []
    assert run(dsn, IDENTITIES) == BEFORE
    with pytest.raises(DatabaseNotEnabled):
        engine.disable_db("copy")
    assert (run(source_dsn, OURS), engine.slot(original).slot) == before
    assert len(engine.help_change_data_capture(original)) == 3


def test_original_and_copy_are_captured_side_by_side(engine, original, copied):
    engine.connect("copy", copied())
    engine.disable_db("copy")
    engine.enable_db("copy")
    engine.enable_table("copy", "hr", "department", role_name=None)
    slots = [engine.slot(name).slot for name in ("copy", original)]
    assert slots[0] == f"{slots[1]}_copy"
    engine.disable_db("copy")
    assert engine.slot(original).slot == slots[1]


def test_a_restored_dump_is_cleaned(engine, original, source_dsn, new_database, tmp_path):
    dsn, archive = new_database(), str(tmp_path / "dump")
    subprocess.run([_binaries() / "pg_dump", "-Fc", "-f", archive, source_dsn], check=True)
    # An index that cdc.tracked_tables names is not there yet when the rows are restored.
    subprocess.run([_binaries() / "pg_restore", "-d", dsn, archive], check=False, stderr=subprocess.DEVNULL)
    assert ("schema cdc",) in run(dsn, OURS)
    engine.connect("copy", dsn)
    engine.disable_db("copy")
    assert run(dsn, OURS) == []
    identities = run(dsn, IDENTITIES)
    assert [table for table, identity in identities if identity == "f"] == []
    run(dsn, "TRUNCATE hr.department")
    engine.enable_db("copy")


def test_a_copy_whose_tracking_was_dropped_in_part_is_cleaned(engine, original, copied):
    dsn = copied()
    for trigger in ("highwater_ddl", "highwater_drop"):
        run(dsn, f"ALTER EVENT TRIGGER {trigger} DISABLE")
    run(dsn, "DROP TABLE cdc.tracked_tables, cdc.own_ddl")
    for trigger in ("highwater_ddl", "highwater_drop"):
        run(dsn, f"ALTER EVENT TRIGGER {trigger} ENABLE")
    engine.connect("copy", dsn)
    engine.disable_db("copy")
    assert run(dsn, OURS) == []
    assert run(dsn, IDENTITIES) == [("department", "d"), ("note", "d"), ("room", "d")]


def test_what_another_publication_needs_stays(engine, original, copied):
    dsn = copied()
    run(dsn, "CREATE PUBLICATION other FOR TABLE hr.note")
    run(dsn, "DROP EVENT TRIGGER highwater_ddl; DROP EVENT TRIGGER highwater_drop; DROP SCHEMA cdc CASCADE")
    run(dsn, "CREATE SCHEMA cdc; COMMENT ON SCHEMA cdc IS 'Change data capture by Highwater.'")
    engine.connect("copy", dsn)
    engine.disable_db("copy")
    assert run(dsn, IDENTITIES) == [("department", "d"), ("note", "f"), ("room", "d")]


def test_a_database_under_two_names_is_not_disabled_by_the_one_that_is_not_enabled(
    engine, original, source_dsn
):
    engine.connect("again", source_dsn)
    with pytest.raises(SameDatabase, match="'again' is the same as 'hr'"):
        engine.disable_db("again")
    assert len(engine.help_change_data_capture(original)) == 3
    assert engine.slot(original) is not None


def test_what_was_dropped_by_hand_does_not_stand_in_the_way(engine, original, source_dsn):
    run(source_dsn, "DROP EVENT TRIGGER highwater_ddl; DROP EVENT TRIGGER highwater_drop")
    run(source_dsn, "DROP SCHEMA cdc CASCADE")
    engine.disable_db(original)
    assert run(source_dsn, OURS) == []
    assert "f" not in dict(run(source_dsn, IDENTITIES)).values()
    engine.enable_db(original)


@pytest.fixture
def elsewhere(new_database, tmp_path) -> Iterator[Engine]:
    """The engine of another home."""
    control = ControlDatabase.open(new_database())
    control.migrate()
    home = Home(tmp_path / "elsewhere")
    home.prepare()
    yield Engine(control, Sources(home.secret), Lake(str(tmp_path / "lake2")), no_spark, home)
    control.close()


def test_what_another_home_captures_goes_only_by_force(engine, original, elsewhere, source_dsn):
    notes = {note.subject: note.problem for note in elsewhere.connect("mine", source_dsn)}
    assert "by another home" in notes["home"]
    for call in (elsewhere.enable_db, elsewhere.disable_db):
        with pytest.raises(EnabledElsewhere, match="highwater disable -d mine --force"):
            call("mine")
    assert "by this home" in elsewhere.disconnect("mine")[0].problem
    assert engine.slot(original) is not None
    assert len(run(source_dsn, OURS)) > 5
    elsewhere.connect("mine", source_dsn)
    elsewhere.disable_db("mine", force=True)
    assert run(source_dsn, OURS) == []


def test_a_copy_of_what_another_home_captures_is_cleaned(original, elsewhere, copied):
    dsn = copied()
    elsewhere.connect("copy", dsn)
    elsewhere.disable_db("copy")
    assert run(dsn, OURS) == []
