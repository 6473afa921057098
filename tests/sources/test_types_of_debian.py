"""Types that the embedded server lacks: XML and extensions' types, in a PostgreSQL 15 from Debian."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from engine.sources.base import LogPiece
from engine.sources.postgres.connection import connect
from engine.sources.postgres.log import PostgresLog
from engine.sources.postgres.types import TypeCatalog
from tests.debian_postgres import DebianPostgres, debian_postgres
from tests.sources.conftest import EVERYTHING
from tests.sources.test_types_document import NAMED, TYPES_OF_COLUMNS

EXTENSIONS = ("hstore", "citext", "ltree", "cube", "seg", "isn", "intarray")
WITH_BINARY_FORM = {
    "xml": [
        "<a>é</a>",
        '<?xml version="1.0" encoding="ISO-8859-1"?><a b="c">1</a>',
        '<?xml version="1.1" standalone="yes"?><a/>',
        "<a/>text<b/>",
        "<!DOCTYPE a><a/>",
        "",
    ],
    "hstore": ['"a"=>"1", "b"=>NULL', "", '"\\"q\\""=>"x, y => é"'],
    "citext": ["MiXed é", ""],
    "ltree": ["Top.Science", ""],
    "lquery": ["Top.*{1,3}.a@"],
    "cube": ["(1, 2),(3, 4)", "(1e-300)"],
    "xml[]": ['{<a/>,NULL,"<b c=\\"d\\"/>"}'],
    "hstore[]": ['{"\\"a\\"=>\\"1\\"",NULL}'],
    "citext[]": ["{A,NULL,a}"],
}
WITHOUT = {
    "seg": ["1.50 .. 2.5", "~7"],
    "isbn13": ["978-0-393-04002-9"],
    "query_int": ["1&(2|!3)"],
    "isbn13[]": ["{978-0-393-04002-9,NULL}"],
}
"""Types that make the log be read as text."""


@pytest.fixture(scope="module")
def server() -> Iterator[DebianPostgres]:
    settings = {"wal_level": "logical", "timezone": "Asia/Kolkata", "xmloption": "document"}
    with debian_postgres(settings) as server:
        yield server


@pytest.fixture
def dsn(server: DebianPostgres) -> Iterator[str]:
    """A database with the extensions; it and its slot go after the test."""
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE typed")
        with psycopg.connect(server.dsn("typed"), autocommit=True) as typed:
            for extension in EXTENSIONS:
                typed.execute(f"CREATE EXTENSION {extension}".encode())
        yield server.dsn("typed")
        connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        connection.execute("DROP DATABASE typed WITH (FORCE)")


@pytest.mark.parametrize(
    ("samples", "binary"), [(WITH_BINARY_FORM, True), (WITH_BINARY_FORM, False), (WITHOUT, True)]
)
def test_values_are_the_servers_text_in_every_image(
    dsn: str, samples: dict[str, list[str]], binary: bool
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET xmloption = content")
        types = dict(zip((f"c{n}" for n in range(len(samples))), samples, strict=True))
        columns = ", ".join(f"{name} {type_}" for name, type_ in types.items())
        connection.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns})".encode())
        connection.execute("ALTER TABLE t REPLICA IDENTITY FULL")
        connection.execute("CREATE PUBLICATION p FOR TABLE t")
        connection.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
        count = max(map(len, samples.values()))
        for number in range(count):
            values = [given[number] if number < len(given) else None for given in samples.values()]
            casts = ", ".join(f"%s::{type_}" for type_ in samples)
            connection.execute(f"INSERT INTO t VALUES ({number}, {casts})".encode(), values)
        first = selected(dsn, types)
        assignments = ", ".join(f"{name} = o.{name}" for name in types)
        connection.execute(f"UPDATE t SET {assignments} FROM t o WHERE o.id = (t.id + 1) % {count}".encode())
        second = selected(dsn, types)
        connection.execute("DELETE FROM t")
        with capture_logs() as logs:
            pieces = read(dsn, binary)
    images = [
        (operation, image)
        for piece in pieces
        for changes in piece.changes
        for operation, image in zip(changes.operation.tolist(), changes.images.to_pylist(), strict=True)
    ]
    for operation, rows in ((2, first), (3, first), (4, second), (1, second)):
        assert sorted((i for o, i in images if o == operation), key=lambda image: image["id"]) == rows
    assert [said["event"] for said in logs] == ["log is read as text"] * (samples is WITHOUT)


def read(dsn: str, binary: bool) -> list[LogPiece]:
    log = PostgresLog(dsn, "s", "p")
    log._binary = binary
    try:
        return list(log.read(log.slot_state().restart, log.log_end(), EVERYTHING))
    finally:
        log.close()


def selected(dsn: str, types: dict[str, str]) -> list[dict[str, Any]]:
    """The table by the types' output functions, arrays by those of their elements."""
    columns = []
    for name, type_ in types.items():
        text = f"CASE WHEN {name} IS NOT NULL THEN format('%s', {name}) END"
        if type_.endswith("[]"):
            text = f"ARRAY(SELECT CASE WHEN e IS NOT NULL THEN format('%s', e) END FROM unnest({name}) e)"
            text = f"CASE WHEN {name} IS NOT NULL THEN {text} END"
        columns.append(f"{text} AS {name}")
    with connect(dsn, "test", "test") as connection:
        query = f"SELECT id, {', '.join(columns)} FROM public.t ORDER BY id"
        return connection.cursor(row_factory=psycopg.rows.dict_row).execute(query.encode()).fetchall()


def test_an_older_servers_types_are_all_named_and_mapped_so(dsn: str) -> None:
    with connect(dsn, "test", "test") as connection:
        rows = connection.execute(TYPES_OF_COLUMNS).fetchall()
        types = TypeCatalog(connection).column_types((oid, -1) for oid, _, _ in rows)
    for (_, _, name), type_ in zip(rows, types, strict=True):
        assert NAMED[name] == type_.lake_type, name
