"""What enabling makes at the source, and what it leaves behind: nothing."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from engine.errors import (
    CdcSchemaExists,
    ObjectsNotCreated,
    RoleNotCreated,
    SourceUnreachable,
    TableMissing,
    TableNotMarked,
)
from engine.sources.base import InstanceDisabled, InstanceEnabled, TableDropped
from engine.sources.postgres.admin import PostgresAdmin
from engine.sources.postgres.names import slot_name
from tests.sources.conftest import Source

IDENTITY = "SELECT relreplident::text FROM pg_class WHERE oid = 'public.t'::regclass"
SLOTS = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"


@pytest.fixture
def plain_dsn(new_database: Callable[[], str]) -> str:
    return new_database()


@pytest.fixture
def plain(plain_dsn: str) -> PostgresAdmin:
    """A database that is not enabled."""
    return PostgresAdmin(plain_dsn, "plain_slot", "plain")


def run(dsn: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def weak_dsn(plain_dsn: str) -> str:
    """The plain database for a role without any right."""
    run(plain_dsn, "DROP ROLE IF EXISTS weak")
    run(plain_dsn, "CREATE ROLE weak LOGIN PASSWORD 'x'")
    return make_conninfo(plain_dsn, user="weak", password="x")


def test_a_fit_database_has_no_fatal_problem(plain: PostgresAdmin) -> None:
    assert [problem for problem in plain.check() if problem.fatal] == []
    assert plain.server().startswith("PostgreSQL ")


def test_a_role_without_rights_is_told_what_to_grant(weak_dsn: str) -> None:
    fixes = [problem.fix for problem in PostgresAdmin(weak_dsn, "s", "plain").check() if problem.fatal]
    assert fixes[0] == 'ALTER ROLE "weak" REPLICATION;'
    assert fixes[1].startswith("GRANT CREATE ON DATABASE ")
    assert fixes[1].endswith(' TO "weak";')


def test_enabling_and_disabling_a_database_leaves_nothing(plain: PostgresAdmin, plain_dsn: str) -> None:
    assert not plain.is_enabled()
    plain.enable_database()
    assert plain.is_enabled()
    with pytest.raises(CdcSchemaExists):
        plain.enable_database()
    plain.disable_database([])
    assert not plain.is_enabled()
    assert run(plain_dsn, SLOTS) == [(0,)]
    assert run(plain_dsn, "SELECT 1 FROM pg_publication") == []
    assert run(plain_dsn, "SELECT 1 FROM pg_namespace WHERE nspname = 'cdc'") == []
    plain.disable_database([])


def test_a_foreign_schema_cdc_is_refused_and_stays(plain: PostgresAdmin, plain_dsn: str) -> None:
    run(plain_dsn, "CREATE SCHEMA cdc CREATE TABLE kept (id int)")
    with pytest.raises(CdcSchemaExists):
        plain.enable_database()
    plain.disable_database([])
    assert run(plain_dsn, "SELECT count(*) FROM cdc.kept") == [(0,)]


def test_a_refused_slot_takes_everything_back(plain_dsn: str) -> None:
    admin = PostgresAdmin(plain_dsn, "Not A Slot Name", "plain")
    with pytest.raises(ObjectsNotCreated, match="invalid character"):
        admin.enable_database()
    assert run(plain_dsn, "SELECT 1 FROM pg_namespace WHERE nspname = 'cdc'") == []
    assert run(plain_dsn, "SELECT 1 FROM pg_publication") == []


def test_a_role_without_rights_enables_nothing(weak_dsn: str, plain_dsn: str) -> None:
    with pytest.raises(ObjectsNotCreated, match="REPLICATION and CREATE"):
        PostgresAdmin(weak_dsn, "s", "plain").enable_database()
    assert run(plain_dsn, "SELECT 1 FROM pg_namespace WHERE nspname = 'cdc'") == []


def test_a_tracked_table_refuses_truncate(source: Source) -> None:
    source.sql("CREATE TABLE t (id int)")
    instance = source.track("t")
    with pytest.raises(
        psycopg.errors.ObjectNotInPrerequisiteState, match=r"Cannot truncate table 'public\.t'"
    ) as caught:
        source.sql("TRUNCATE t")
    assert "4711" in str(caught.value.diag.message_detail)
    source.sql("SET session_replication_role = replica")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        source.sql("TRUNCATE t")
    source.admin.disable_table(instance, last_of_table=True)
    source.sql("TRUNCATE t")


@pytest.mark.parametrize(
    ("before", "letter"),
    [("DEFAULT", "d"), ("NOTHING", "n"), ("FULL", "f"), ("USING INDEX t_other", "i")],
)
def test_disabling_restores_the_replica_identity(source: Source, before: str, letter: str) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY, other int NOT NULL)")
    source.sql("CREATE UNIQUE INDEX t_other ON t (other)")
    source.sql(f"ALTER TABLE t REPLICA IDENTITY {before}")
    first, second = source.track("t", 1), source.track("t", 2)
    assert source.sql(IDENTITY) == [("f",)]
    source.admin.disable_table(first, last_of_table=False)
    assert source.sql(IDENTITY) == [("f",)]
    source.admin.disable_table(second, last_of_table=True)
    assert source.sql(IDENTITY) == [(letter,)]
    assert source.sql("SELECT 1 FROM pg_publication_tables") == []
    assert source.sql("SELECT 1 FROM pg_trigger WHERE NOT tgisinternal") == []


def test_disabling_the_database_takes_back_every_table(source: Source) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    source.sql("CREATE TABLE gone (id int PRIMARY KEY)")
    instances = [source.track("t"), source.track("gone")]
    source.sql("DROP TABLE gone")
    source.log.close()
    source.admin.disable_database(instances)
    assert source.sql(IDENTITY) == [("d",)]
    assert source.sql("SELECT 1 FROM pg_trigger WHERE NOT tgisinternal") == []


def test_disabling_a_dropped_table_is_no_error(source: Source) -> None:
    source.sql("CREATE TABLE t (id int)")
    instance = source.track("t")
    source.sql("DROP TABLE t")
    source.admin.disable_table(instance, last_of_table=True)
    events = [type(event) for piece in source.pieces() for event in piece.events]
    assert events == [InstanceEnabled, TableDropped, InstanceDisabled]


def test_a_table_dropped_before_it_is_enabled_is_missing(source: Source) -> None:
    source.sql("CREATE TABLE t (id int)")
    instance = source.instance("t")
    source.sql("DROP TABLE t")
    with pytest.raises(TableMissing):
        source.admin.enable_table(instance)


def test_tables_that_inherit_are_left_alone(source: Source) -> None:
    source.sql("CREATE TABLE t (id int)")
    source.sql("CREATE TABLE heir () INHERITS (t)")
    instance = source.track("t")
    source.pieces()
    source.sql("INSERT INTO heir VALUES (1)")
    source.sql("UPDATE t SET id = id + 1")
    source.sql("TRUNCATE heir")
    assert source.pieces() == []
    source.admin.disable_table(instance, last_of_table=True)
    assert source.sql("SELECT 1 FROM pg_publication_tables") == []


def test_names_of_any_kind_are_quoted(source: Source) -> None:
    odd = 'Odd "name; DROP TABLE x; -- é'
    source.sql('CREATE TABLE public."Odd ""name; DROP TABLE x; -- é" ("a b" int, "%%" text)')
    instance = source.track(odd)
    source.sql('INSERT INTO public."Odd ""name; DROP TABLE x; -- é" VALUES (1, $$x$$)')
    pieces = source.pieces()
    assert pieces[0].events == (InstanceEnabled(0, 0, instance),)
    assert pieces[0].changes[0].relation.table == odd
    source.admin.disable_table(instance, last_of_table=True)


def test_a_busy_table_is_left_alone_and_its_user_named(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.sources.postgres.admin.LOCK_TIMEOUT", "50ms")
    source.sql("CREATE TABLE t (id int)")
    instance = source.instance("t")
    with source.connection.transaction():
        source.sql("INSERT INTO t VALUES (1)")
        with pytest.raises(TableNotMarked, match=r"in use for longer.*pid"):
            source.admin.enable_table(instance)
    assert source.sql(IDENTITY) == [("d",)]
    source.admin.enable_table(instance)


def test_a_table_of_somebody_else_says_what_to_grant(source: Source) -> None:
    source.sql("DROP ROLE IF EXISTS stranger")
    source.sql("CREATE ROLE stranger LOGIN PASSWORD 'x' REPLICATION")
    source.sql("CREATE TABLE t (id int)")
    source.sql("GRANT USAGE ON SCHEMA cdc TO stranger")
    source.sql("GRANT INSERT, SELECT ON cdc.tracked_tables TO stranger")
    stranger = PostgresAdmin(make_conninfo(source.dsn, user="stranger"), "s", "test")
    with pytest.raises(TableNotMarked, match='GRANT "postgres" TO "stranger"'):
        stranger.enable_table(source.instance("t"))
    source.sql("DROP OWNED BY stranger")


def test_a_role_is_created_once(plain: PostgresAdmin, plain_dsn: str, weak_dsn: str) -> None:
    run(plain_dsn, 'DROP ROLE IF EXISTS "cdc reader"')
    plain.create_role("cdc reader")
    plain.create_role("cdc reader")
    assert run(plain_dsn, "SELECT rolcanlogin FROM pg_roles WHERE rolname = 'cdc reader'") == [(False,)]
    with pytest.raises(RoleNotCreated):
        PostgresAdmin(weak_dsn, "s", "plain").create_role("another")
    run(plain_dsn, 'DROP ROLE "cdc reader"')


def test_tables_are_described_with_columns_and_indexes(plain: PostgresAdmin, plain_dsn: str) -> None:
    run(plain_dsn, "CREATE SCHEMA sales")
    run(
        plain_dsn,
        "CREATE TABLE sales.orders (id bigint, gone int, line smallint, amount numeric(12,2), "
        "twice numeric GENERATED ALWAYS AS (amount * 2) STORED, tags text[] NOT NULL, "
        "PRIMARY KEY (line, id))",
    )
    run(plain_dsn, "ALTER TABLE sales.orders DROP COLUMN gone")
    run(plain_dsn, "CREATE UNIQUE INDEX by_amount ON sales.orders (amount) WHERE amount > 0")
    run(plain_dsn, "CREATE UNLOGGED TABLE fleeting (id int)")
    run(plain_dsn, "CREATE TABLE parts (id int) PARTITION BY HASH (id)")
    run(plain_dsn, "CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0)")
    parts, orders = plain.tables()
    assert (parts.schema, parts.name, orders.schema, orders.name) == ("public", "parts", "sales", "orders")
    described = [
        (c.name, c.column_id, c.source_type, c.lake_type, c.nullable, c.is_computed) for c in orders.columns
    ]
    assert described == [
        ("id", 1, "bigint", "bigint", False, False),
        ("line", 3, "smallint", "smallint", False, False),
        ("amount", 4, "numeric(12,2)", "decimal(12,2)", True, False),
        ("twice", 5, "numeric", "string", True, True),
        ("tags", 6, "text[]", "array<string>", False, False),
    ]
    key, partial = orders.indexes
    assert (key.columns, key.is_primary_key, key.is_unique, key.is_valid) == (
        ("line", "id"),
        True,
        True,
        True,
    )
    assert (partial.name, partial.is_unique) == ("by_amount", False)
    assert plain.table("sales", "orders") == orders
    assert plain.table("sales", "nothing") is None


def test_a_table_with_a_virtual_generated_column_is_refused_and_stays_writable(source: Source) -> None:
    source.sql("CREATE TABLE v (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) VIRTUAL)")
    with pytest.raises(TableNotMarked, match="virtual generated columns: twice"):
        source.track("v")
    source.sql("INSERT INTO v VALUES (1)")
    source.sql("UPDATE v SET id = 2")
    source.sql("CREATE TABLE w (id int PRIMARY KEY)")
    source.track("w")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="'twice'"):
        source.sql("ALTER TABLE w ADD twice int GENERATED ALWAYS AS (id * 2) VIRTUAL")
    source.sql("INSERT INTO w VALUES (1)")
    source.sql("UPDATE w SET id = 2")


def test_a_key_that_is_checked_late_identifies_no_row(plain: PostgresAdmin, plain_dsn: str) -> None:
    run(plain_dsn, "CREATE TABLE late (id int PRIMARY KEY DEFERRABLE, code text UNIQUE DEFERRABLE)")
    table = plain.table("public", "late")
    assert table is not None
    assert table.primary_key is None
    assert [index.is_unique for index in table.indexes] == [False, False]


def test_an_unreachable_server_says_so() -> None:
    admin = PostgresAdmin("postgresql://nobody@localhost:1/none?connect_timeout=1", "s", "shop")
    with pytest.raises(SourceUnreachable, match="'shop' cannot be reached"):
        admin.server()


def test_slot_names_are_the_servers_own_and_differ() -> None:
    assert slot_name("shop") == "highwater_shop"
    names = {slot_name(name) for name in ("Shop", "shop", "shöp", "sh-p", "x" * 70, "x" * 71)}
    assert len(names) == 6
    assert all(len(name) <= 63 and name.isascii() and name.islower() for name in names)


def test_a_tracked_table_with_a_generated_column_can_still_be_written(source: Source) -> None:
    source.sql("CREATE TABLE g (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED)")
    source.track("g")
    source.sql("INSERT INTO g VALUES (1)")
    source.sql("UPDATE g SET id = 2")
    source.sql("DELETE FROM g")


def test_an_index_over_a_generated_column_identifies_no_row(plain: PostgresAdmin, plain_dsn: str) -> None:
    """Such columns are captured as NULL."""
    run(plain_dsn, "CREATE TABLE made (a int NOT NULL, g int GENERATED ALWAYS AS (a * 2) STORED PRIMARY KEY)")
    run(plain_dsn, "CREATE UNIQUE INDEX made_a ON made (a) INCLUDE (g)")
    table = plain.table("public", "made")
    assert table is not None
    assert table.primary_key is None
    assert {index.name: index.is_unique for index in table.indexes} == {"made_a": True, "made_pkey": False}
