"""Databases that are not in UTF-8: names and values arrive right; what can't be named stands in no way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

from engine.errors import NameNotUtf8
from engine.runtime.embedded_postgres import EmbeddedPostgres
from engine.sources.base import TableAltered
from engine.sources.postgres.admin import PostgresAdmin
from engine.sources.postgres.log import PostgresLog
from engine.sources.postgres.names import PUBLICATION, slot_name
from tests.sources.conftest import Source

NAME = "encoded"


@pytest.fixture
def encoded(postgres: EmbeddedPostgres) -> Iterator[Callable[[str, str], Source]]:
    """Makes an enabled database in an encoding; its connection has the client encoding given."""
    made: list[Source] = []

    def make(encoding: str, client_encoding: str) -> Source:
        with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {NAME} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        dsn, slot = postgres.dsn(NAME), slot_name(NAME)
        admin = PostgresAdmin(dsn, slot, NAME)
        admin.enable_database()
        connection = psycopg.connect(dsn, autocommit=True, client_encoding=client_encoding)
        made.append(Source(dsn, admin, PostgresLog(dsn, slot, PUBLICATION, NAME), connection))
        return made[-1]

    yield make
    for source in made:
        source.log.close()
        source.connection.close()
        source.admin.disable_database([])
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")


def rows_of(source: Source) -> list[dict[str, object]]:
    return [
        row for piece in source.pieces() for changes in piece.changes for row in changes.images.to_pylist()
    ]


@pytest.fixture
def unencoded(encoded: Callable[[str, str], Source]) -> Source:
    """Tables that can be named, and some that can't: in Latin-1, in a database that does not know it."""
    source = encoded("SQL_ASCII", "SQL_ASCII")
    for statement in (
        'CREATE TABLE good (id int PRIMARY KEY, "é" text)'.encode(),
        b'CREATE TABLE "t\xe9" (id int PRIMARY KEY)',
        b'CREATE TABLE columns (id int PRIMARY KEY, "c\xe9" text)',
        b"CREATE TYPE \"e\xe9\" AS ENUM ('\xe9')",
        b'CREATE TABLE typed (id int CONSTRAINT "k\xe9" PRIMARY KEY, v "e\xe9")',
        b'CREATE SCHEMA "s\xe9"',
        b'CREATE TABLE "s\xe9".t (id int)',
    ):
        source.connection.execute(statement)
    return source


def test_what_cannot_be_named_is_left_out(unencoded: Source) -> None:
    assert [table.name for table in unencoded.admin.tables()] == ["good", "typed"]
    typed = unencoded.admin.table("public", "typed")
    assert typed is not None
    assert typed.columns[1].source_type == 'public."e\\xe9"'


def test_a_table_with_a_column_that_cannot_be_named_is_refused(unencoded: Source) -> None:
    with pytest.raises(NameNotUtf8, match=r"'public.columns' .* '.*c\\xe9' is not UTF-8"):
        unencoded.track("columns")
    unencoded.track("good")
    unencoded.sql("INSERT INTO good VALUES (1, 'a')")
    assert rows_of(unencoded) == [{"id": 1, "é": "a"}]


def test_a_column_that_cannot_be_named_added_later_stops_nothing(unencoded: Source) -> None:
    instance = unencoded.track("good")
    unencoded.connection.execute(b'ALTER TABLE good ADD "\xe9" text')
    unencoded.connection.execute(b"INSERT INTO good VALUES (1, 'a', '\xe9')")
    pieces = unencoded.pieces()
    [altered] = [event for piece in pieces for event in piece.events if isinstance(event, TableAltered)]
    assert [column.name for column in altered.columns] == ["id", "é", "\\xe9"]
    assert list(unencoded.log.column_ids(instance.source_object_id).names) == ["id", "é", "\\xe9"]
    [changes] = [changes for piece in pieces for changes in piece.changes]
    assert changes.images.to_pylist() == [{"id": 1, "é": "a", "\\xe9": "\\xe9"}]
    assert unencoded.admin.tracking_problems([instance]) == []
    unencoded.admin.disable_table(instance, last_of_table=True)


def test_a_tracked_table_that_was_renamed_so_is_captured(unencoded: Source) -> None:
    instance = unencoded.track("good")
    unencoded.connection.execute(b'ALTER TABLE good RENAME TO "g\xe9"')
    unencoded.connection.execute(b"INSERT INTO \"g\xe9\" VALUES (1, 'a')")
    assert rows_of(unencoded) == [{"id": 1, "é": "a"}]
    assert unencoded.admin.table_names([instance.source_object_id]) == {
        instance.source_object_id: ("public", "g\\xe9")
    }
    unencoded.connection.execute(b'ALTER TABLE "g\xe9" RENAME TO good')


@pytest.mark.parametrize(
    ("encoding", "word"), [("LATIN1", "straße"), ("WIN1252", "€uro"), ("WIN1251", "цена")]
)
def test_names_values_and_ddl_of_another_encoding(
    encoded: Callable[[str, str], Source], encoding: str, word: str
) -> None:
    source = encoded(encoding, "UTF8")
    name = sql.Identifier(word)
    create = sql.SQL("CREATE TABLE {0} ({0} text PRIMARY KEY)").format(name)
    source.connection.execute(create)
    instance = source.track(word)
    assert (instance.source_table, instance.column_names) == (word, (word,))
    source.connection.execute(sql.SQL("INSERT INTO {} VALUES ({})").format(name, sql.Literal(word)))
    rename = sql.SQL("ALTER TABLE {0} RENAME {0} TO {1}").format(name, sql.Identifier(f"{word}2"))
    source.connection.execute(rename)
    pieces = source.pieces()
    assert [row for piece in pieces for each in piece.changes for row in each.images.to_pylist()] == [
        {word: word}
    ]
    [altered] = [event for piece in pieces for event in piece.events if isinstance(event, TableAltered)]
    assert (altered.table, altered.columns[0].name) == (word, f"{word}2")
    assert altered.ddl == rename.as_string(source.connection)


def test_bytes_of_any_encoding_that_are_given_again_stand_in_no_way(unencoded: Source) -> None:
    unencoded.track("good")
    unencoded.connection.execute(b"INSERT INTO good VALUES (1, '\xe9')")
    commit = unencoded.pieces()[-1].transactions[-1].commit_lsn
    unencoded.log.check_goes_on(commit, unencoded.log.log_end())
