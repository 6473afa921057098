"""Values of many types: what the log gives equals what SELECT gives, in binary and in text form."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from engine.runtime.embedded_postgres import EmbeddedPostgres
from engine.sources.base import LogPiece, ReadLimit
from engine.sources.postgres.admin import PostgresAdmin
from engine.sources.postgres.log import PostgresLog
from tests.sources.conftest import EVERYTHING, Source

NATIVE = {
    "smallint": ["0", "-32768", "32767"],
    "integer": ["0", "-2147483648", "2147483647"],
    "bigint": ["0", "-9223372036854775808", "9223372036854775807"],
    "real": ["0", "-0", "1.5", "3.4028235e38", "1e-45", "NaN", "Infinity", "-Infinity"],
    "double precision": ["0", "1.1", "1.7976931348623157e308", "5e-324", "NaN", "Infinity", "-Infinity"],
    "boolean": ["true", "false"],
    "numeric(12,2)": ["0", "0.01", "-0.01", "9999999999.99", "-9999999999.99", "10000", "100.10"],
    "numeric(5,0)": ["0", "99999", "-1"],
    "numeric(18,18)": ["0.000000000000000001", "-0.999999999999999999"],
    "numeric(38,10)": ["1234567890123456789012345678.0123456789", "-0.0000000001", "1e27"],
    "numeric(38,0)": ["99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"],
    "numeric(3,-2)": ["99900", "-100", "12345"],
    "numeric(3,5)": ["0.00999", "-0.00001"],
    "date": ["0001-01-01", "1999-12-31", "2000-01-01", "9999-12-31"],
    "timestamp": ["0001-01-01 00:00:00", "1999-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"],
    "timestamptz": [
        "0001-01-01 00:00:00+00",
        "2026-06-01 12:00:00.000001+02",
        "9999-12-31 23:59:59.999999+00",
    ],
    "timestamp(0)": ["2026-01-02 03:04:05"],
    "bytea": ["", "\\x00ff10", "\\x" + "ab" * 3000],
    "text": ["", "é ü 漢字 🙂", "x" * 3000, "NULL", "{}", "\\"],
    "varchar(10)": ["", "ten chars."],
    "integer[]": ["{}", "{1,2,3}", "{NULL}", "{1,NULL,-3}"],
    "text[]": ["{}", '{"",a,"b c",NULL,"NULL","\\"q\\"","{x}"}'],
    "numeric(8,2)[]": ["{1.25,NULL,-3}"],
    "date[]": ["{2026-01-01,1999-12-31}"],
    "timestamptz[]": ['{"2026-01-01 00:00:00+00"}'],
    "boolean[]": ["{t,f,NULL}"],
    "bytea[]": ['{"\\\\xab",NULL,"\\\\x"}'],
    "double precision[]": ["{1.5,NULL,-0}"],
}
"""Types that the lake has too; SELECT's own Python values are what we expect."""

TEXTS = {
    "char(5)": ["ab", "", "abcde"],
    "name": ["some_name"],
    '"char"': ["a", ""],
    "uuid": ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "json": ['{"a":  1, "a": 2}', "null", "[]"],
    "jsonb": ['{"b": [1, 2.50, "é"], "a": null}', "null", '"x"'],
    "time": ["00:00:00", "23:59:59.5", "24:00:00"],
    "time(3)": ["12:34:56.789"],
    "timetz": ["12:00:00+02", "00:00:00.000001-11:30"],
    "interval": ["0", "1 year 2 mons -3 days 04:05:06.7", "-1 day +00:00:01", "178000000 years"],
    "numeric": [
        "0",
        "0.00",
        "-1.500",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e300",
        "1e-20",
        "12345678901234567890.5",
    ],
    "numeric(50,3)": ["12345678901234567890123456789012345678901234567.125"],
    "money": ["12.34", "-1000.5"],
    "oid": ["0", "4294967295"],
    "inet": ["10.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32"],
    "cidr": ["10.0.0.0/8", "::/0"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "bit(3)": ["101", "000"],
    "varbit": ["", "1", "1010101010101"],
    "point": ["(1.5,-2)"],
    "box": ["(1,2),(3,4)"],
    "polygon": ["((0,0),(1,1),(2,0))"],
    "int4range": ["empty", "[1,5)", "(,10]", "[,]"],
    "numrange": ["(1.50,2.5]"],
    "tstzrange": ['["2026-01-01 00:00:00+00","2026-02-01 00:00:00+00")'],
    "int4multirange": ["{}", "{[1,3),[5,9)}"],
    "tsvector": ["", "'a':1A 'fat':2B,4C 'cat':5"],
    "tsquery": ["'fat' & ( 'rat' | !'cat':AB )"],
    "pg_lsn": ["16/B374D848"],
    "xid8": ["123456789012"],
    "jsonpath": ["$.a[*] ? (@ > 2)"],
    "regclass": ["pg_class"],
    "int2vector": ["1 2 3"],
    "mood": ["happy", "so so", "é"],
    "pair": ['(1,"a, b")', "(,)"],
}
"""Types that the lake stores as the output function's text."""

ELEMENTWISE = {"uuid[]": ["{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,NULL}"], "mood[]": ['{happy,"so so",NULL}']}
"""Arrays whose elements the lake stores as text."""

DOMAINS = {"positive": ["1", "77"], "short_text": ["abc"], "price": ["1.50"]}

ALL = {**NATIVE, **TEXTS, **ELEMENTWISE, **DOMAINS}
SETUP = """
CREATE TYPE mood AS ENUM ('happy', 'so so', 'é');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN short_text AS varchar(5);
CREATE DOMAIN price AS numeric(8,2);
"""


def column_names() -> dict[str, str]:
    return {type_: f"c{number}" for number, type_ in enumerate(ALL)}


@pytest.fixture
def typed(source: Source) -> Source:
    """A tracked table ``v`` with a column of every type."""
    source.sql("SET datestyle = 'SQL, DMY'")
    source.sql("SET timezone = 'America/New_York'")
    source.sql("SET intervalstyle = 'iso_8601'")
    for statement in SETUP.strip().split("\n"):
        source.sql(statement)
    columns = ", ".join(f"{name} {type_}" for type_, name in column_names().items())
    source.sql(f"CREATE TABLE v (id int PRIMARY KEY, {columns})")
    source.track("v")
    source.pieces()
    return source


def insert_samples(source: Source) -> int:
    """One row for each place in the lists of samples, NULL where a list is shorter."""
    rows = list(itertools.zip_longest(*ALL.values()))
    source.sql("SET datestyle = 'ISO, YMD'")
    for number, values in enumerate(rows):
        casts = ", ".join(
            "NULL" if value is None else f"{quoted(value)}::{type_}"
            for type_, value in zip(ALL, values, strict=True)
        )
        source.sql(f"INSERT INTO v VALUES ({number}, {casts})".replace("%", "%%"))
    return len(rows)


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def selected(dsn: str) -> list[dict[str, Any]]:
    """The table as the server gives it, texts by the output function in the settings the reader promises."""
    by_type = column_names()
    as_text = [by_type[type_] for type_ in TEXTS]
    columns = [f"format('%s', {name}) AS {name}, num_nulls({name}) = 1 AS no_{name}" for name in as_text]
    columns += [f"{by_type[type_]}::text[] AS {by_type[type_]}" for type_ in ELEMENTWISE]
    columns += [by_type[type_] for type_ in (*NATIVE, *DOMAINS) if type_ != "real"]
    columns += [f"{by_type['real']}::float8 AS {by_type['real']}"]
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
        connection.execute("SET timezone = 'UTC'")
        rows = connection.execute(f"SELECT id, {', '.join(columns)} FROM v ORDER BY id".encode()).fetchall()
    for row in rows:
        for name in as_text:
            if row.pop(f"no_{name}"):
                row[name] = None
    return rows


def read_rows(log: PostgresLog, source: Source, limit: ReadLimit = EVERYTHING) -> pa.Table:
    pieces = list(log.read(source.after, log.log_end(), limit))
    return pa.Table.from_batches([changes.images for piece in pieces for changes in piece.changes])


def comparable(value: Any) -> Any:
    """NaN equals itself, -0.0 differs from 0.0; timestamps of one moment are equal."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value
    return [comparable(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("binary", [True, False])
def test_every_type_comes_as_select_gives_it(typed: Source, binary: bool) -> None:
    insert_samples(typed)
    log = typed.another_log()
    log._binary = binary
    table = read_rows(log, typed)
    table.validate(full=True)
    types = {name: type_ for type_, name in column_names().items()}
    for expected, got in zip(selected(typed.dsn), table.to_pylist(), strict=True):
        for name, value in expected.items():
            assert comparable(got[name]) == comparable(value), (types.get(name), name)


def test_source_types_are_the_servers_own_words(typed: Source) -> None:
    insert_samples(typed)
    (piece,) = [typed.pieces()[0]]
    found = typed.admin.table("public", "v")
    assert found is not None
    logged = [(c.name, c.source_type, c.lake_type) for c in piece.changes[0].relation.columns]
    assert logged == [(c.name, c.source_type, c.lake_type) for c in found.columns]
    by_name = {name: (source_type, lake_type) for name, source_type, lake_type in logged}
    names = column_names()
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
    "integer[]": {"{{1,2},{3,4}}": [1, 2, 3, 4], "[5:6]={7,8}": [7, 8]},
}


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
    (said,) = logs
    assert (said["log_level"], said["table"], said["column"]) == ("warning", "public.b", "v")
    lower_bounds_only = sum(value.startswith("[") for value in BEYOND[type_])
    assert said["values"] == len(BEYOND[type_]) - lower_bounds_only


def test_a_type_that_is_gone_gives_its_bytes(source: Source) -> None:
    source.sql("CREATE TYPE pair AS (a int, b text)")
    source.sql("CREATE TABLE t (id int PRIMARY KEY, v pair, w int)")
    source.track("t")
    source.pieces()
    source.sql("INSERT INTO t VALUES (1, (1, 'x'), 2)")
    source.sql("ALTER TABLE t DROP COLUMN v")
    source.sql("DROP TYPE pair")
    with capture_logs() as logs:
        ((operation, id_, value, other),) = source.rows()
    assert (operation, id_, other) == (2, 1, 2)
    assert value.startswith("\\x000000020000")
    assert "hex digits" in logs[0]["event"]


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
            logs[0].confirm(end)
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
