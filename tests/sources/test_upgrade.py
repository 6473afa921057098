"""What an earlier version made in a source is brought up to this one, and no change is lost by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from engine.errors import ObjectsNotCreated
from engine.model.capture_instance import CaptureInstance
from engine.sources.base import TableAltered
from engine.sources.postgres.admin import PostgresAdmin
from engine.sources.postgres.names import VERSION, slot_name
from tests.sources.conftest import Source
from tests.sources.earlier import VERSIONS, make_earlier

DIGEST = "66ca3c330434b8b6"
FUNCTIONS = """
SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid), p.proacl::text
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'cdc' ORDER BY 1
"""
COLUMNS = """
SELECT c.relname, a.attname, a.atttypid::regtype::text, a.attnotnull
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE n.nspname = 'cdc' AND a.attnum > 0 ORDER BY c.relname, a.attnum
"""
TRIGGERS = "SELECT evtname, evtevent, evtenabled, evttags FROM pg_event_trigger ORDER BY 1"


@pytest.fixture(params=VERSIONS)
def earlier(request: pytest.FixtureRequest, source: Source) -> Source:
    """A database that an earlier version enabled, with a tracked table ``t``."""
    source.sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    source.track("t")
    make_earlier(source.connection, request.param)
    return source


def keyed(source: Source) -> CaptureInstance:
    """The instance of ``t`` with its rows identified by the primary key."""
    return replace(source.instance("t"), index_name="t_pkey")


def test_who_changes_the_script_raises_its_version() -> None:
    script = files("engine.sources.postgres").joinpath("enable.sql").read_text()
    assert f"AS 'SELECT {VERSION}'" in script
    assert sha256(script.encode()).hexdigest()[:16] == DIGEST, "raise VERSION, and put the digest here"


def test_an_upgraded_database_is_as_one_that_is_enabled_now(
    earlier: Source, new_source: Callable[[], Source]
) -> None:
    assert [one.subject for one in earlier.admin.check()][:1] == ["earlier version"]
    assert earlier.admin.upgrade([earlier.instance("t")])
    assert not earlier.admin.upgrade([earlier.instance("t")])
    assert earlier.admin.check() == []
    fresh = new_source()
    for query in (FUNCTIONS, COLUMNS, TRIGGERS):
        assert earlier.sql(query) == fresh.sql(query)


def test_no_change_is_lost_over_an_upgrade(earlier: Source) -> None:
    earlier.sql("INSERT INTO t VALUES (1, 'before')")
    with psycopg.connect(earlier.dsn) as busy:
        busy.execute("ALTER TABLE t ADD a int")
        busy.execute("INSERT INTO t VALUES (2, 'begun before', 2)")
        assert earlier.admin.upgrade([earlier.instance("t")])
        busy.execute("ALTER TABLE t ADD b int")
        busy.execute("INSERT INTO t VALUES (3, 'ended after', 3, 3)")
    earlier.sql("ALTER TABLE t DROP a")
    earlier.sql("INSERT INTO t VALUES (4, 'after', 4)")
    pieces = earlier.pieces()
    told = [event.ddl for piece in pieces for event in piece.events if isinstance(event, TableAltered)]
    # A session that has looked for event triggers meets the first ones with its next transaction.
    assert told[-1] == "ALTER TABLE t DROP a"
    assert len(told) in (1, 3)
    ids = [
        value
        for piece in pieces
        for changes in piece.changes
        for value in changes.images.column(0).to_pylist()
    ]
    assert sorted(ids) == [1, 2, 3, 4]


def test_what_an_earlier_version_did_not_write_down_is_guarded(earlier: Source) -> None:
    earlier.sql("CREATE TABLE sale (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    fixed = replace(earlier.instance("sale", 2), partition_switch=False)
    assert earlier.admin.upgrade([keyed(earlier)])
    earlier.admin.enable_table(fixed)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="ATTACH PARTITION"):
        earlier.sql("CREATE TABLE part (id int PRIMARY KEY); ALTER TABLE sale ATTACH PARTITION part DEFAULT")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="t_pkey"):
        earlier.sql("ALTER TABLE t DROP CONSTRAINT t_pkey")
    earlier.admin.disable_table(keyed(earlier), last_of_table=True)
    earlier.sql("ALTER TABLE t DROP CONSTRAINT t_pkey")


def test_an_index_that_is_gone_already_keeps_no_ddl_from_its_table(earlier: Source) -> None:
    known = keyed(earlier)
    for trigger in ("highwater_ddl", "highwater_drop"):
        earlier.sql(f"DROP EVENT TRIGGER IF EXISTS {trigger}")
    earlier.sql("ALTER TABLE t DROP CONSTRAINT t_pkey")
    if earlier.sql("SELECT to_regclass('cdc.tracked_indexes')") != [(None,)]:
        earlier.sql("DELETE FROM cdc.tracked_indexes")
    assert earlier.admin.upgrade([known])
    earlier.sql("ALTER TABLE t ADD more int")


def test_a_role_that_may_not_is_told_what_to_grant(source: Source) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    instance = source.track("t")
    make_earlier(source.connection, "3_partitions")
    source.sql("DROP ROLE IF EXISTS reader, keeper")
    source.sql("CREATE ROLE keeper; CREATE ROLE reader LOGIN REPLICATION PASSWORD 'x'")
    source.sql(f"GRANT CREATE ON DATABASE {source.connection.info.dbname} TO keeper")
    source.sql("ALTER SCHEMA cdc OWNER TO keeper")
    for (table,) in source.sql(
        "SELECT relname FROM pg_class WHERE relnamespace = 'cdc'::regnamespace AND relkind = 'r'"
    ):
        source.sql(f"ALTER TABLE cdc.{table} OWNER TO keeper")
    for (function,) in source.sql(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'cdc'::regnamespace"
    ):
        source.sql(f"ALTER FUNCTION {function} OWNER TO keeper")
    weak = PostgresAdmin(
        make_conninfo(source.dsn, user="reader", password="x"), slot_name(source.connection.info.dbname), "db"
    )
    with pytest.raises(ObjectsNotCreated, match="permission denied"):
        weak.upgrade([instance])
    for problems in (weak.check(), weak.tracking_problems([instance])):
        [found] = [one for one in problems if one.subject == "earlier version"]
        assert 'they are "keeper"\'s, and role "reader" may not' in found.problem
    grant, _ = found.fix.split("; then: ")
    source.sql(grant)
    assert weak.upgrade([instance])
    [left] = [one for one in weak.tracking_problems([instance]) if one.subject == "event triggers"]
    source.sql(left.fix.removeprefix("As a superuser: "))
    assert [one for one in weak.tracking_problems([instance]) if one.subject != "replica identity"] == []
    owners = source.sql(
        "SELECT DISTINCT proowner::regrole::text FROM pg_proc WHERE pronamespace = 'cdc'::regnamespace"
    )
    assert owners == [("keeper",)]
    source.sql("DROP OWNED BY keeper CASCADE")
    source.sql("DROP ROLE reader, keeper")
