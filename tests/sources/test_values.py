"""Values of many types: what the log gives equals what SELECT gives, in binary and in text form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from engine.runtime.embedded_postgres import EmbeddedPostgres
from engine.sources.base import LogPiece, ReadLimit
from engine.sources.postgres.admin import PostgresAdmin
from engine.sources.postgres.log import PostgresLog
from tests.sources.conftest import EVERYTHING, Source
from tests.sources.type_samples import COLUMNS, comparable, create_table, insert_samples, selected


@pytest.fixture
def typed(source: Source) -> Source:
    """A tracked table ``v`` with a column of every type."""
    create_table(source.connection)
    source.track("v")
    source.pieces()
    return source


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@pytest.mark.parametrize("binary", [True, False])
def test_every_type_comes_as_select_gives_it_in_every_image(typed: Source, binary: bool) -> None:
    count = insert_samples(typed.connection)
    first = selected(typed.dsn)
    assignments = ", ".join(f"{name} = other.{name}" for name in COLUMNS.values())
    typed.sql(
        f"UPDATE v SET {assignments} FROM v other WHERE other.id = (v.id + 1) % {count}",
    )
    second = selected(typed.dsn)
    typed.sql("DELETE FROM v")
    log = typed.another_log()
    log._binary = binary
    images = images_by_operation(list(log.read(typed.after, log.log_end(), EVERYTHING)))
    types = {name: type_ for type_, name in COLUMNS.items()}
    for operation, expected_rows in ((2, first), (3, first), (4, second), (1, second)):
        rows = sorted(images[operation], key=lambda row: row["id"])
        for expected, got in zip(expected_rows, rows, strict=True):
            for name, value in expected.items():
                assert comparable(got[name]) == comparable(value), (operation, types.get(name), name)


def images_by_operation(pieces: list[LogPiece]) -> dict[int, list[dict[str, Any]]]:
    images: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for changes in (changes for piece in pieces for changes in piece.changes):
        changes.images.validate(full=True)
        for operation, image in zip(changes.operation.tolist(), changes.images.to_pylist(), strict=True):
            images[operation].append(image)
    return images


def test_source_types_are_the_servers_own_words(typed: Source) -> None:
    insert_samples(typed.connection)
    (piece,) = [typed.pieces()[0]]
    found = typed.admin.table("public", "v")
    assert found is not None
    logged = [(c.name, c.source_type, c.lake_type) for c in piece.changes[0].relation.columns]
    assert logged == [(c.name, c.source_type, c.lake_type) for c in found.columns]
    by_name = {name: (source_type, lake_type) for name, source_type, lake_type in logged}
    names = COLUMNS
    assert by_name[names["numeric(3,-2)"]] == ("numeric(3,-2)", "decimal(5,0)")
    assert by_name[names["numeric(3,5)"]] == ("numeric(3,5)", "decimal(5,5)")
    assert by_name[names["numeric(50,3)"]] == ("numeric(50,3)", "string")
    assert by_name[names["price"]] == ("public.price", "decimal(8,2)")
    assert by_name[names["timestamptz[]"]] == ("timestamp with time zone[]", "array<timestamp>")


BEYOND = {
    "date": {
        "infinity": date.max,
        "-infinity": date.min,
        "0044-03-15 BC": date.min,
        "5874897-12-31": date.max,
    },
    "timestamp": {"infinity": datetime.max, "-infinity": datetime.min, "294276-12-31": datetime.max},
    "timestamptz": {
        "infinity": datetime.max.replace(tzinfo=UTC),
        "4713-01-01 BC": datetime.min.replace(tzinfo=UTC),
    },
    "numeric(6,2)": {"NaN": Decimal("9999.99")},
    "numeric(38,4)": {"NaN": Decimal("9999999999999999999999999999999999.9999")},
    "date[]": {"{infinity,NULL,0044-03-15 BC}": [date.max, None, date.min]},
    "integer[]": {"{{1,2},{3,NULL}}": [1, 2, 3, None]},
    "text[]": {"{{a,b},{NULL,NULL}}": ["a", "b", None, None]},
    "interval[]": {"{{{1 day}}}": ["1 day"]},
    "box[]": {"{{(3,4),(1,2)};{(1,1),(0,0)}}": ["(3,4),(1,2)", "(1,1),(0,0)"]},
    "numeric(4,1)[]": {"[0:1]={7,8}": [7, 8]},
    "uuid[]": {"[5:5]={00000000-0000-0000-0000-000000000000}": ["00000000-0000-0000-0000-000000000000"]},
    "boolean[]": {"[1:1][2:3]={{t,f}}": [True, False]},
}
SAID = {
    "several dimensions": ("integer[]", "text[]", "interval[]", "box[]", "boolean[]"),
    "does not begin at 1": ("numeric(4,1)[]", "uuid[]", "boolean[]"),
    "NaN stored as the largest": ("numeric(6,2)", "numeric(38,4)"),
    "nearest the lake holds": ("date", "timestamp", "timestamptz", "date[]"),
}
"""Words of the log line, and the types of `BEYOND` that give one."""
VALUES = {"date[]": 2}
"""How many values the line counts, where not all of the column's."""


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("type_", BEYOND)
def test_what_the_lake_cannot_hold_is_replaced_and_said(source: Source, type_: str, binary: bool) -> None:
    source.sql(f"CREATE TABLE b (id int PRIMARY KEY, v {type_})")
    source.track("b")
    source.pieces()
    for number, value in enumerate(BEYOND[type_]):
        source.sql(f"INSERT INTO b VALUES ({number}, {quoted(value)})")
    source.log._binary = binary
    with capture_logs() as logs:
        rows = source.rows()
    assert [row[2] for row in rows] == list(BEYOND[type_].values())
    expected = {words for words, types in SAID.items() if type_ in types}
    assert {words for words in SAID for said in logs if words in said["event"]} == expected
    assert len(logs) == len(expected)
    for said in logs:
        place = {"log_level": "warning", "database": "test", "table": "public.b", "column": "v"}
        assert place.items() <= said.items()
        assert said["values"] == VALUES.get(type_, len(BEYOND[type_]))


@pytest.mark.parametrize("binary", [True, False])
def test_arrays_of_domains_over_arrays_keep_both_levels(source: Source, binary: bool) -> None:
    source.sql("CREATE DOMAIN ids AS int[]")
    source.sql("CREATE TYPE mood AS ENUM ('so so', 'é')")
    source.sql("CREATE DOMAIN moods AS mood[]")
    source.sql("CREATE DOMAIN prices AS numeric(6,2)[]")
    source.sql("CREATE DOMAIN spans AS interval[]")
    source.sql("CREATE TABLE t (id int PRIMARY KEY, a ids[], b moods[], c prices[], d spans[])")
    source.track("t")
    source.pieces()
    source.log._binary = binary
    values = ("ARRAY['{1,NULL}', '{}', NULL]::ids[]", """ARRAY['{"so so",NULL}', '{é}']::moods[]""")
    values += ("ARRAY['{1.5,-2}']::prices[]", "ARRAY['{1 day,infinity}', NULL]::spans[]")
    source.sql(f"INSERT INTO t VALUES (1, {', '.join(values)})")
    source.sql("INSERT INTO t VALUES (2, '{}', NULL, '{}', NULL)")
    assert source.rows() == [
        (
            2,
            1,
            [[1, None], [], None],
            [["so so", None], ["é"]],
            [[Decimal("1.50"), Decimal("-2.00")]],
            [["1 day", "infinity"], None],
        ),
        (2, 2, [], None, [], None),
    ]


def test_a_type_that_is_gone_gives_the_text_of_its_time(source: Source) -> None:
    source.sql("CREATE TYPE pair AS (a int, b text)")
    source.sql("CREATE TYPE mood AS ENUM ('sad')")
    source.sql("CREATE DOMAIN price AS numeric(6,2)")
    source.sql("CREATE TABLE t (id int PRIMARY KEY, v pair, m mood, ms mood[], p price, w bytea)")
    source.track("t")
    source.pieces()
    source.sql("INSERT INTO t VALUES (1, '(1,\"a, b\")', 'sad', '{sad,NULL}', 1.5, '\\x00')")
    source.sql("UPDATE t SET w = NULL")
    source.sql("ALTER TABLE t DROP COLUMN v, DROP COLUMN m, DROP COLUMN ms, DROP COLUMN p")
    source.sql("DROP TYPE pair, mood, price")
    source.sql("INSERT INTO t VALUES (2, '\\xff')")
    with capture_logs() as logs:
        rows = source.rows()
    gone = ('(1,"a, b")', "sad", "{sad,NULL}", "1.50")
    assert rows == [(2, 1, *gone, b"\0"), (3, 1, *gone, b"\0"), (4, 1, *gone, None), (2, 2, b"\xff")]
    assert [said["event"] for said in logs] == ["log is read as text"]
    source.sql("INSERT INTO t VALUES (3, '\\xff')")
    source.rows()
    source.sql("INSERT INTO t VALUES (4, '\\xff')")
    assert source.rows() == [(2, 4, b"\xff")]
    assert source.log._binary


def test_what_the_server_reads_in_no_form_is_its_text_or_its_bytes(source: Source) -> None:
    source.sql("CREATE TABLE plain AS SELECT n, n / 2 AS half, n % 3 AS rest FROM generate_series(1, 90) n")
    source.sql("ALTER TABLE plain ALTER n SET DEFAULT 7")
    source.sql("CREATE STATISTICS known (ndistinct, dependencies, mcv) ON half, rest FROM plain")
    source.sql("ANALYZE plain")
    source.sql("CREATE TABLE t (tree pg_node_tree, n pg_ndistinct, d pg_dependencies, m pg_mcv_list)")
    source.track("t")
    source.pieces()
    tree = "(SELECT adbin FROM pg_attrdef WHERE adrelid = 'plain'::regclass)"
    statistics = "stxdndistinct, stxddependencies, stxdmcv FROM pg_statistic_ext_data"
    source.sql(f"INSERT INTO t SELECT {tree}, {statistics}")
    ((text,),) = source.sql("SELECT tree::text FROM t")
    bytes_of = "SELECT pg_ndistinct_send(n), pg_dependencies_send(d), pg_mcv_list_send(m) FROM t"
    with capture_logs() as logs:
        rows = source.rows()
    assert rows == [(2, text, *("\\x" + value.hex() for value in source.sql(bytes_of)[0]))]
    assert [said["column"] for said in logs] == ["n", "d", "m"]
    assert all("hex digits" in said["event"] for said in logs)


def test_a_type_without_a_binary_form_turns_the_reader_to_text(source: Source) -> None:
    source.sql("CREATE TABLE t (id int PRIMARY KEY, rights aclitem[], at timestamptz)")
    source.track("t")
    source.pieces()
    source.sql("INSERT INTO t VALUES (1, ARRAY['=r/postgres'::aclitem], '2026-01-01 00:00:00+00')")
    source.sql("INSERT INTO t VALUES (2, NULL, NULL)")
    with capture_logs() as logs:
        rows = source.rows()
    assert rows == [(2, 1, ["=r/postgres"], datetime(2026, 1, 1, tzinfo=UTC)), (2, 2, None, None)]
    assert logs[0]["event"] == "log is read as text"


def test_texts_of_an_unknown_encoding_are_kept_readable(postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS ascii WITH (FORCE)")
        connection.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    with psycopg.connect(postgres.dsn("ascii"), autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        connection.execute("CREATE PUBLICATION p FOR TABLE t")
        connection.execute("SELECT pg_create_logical_replication_slot('ascii_slot', 'pgoutput')")
        connection.execute(
            "INSERT INTO t VALUES (1, convert_from('\\xe9', 'SQL_ASCII') || 'x'), (2, 'plain')"
        )
        log = PostgresLog(postgres.dsn("ascii"), "ascii_slot", "p")
        pieces = list(log.read(log.slot_state().restart, log.log_end(), EVERYTHING))
        log.close()
        connection.execute("SELECT pg_drop_replication_slot('ascii_slot')")
    assert pieces[0].changes[0].images.column(1).to_pylist() == ["\\xe9x", "plain"]


def test_a_database_in_another_encoding_gives_its_texts(postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS latin WITH (FORCE)")
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    dsn = postgres.dsn("latin")
    with psycopg.connect(dsn, autocommit=True, client_encoding="UTF8") as connection:
        admin = PostgresAdmin(dsn, "latin_slot", "latin")
        admin.enable_database()
        connection.execute("CREATE TYPE größe AS ENUM ('groß')")
        connection.execute("CREATE TABLE bücher (é text PRIMARY KEY, j jsonb, g größe, a text[], r tsvector)")
        source = Source(dsn, admin, PostgresLog(dsn, "latin_slot", "highwater", "latin"), connection)
        instance = source.track("bücher")
        connection.execute("""INSERT INTO bücher VALUES ('ü', '{"ä": "ö"}', 'groß', '{é}', 'ß')""")
        pieces = source.pieces()
        source.log.close()
        admin.disable_database([])
    assert [event.instance for piece in pieces for event in piece.events] == [instance]
    rows = [row for piece in pieces for changes in piece.changes for row in changes.images.to_pylist()]
    assert rows == [{"é": "ü", "j": '{"ä": "ö"}', "g": "groß", "a": ["é"], "r": "'ß'"}]


Through = Callable[[list[tuple[Any, ...]]], list[list[tuple[Any, ...]]]]


@pytest.fixture(scope="module")
def random_rows(postgres: EmbeddedPostgres) -> Iterator[Through]:
    """Inserts rows through a real server; gives back what its log says in binary, and in text."""
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS random WITH (FORCE)")
        connection.execute("CREATE DATABASE random")
    columns = (
        "a bigint, b numeric(20,4), c text, d bytea, e timestamp, f int[], g numeric, h text[], i float8"
    )
    with psycopg.connect(postgres.dsn("random"), autocommit=True) as connection:
        connection.execute(f"CREATE TABLE t ({columns})".encode())
        connection.execute("ALTER TABLE t REPLICA IDENTITY FULL")
        connection.execute("CREATE PUBLICATION p FOR TABLE t")
        connection.execute("SELECT pg_create_logical_replication_slot('random_slot', 'pgoutput')")
        logs = [PostgresLog(postgres.dsn("random"), "random_slot", "p") for _ in range(2)]
        logs[1]._binary = False

        def through(rows: list[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
            start = logs[0].log_end()
            with connection.transaction():
                connection.cursor().executemany(
                    "INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s::int[], %s, %s::text[], %s)", rows
                )
            end = logs[0].log_end()
            found = [_values(log.read(start, end, ReadLimit(10, 500))) for log in logs]
            for log in logs:  # each is to know how far the slot has come
                log.confirm(end)
            return found

        yield through
        for log in logs:
            log.close()
        connection.execute("SELECT pg_drop_replication_slot('random_slot')")


def _values(pieces: Iterable[LogPiece]) -> list[tuple[Any, ...]]:
    return [
        row
        for piece in pieces
        for changes in piece.changes
        for row in zip(*(column.to_pylist() for column in changes.images.columns), strict=True)
    ]


plain_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
decimals = st.decimals(-(10**15), 10**15, places=4, allow_nan=False)
random_row = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | decimals,
    st.none() | plain_text,
    st.none() | st.binary(),
    st.none() | st.datetimes(),
    st.none() | st.lists(st.none() | st.integers(-(2**31), 2**31 - 1)),
    st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=7),
    st.none() | st.lists(st.none() | plain_text),
    st.none() | st.floats(allow_nan=False),
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(random_row, min_size=1, max_size=20))
def test_random_rows_come_back(random_rows: Through, rows: list[tuple[Any, ...]]) -> None:
    binary, text = random_rows(rows)
    assert [_numbers_compared(row) for row in binary] == [_numbers_compared(row) for row in rows]
    assert [tuple(map(comparable, row)) for row in text] == [tuple(map(comparable, row)) for row in binary]


def _numbers_compared(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """With the numeric of any size by value: the server drops the sign of zero."""
    return (*row[:6], None if row[6] is None else Decimal(row[6]), *row[7:])
