"""Types that change while the log still speaks of their old form; generated, identity and TOASTed columns."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from engine.runtime.embedded_postgres import EmbeddedPostgres
from engine.sources.base import ReadLimit
from engine.sources.postgres.log import PostgresLog
from tests.sources.conftest import EVERYTHING, Source

BOTH_FORMS = pytest.mark.parametrize("binary", [True, False])
INSERT, OLD, NEW, DELETE = 2, 3, 4, 1


@BOTH_FORMS
def test_a_label_added_later_is_its_text(source: Source, binary: bool) -> None:
    source.sql("CREATE TYPE mood AS ENUM ('sad')")
    source.sql("CREATE TABLE t (id int PRIMARY KEY, m mood, ms mood[])")
    source.track("t")
    source.pieces()
    source.log._binary = binary
    source.sql("INSERT INTO t VALUES (1, 'sad', '{sad}')")
    source.rows()
    source.sql("ALTER TYPE mood ADD VALUE 'ecstatic' BEFORE 'sad'")
    source.sql("INSERT INTO t VALUES (2, 'ecstatic', '{sad,ecstatic}')")
    assert source.rows() == [(INSERT, 2, "ecstatic", ["sad", "ecstatic"])]


@BOTH_FORMS
def test_a_type_made_in_the_transaction_that_uses_it(source: Source, binary: bool) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY)")
    source.track("t")
    source.pieces()
    source.log._binary = binary
    with source.connection.transaction():
        source.sql("CREATE TYPE mood AS ENUM ('sad')")
        source.sql("ALTER TYPE mood ADD VALUE 'ecstatic'")
        source.sql("CREATE TYPE pair AS (a int, m mood)")
        source.sql("ALTER TABLE t ADD COLUMN m mood, ADD COLUMN p pair")
        source.sql("INSERT INTO t VALUES (1, 'ecstatic', (1, 'sad'))")
    assert source.rows() == [(INSERT, 1, "ecstatic", "(1,sad)")]


@BOTH_FORMS
def test_a_label_is_the_one_of_its_time(source: Source, binary: bool) -> None:
    source.sql("CREATE TYPE mood AS ENUM ('sad')")
    source.sql("CREATE TABLE t (id int PRIMARY KEY, m mood, ms mood[])")
    source.track("t")
    source.pieces()
    source.sql("INSERT INTO t VALUES (1, 'sad', '{sad,NULL}')")
    source.sql("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
    source.sql("UPDATE t SET id = 2")
    source.log._binary = binary
    assert source.rows() == [
        (INSERT, 1, "sad", ["sad", None]),
        (OLD, 1, "blue", ["blue", None]),
        (NEW, 2, "blue", ["blue", None]),
    ]


@BOTH_FORMS
def test_a_composite_has_the_fields_of_its_time(source: Source, binary: bool) -> None:
    source.sql("CREATE TYPE mood AS ENUM ('sad')")
    source.sql("CREATE DOMAIN price AS numeric(6,2)")
    source.sql("CREATE TYPE pair AS (a int, b text, m mood)")
    source.sql("CREATE TYPE nested AS (p pair, c text, ps pair[], at timestamptz, d price, n int[])")
    source.sql("CREATE TABLE t (id int PRIMARY KEY, p pair, n nested, ps pair[])")
    source.track("t")
    source.pieces()
    values = ("(1,x,)", '("(1,x,sad)","a ""b"" (c), \\\\d",,"2026-01-01 00:00:00+00",1.50,"{1,NULL}")')
    source.sql("INSERT INTO t VALUES (1, %s, %s, NULL)", *values)
    source.sql("INSERT INTO t VALUES (2, '(,\"\",sad)', NULL, '{\"(1,,)\",NULL}')")
    source.sql("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
    source.sql("INSERT INTO t VALUES (3, '(1,x,blue)', NULL, NULL)")
    source.sql("ALTER TYPE pair ADD ATTRIBUTE z int")
    source.sql("INSERT INTO t VALUES (4, '(1,x,blue,7)', '(\"(2,y,,8)\",,,,,)', NULL)")
    source.log._binary = binary
    with capture_logs() as logs:
        rows = source.rows()
    assert rows == [
        (INSERT, 1, *values, None),
        (INSERT, 2, '(,"",sad)', None, ["(1,,)", None]),
        (INSERT, 3, "(1,x,blue)", None, None),
        (INSERT, 4, "(1,x,blue,7)", '("(2,y,,8)",,,,,)', None),
    ]
    assert logs == []


def test_a_field_that_the_server_cannot_read_leaves_only_its_value_as_bytes(source: Source) -> None:
    source.sql("CREATE TYPE mood AS ENUM ('sad')")
    source.sql("CREATE TYPE pair AS (a int, b mood[])")
    source.sql("CREATE TABLE t (id int PRIMARY KEY, p pair)")
    source.track("t")
    source.pieces()
    source.sql("INSERT INTO t VALUES (1, '(1,{sad})')")
    source.sql("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
    source.sql("INSERT INTO t VALUES (2, '(1,{blue})'), (3, '(2,)')")
    with capture_logs() as logs:
        rows = source.rows()
    assert rows[1:] == [(INSERT, 2, "(1,{blue})"), (INSERT, 3, "(2,)")]
    assert rows[0][2].startswith("\\x00000002000000170000000400000001")
    (said,) = logs
    assert {"table": "public.t", "column": "p", "values": 1}.items() <= said.items()
    assert "hex digits" in said["event"]


@BOTH_FORMS
def test_a_check_of_a_domain_that_came_later_stops_nothing(source: Source, binary: bool) -> None:
    source.sql("CREATE DOMAIN small AS int")
    source.sql("CREATE TABLE t (id int PRIMARY KEY, v small, vs small[])")
    source.track("t")
    source.pieces()
    source.sql("INSERT INTO t VALUES (1, 1000, '{1000,NULL}')")
    source.sql("ALTER DOMAIN small ADD CHECK (VALUE < 10) NOT VALID")
    source.sql("DELETE FROM t")
    source.log._binary = binary
    assert source.rows() == [(INSERT, 1, 1000, [1000, None]), (DELETE, 1, 1000, [1000, None])]


def test_an_array_whose_type_is_gone_is_read_from_text(source: Source) -> None:
    source.sql("CREATE TYPE mood AS ENUM ('sad', 'so so')")
    source.sql("CREATE TABLE t (id int PRIMARY KEY, m mood[], rights aclitem)")
    source.track("t")
    source.pieces()
    source.sql("""INSERT INTO t VALUES (1, '{sad,"so so",NULL}', NULL)""")
    source.rows()
    source.sql("INSERT INTO t VALUES (2, '{sad,NULL}', '=r/postgres')")
    source.sql("ALTER TABLE t DROP COLUMN m")
    source.sql("DROP TYPE mood")
    assert source.rows() == [(INSERT, 2, ["sad", None], "=r/postgres")]


@BOTH_FORMS
def test_generated_and_identity_columns(source: Source, binary: bool) -> None:
    source.sql(
        "CREATE TABLE g (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int GENERATED BY DEFAULT AS"
        " IDENTITY (START -2147483648 MINVALUE -2147483648), v text, twice text GENERATED ALWAYS AS (v || v)"
        " STORED)"
    )
    source.track("g")
    source.pieces()
    source.log._binary = binary
    source.sql("INSERT INTO g (v) VALUES ('a'), (NULL)")
    source.sql("INSERT INTO g OVERRIDING SYSTEM VALUE VALUES (-5, 5, 'b')")
    source.sql("UPDATE g SET v = 'c' WHERE id = 1")
    source.sql("DELETE FROM g WHERE id = -5")
    assert source.rows() == [
        (INSERT, 1, -2147483648, "a", "aa"),
        (INSERT, 2, -2147483647, None, None),
        (INSERT, -5, 5, "b", "bb"),
        (OLD, 1, -2147483648, "a", "aa"),
        (NEW, 1, -2147483648, "c", "cc"),
        (DELETE, -5, 5, "b", "bb"),
    ]
    found = source.admin.table("public", "g")
    assert found is not None
    assert [column.is_computed for column in found.columns] == [False, False, False, True]


@BOTH_FORMS
def test_unchanged_toasted_values_of_every_kind_are_whole_in_all_images(source: Source, binary: bool) -> None:
    source.sql("CREATE TYPE pair AS (a int, b text)")
    source.sql(
        "CREATE TABLE d (id int PRIMARY KEY, n int, a int[], t text[], j jsonb, p pair, r numeric, x xid8[],"
        " b bytea, f double precision[])"
    )
    columns = "atjprxbf"
    for column in columns:
        source.sql(f"ALTER TABLE d ALTER {column} SET STORAGE EXTERNAL")
    source.track("d")
    source.pieces()
    source.log._binary = binary
    source.sql("""
        INSERT INTO d SELECT 1, 1, array_agg(i), array_agg('é' || i), jsonb_object_agg('k' || i, i),
            (1, repeat('"(,)\\', 9000))::pair, (repeat('9', 40000) || '.5')::numeric,
            array_agg(i::text::xid8), decode(repeat('00ff', 20000), 'hex'), array_agg(i / 7.0)
        FROM generate_series(1, 9000) i""")
    # Else nothing would be left out of the log.
    assert source.sql(f"SELECT {' AND '.join(f'pg_column_size({c}) > 2000' for c in columns)} FROM d") == [
        (True,)
    ]
    expected = _selected(source, columns)
    source.sql("UPDATE d SET n = 2")
    source.sql("UPDATE d SET a = a || 7, n = NULL")
    appended = _selected(source, columns)
    source.sql("UPDATE d SET j = NULL, b = ''")
    emptied = _selected(source, columns)
    source.sql("DELETE FROM d")
    assert source.rows() == [
        (INSERT, 1, 1, *expected),
        (OLD, 1, 1, *expected),
        (NEW, 1, 2, *expected),
        (OLD, 1, 2, *expected),
        (NEW, 1, None, *appended),
        (OLD, 1, None, *appended),
        (NEW, 1, None, *emptied),
        (DELETE, 1, None, *emptied),
    ]


def _selected(source: Source, columns: str) -> tuple[Any, ...]:
    casts = {"j": "j::text", "p": "p::text", "r": "r::text", "x": "x::text[]"}
    (row,) = source.sql(f"SELECT {', '.join(casts.get(column, column) for column in columns)} FROM d")
    return row


LARGE = 50_000_000


@BOTH_FORMS
def test_50_mb_of_bytea_come_whole_and_one_at_a_time(source: Source, binary: bool) -> None:
    source.sql("CREATE TABLE files (id int PRIMARY KEY, n int, data bytea)")
    source.sql("ALTER TABLE files ALTER data SET STORAGE EXTERNAL")
    source.track("files")
    source.pieces()
    source.sql(
        f"INSERT INTO files SELECT n, 0, decode(repeat(lpad(to_hex(n), 2, '0'), {LARGE}), 'hex')"
        " FROM generate_series(1, 3) n"
    )
    source.sql("UPDATE files SET n = 1 WHERE id = 2")
    source.log._binary = binary
    met: list[tuple[int, int, int, bool]] = []
    for piece in source.log.read(source.after, source.log.log_end(), ReadLimit(100, 1_000_000)):
        assert sum(changes.images.nbytes for changes in piece.changes) < 2.1 * LARGE
        for changes in piece.changes:
            for operation, image in zip(changes.operation.tolist(), changes.images.to_pylist(), strict=True):
                is_whole = image["data"] == bytes([image["id"]]) * LARGE
                met.append((operation, image["id"], image["n"], is_whole))
    assert met == [
        (INSERT, 1, 0, True),
        (INSERT, 2, 0, True),
        (INSERT, 3, 0, True),
        (OLD, 2, 0, True),
        (NEW, 2, 1, True),
    ]


@BOTH_FORMS
def test_unknown_encodings_in_arrays_and_in_types_only_the_server_reads(
    postgres: EmbeddedPostgres, binary: bool
) -> None:
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS ascii WITH (FORCE)")
        connection.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    with psycopg.connect(postgres.dsn("ascii"), autocommit=True) as connection:
        connection.execute("CREATE TYPE pair AS (a int, b text)")
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, vs text[], p pair)")
        connection.execute("CREATE PUBLICATION p FOR TABLE t")
        connection.execute("SELECT pg_create_logical_replication_slot('ascii_slot', 'pgoutput')")
        connection.execute(
            "WITH v AS (SELECT convert_from('\\xe9', 'SQL_ASCII') AS v)"
            " INSERT INTO t SELECT 1, ARRAY[v, 'plain', NULL], (1, v)::pair FROM v"
        )
        log = PostgresLog(postgres.dsn("ascii"), "ascii_slot", "p")
        log._binary = binary
        pieces = list(log.read(log.slot_state().restart, log.log_end(), EVERYTHING))
        log.close()
        connection.execute("SELECT pg_drop_replication_slot('ascii_slot')")
    images = pieces[0].changes[0].images
    assert images.to_pylist() == [{"id": 1, "vs": ["\\xe9", "plain", None], "p": "(1,\\xe9)"}]
