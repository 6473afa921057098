"""Values of every type that a table of PostgreSQL can have, at their extremes, as PostgreSQL reads them."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

import psycopg

from engine.sources.postgres.connection import Connection, connect

EVERY_PLANE = "".join(
    chr(plane << 16 | place) for plane in range(17) for place in (0x0001, 0xA000, 0xD7FF, 0xE000, 0xFFFF)
)
"""Characters of all 17 planes with the ends of their ranges, U+10FFFF and noncharacters among them."""

SETUP = (
    "CREATE TYPE mood AS ENUM ('happy', 'so so', 'é', '')",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE TYPE nested AS (p pair, t timestamptz[], n numeric, q pair[])",
    "CREATE TYPE span AS RANGE (subtype = float8)",
    "CREATE TABLE line_item (id int, price numeric(8,2))",
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
    "CREATE DOMAIN short_text AS varchar(5)",
    "CREATE DOMAIN price AS numeric(8,2)",
    "CREATE DOMAIN low_price AS price CHECK (VALUE < 10)",
    "CREATE DOMAIN ids AS int[]",
    "CREATE DOMAIN good_mood AS mood",
    "CREATE DOMAIN checked_pair AS pair CHECK ((VALUE).a > 0)",
    "CREATE EXTENSION vector",
)

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
    "numeric(38,38)": ["0." + "9" * 38, "-0." + "0" * 37 + "1"],
    "numeric(3,-2)": ["99900", "-100", "12345"],
    "numeric(3,5)": ["0.00999", "-0.00001"],
    "date": ["0001-01-01", "1582-10-04", "1582-10-15", "1999-12-31", "2000-01-01", "9999-12-31"],
    "timestamp": ["0001-01-01 00:00:00", "1999-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"],
    "timestamptz": [
        "0001-01-01 00:00:00+00",
        "2026-06-01 12:00:00.000001+02",
        "9999-12-31 23:59:59.999999+00",
    ],
    "timestamp(0)": ["2026-01-02 03:04:05"],
    "bytea": ["", "\\x00ff10", "\\x" + "ab" * 3000],
    "text": ["", "é ü 漢字 🙂", "x" * 3000, "NULL", "{}", "\\", EVERY_PLANE],
    "varchar(10)": ["", "ten chars."],
    "integer[]": ["{}", "{1,2,3}", "{NULL}", "{1,NULL,-3}"],
    "smallint[]": ["{-32768,32767}"],
    "bigint[]": ["{-9223372036854775808,NULL,9223372036854775807}"],
    "text[]": ["{}", '{"",a,"b c",NULL,"NULL","\\"q\\"","{x}"}', '{"' + EVERY_PLANE + '"}'],
    "numeric(8,2)[]": ["{1.25,NULL,-3}"],
    "date[]": ["{2026-01-01,1999-12-31}"],
    "timestamp[]": ['{"0001-01-01 00:00:00",NULL}'],
    "timestamptz[]": ['{"2026-01-01 00:00:00+00"}'],
    "boolean[]": ["{t,f,NULL}"],
    "bytea[]": ['{"\\\\xab",NULL,"\\\\x"}'],
    "double precision[]": ["{1.5,NULL,-0}"],
    "positive": ["1", "2147483647"],
    "short_text": ["abc"],
    "price": ["1.50", "-999999.99"],
    "low_price": ["9.99"],
    "ids": ["{}", "{1,NULL,2}"],
}
"""Types that the lake has too; SELECT's own Python values are what we expect."""

CAST = {
    "real": "float8",
    "real[]": "float8[]",
    "positive[]": "int[]",
    "price[]": "numeric(8,2)[]",
    "short_text[]": "text[]",
}
CAST_SAMPLES = {
    "real[]": ["{1.5,-0,NaN,NULL}"],
    "positive[]": ["{1,NULL,3}"],
    "price[]": ["{1.25,NULL}"],
    "short_text[]": ['{"a b",NULL,""}'],
}
"""Like `NATIVE`, but Python needs another type to see the very value."""

TEXTS = {
    "char(5)": ["ab", "", "abcde", "é"],
    "name": ["some_name", "x" * 63],
    '"char"': ["a", "", "\\377"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "json": ['{"a":  1, "a": 2}', "null", "[]", '"\\u0000"', f'"{EVERY_PLANE[1:]}"'],
    "jsonb": ['{"b": [1, 2.50, "é"], "a": null}', "null", '"x"', "1e1000", f'"{EVERY_PLANE[1:]}"'],
    "time": ["00:00:00", "23:59:59.999999", "24:00:00"],
    "time(3)": ["12:34:56.789"],
    "timetz": ["12:00:00+02", "00:00:00.000001-11:30", "24:00:00-15:59:59", "00:00:00+15:59:59"],
    "interval": [
        "0",
        "1 year 2 mons -3 days 04:05:06.7",
        "-1 day +00:00:01",
        "178956970 years 7 mons 2147483647 days 2562047788:00:54.775806",
        "-178956970 years -8 mons -2147483648 days -2562047788:00:54.775807",
        "infinity",
        "-infinity",
    ],
    "interval day to second(2)": ["1 day 00:00:00.99"],
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
        "9" * 131072 + "." + "9" * 16383,
        "-1e-16383",
    ],
    "numeric(50,3)": ["12345678901234567890123456789012345678901234567.125", "NaN"],
    "numeric(1000,1000)": ["0." + "9" * 1000],
    "numeric(20,-30)": ["12345678901234567890" + "0" * 30],
    "money": ["12.34", "-1000.5", "92233720368547758.07", "-92233720368547758.08"],
    "oid": ["0", "4294967295"],
    "xid": ["4294967295"],
    "cid": ["4294967295"],
    "tid": ["(4294967295,65535)"],
    "xid8": ["18446744073709551615"],
    "pg_lsn": ["0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"],
    "inet": ["10.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32", "255.255.255.255/0", "::ffff:1.2.3.4"],
    "cidr": ["10.0.0.0/8", "::/0", "1.2.3.4/32"],
    "macaddr": ["08:00:2b:01:02:03", "ff:ff:ff:ff:ff:ff"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "bit(3)": ["101", "000"],
    "varbit": ["", "1", "1010101010101", "10" * 50_000],
    "point": ["(1.5,-2)", "(NaN,Infinity)", "(1e-300,-0)"],
    "line": ["{1,-1,0.1}"],
    "lseg": ["[(0,0),(1.1,1e300)]"],
    "box": ["(1,2),(3,4)"],
    "path": ["[(0,0),(1,1)]", "((0,0),(1,1),(2,0))"],
    "polygon": ["((0,0),(1,1),(2,0))"],
    "circle": ["<(0,0),Infinity>"],
    "int4range": ["empty", "[1,5)", "(,10]", "[,]"],
    "int8range": ["[-9223372036854775808,9223372036854775807)"],
    "numrange": ["(1.50,2.5]", "[-Infinity,NaN]"],
    "tsrange": ["[-infinity,infinity]", '["4713-01-01 00:00:00 BC","294276-12-31 23:59:59.999999"]'],
    "tstzrange": ['["2026-01-01 00:00:00+00","2026-02-01 00:00:00+00")'],
    "daterange": ["[4713-01-01 BC,5874897-12-30]", "[2026-01-01,infinity]"],
    "span": ["[1.5,Infinity]", "empty"],
    "int4multirange": ["{}", "{[1,3),[5,9)}"],
    "int8multirange": ["{(,)}"],
    "nummultirange": ["{[1.10,2.2),[3,)}"],
    "tsmultirange": ["{[-infinity,infinity]}"],
    "tstzmultirange": ['{["2026-01-01 00:00:00+00",)}'],
    "datemultirange": ["{[2026-01-01,2026-02-01)}"],
    "span_multirange": ["{[1.5,2.5],(3,)}"],
    "tsvector": ["", "'a':1A 'fat':2B,4C 'cat':5", "'x':16383", "'" + "é" * 1000 + "'"],
    "tsquery": ["'fat' & ( 'rat' | !'cat':AB )", "'a' <16384> 'b'", "'p':*"],
    "jsonpath": ["$.a[*] ? (@ > 2)"],
    "regclass": ["pg_class", "public.v"],
    "regproc": ["now"],
    "regprocedure": ["now()"],
    "regoper": ["||/"],
    "regoperator": ["+(integer,integer)"],
    "regtype": ["integer", "public.mood"],
    "regrole": ["-"],
    "regnamespace": ["public"],
    "regcollation": ['"C"'],
    "regconfig": ["english"],
    "regdictionary": ["simple"],
    "int2vector": ["1 2 3"],
    "oidvector": ["1 4294967295"],
    "txid_snapshot": ["10:20:10,14,15"],
    "pg_snapshot": ["10:20:10,14,15"],
    "refcursor": ["cursor"],
    "mood": ["happy", "so so", "é", ""],
    "pair": ['(1,"a, b")', "(,)", '(,"")'],
    "nested": ['("(1,x)","{""294276-12-31 00:00:00+00"",infinity}",NaN,"{""(,)"",NULL}")'],
    "line_item": ["(1,2.50)"],
    "good_mood": ["happy"],
    "checked_pair": ["(1,x)"],
    "vector": ["[1,2.5,-3]"],
    "halfvec(2)": ["[1,2]"],
    "sparsevec": ["{1:1.5,7:2}/9"],
}
"""Types that the lake stores as the output function's text."""

ELEMENTWISE = {
    "uuid[]": ["{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,NULL}"],
    "mood[]": ['{happy,"so so",NULL,"",é}'],
    "pair[]": ['{"(1,\\"a, b\\")","(,)","(,x)",NULL}'],
    "box[]": ["{(3,4),(1,2);(1,1),(0,0);NULL}", "{}"],
    "varchar(3)[]": ['{abc,"",NULL}'],
    "char(3)[]": ['{a,"",NULL}'],
    "name[]": ["{a,NULL}"],
    '"char"[]': ["{a,NULL}"],
    "json[]": ['{"{\\"a\\":  1}","null",NULL}'],
    "jsonb[]": ['{"{\\"a\\": 1}","null",NULL}'],
    "numeric[]": ["{1.50,NaN,-Infinity,1e-20,NULL}"],
    "interval[]": ['{"1 day",infinity,NULL}'],
    "time[]": ["{24:00:00,NULL}"],
    "money[]": ["{-92233720368547758.08,NULL}"],
    "inet[]": ["{10.0.0.1,10.0.0.0/8,NULL}"],
    "bit(3)[]": ["{101,NULL}"],
    "point[]": ['{"(1,2)",NULL}'],
    "tsvector[]": ["{\"'a':1 'b'\",NULL}"],
    "int4range[]": ['{"[1,5)",empty,NULL}'],
    "int4multirange[]": ['{"{[1,3),[5,9)}",NULL}'],
    "regclass[]": ["{pg_class,NULL}"],
    "good_mood[]": ["{happy,NULL}"],
    "checked_pair[]": ['{"(1,x)","(1,)",NULL}'],
    "vector[]": ['{"[1,2]",NULL}'],
}
"""Arrays whose elements the lake stores as text."""

ALL = {**NATIVE, **CAST_SAMPLES, **TEXTS, **ELEMENTWISE}
COLUMNS = {type_: f"c{number}" for number, type_ in enumerate(ALL)}
"""A column's name for each type."""


def create_table(connection: Connection) -> None:
    """Table ``v`` with a column of every type, in a session whose own texts are none of ours."""
    for statement in (
        "SET datestyle = 'SQL, DMY'",
        "SET timezone = 'America/New_York'",
        "SET intervalstyle = 'iso_8601'",
        *SETUP,
    ):
        connection.execute(statement.encode())
    columns = ", ".join(f"{name} {type_}" for type_, name in COLUMNS.items())
    connection.execute(f"CREATE TABLE v (id int PRIMARY KEY, {columns})".encode())


def insert_samples(connection: Connection) -> int:
    """One row for each place in the lists of samples, NULL where a list is shorter."""
    rows = list(itertools.zip_longest(*ALL.values()))
    connection.execute("SET datestyle = 'ISO, YMD'")
    connection.execute("SET intervalstyle = 'postgres'")
    casts = ", ".join(f"%s::{type_}" for type_ in ALL)
    for number, values in enumerate(rows):
        connection.execute(f"INSERT INTO v VALUES ({number}, {casts})".encode(), values)
    return len(rows)


def selected(dsn: str) -> list[dict[str, Any]]:
    """The table as the server gives it, texts by the output function in the settings the reader promises."""
    columns = [
        f"CASE WHEN {name} IS DISTINCT FROM NULL THEN format('%s', {name}) END AS {name}"
        for name in map(COLUMNS.__getitem__, TEXTS)
    ]
    columns += [f"{_texts_of_elements(COLUMNS[type_])} AS {COLUMNS[type_]}" for type_ in ELEMENTWISE]
    columns += [COLUMNS[type_] for type_ in NATIVE if type_ not in CAST]
    columns += [f"{COLUMNS[type_]}::{cast} AS {COLUMNS[type_]}" for type_, cast in CAST.items()]
    with connect(dsn, "test", "test") as connection:
        cursor = connection.cursor(row_factory=psycopg.rows.dict_row)
        return cursor.execute(
            f"SELECT id, {', '.join(columns)} FROM public.v ORDER BY id".encode()
        ).fetchall()


def _texts_of_elements(column: str) -> str:
    element = f"CASE WHEN {column}[i] IS DISTINCT FROM NULL THEN format('%s', {column}[i]) END"
    texts = f"ARRAY(SELECT {element} FROM generate_subscripts({column}, 1) i)"
    return f"CASE WHEN {column} IS NOT NULL THEN {texts} END"


def comparable(value: Any) -> Any:
    """NaN equals itself, -0.0 differs from 0.0; timestamps of one moment are equal."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value
    return [comparable(item) for item in value] if isinstance(value, list) else value
