"""docs/types.md against the code and the server: no type, no value, no word of a log line only claimed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from engine.sources.postgres import columns, log, server_values
from engine.sources.postgres.connection import Connection, connect
from engine.sources.postgres.types import NUMERIC, TypeCatalog
from tests.sources.conftest import Source

DOCUMENT = (Path(__file__).parents[2] / "docs" / "types.md").read_text()

TYPES_OF_COLUMNS = """
SELECT t.oid, t.typarray, format_type(t.oid, NULL) FROM pg_type t
LEFT JOIN pg_type e ON e.oid = t.typelem
WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype IN ('b', 'r', 'm')
  AND e.typarray IS DISTINCT FROM t.oid
"""
"""What a table may have: no pseudo-type, no row type of the catalog's own; arrays go with their elements."""


def table(heading: str) -> list[list[str]]:
    """Cells of the rows of the table below a heading."""
    section = DOCUMENT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def quoted(cell: str) -> list[str]:
    return re.findall("`([^`]*)`", cell)


COLUMNS = table("Columns")
NAMED = {
    name: quoted(lake)[0]
    for types, lake, _ in COLUMNS
    for name in quoted(types)
    if re.fullmatch(r'["\w ]+', name)
}
EDGES = table("Values at the edges")


@pytest.fixture
def connection(source_dsn: str) -> Iterator[Connection]:
    with connect(source_dsn, "test", "test") as connection:
        yield connection


def test_every_type_of_the_server_is_named_and_mapped_so(connection: Connection) -> None:
    rows = connection.execute(TYPES_OF_COLUMNS).fetchall()
    types = TypeCatalog(connection).column_types((oid, -1) for oid, _, _ in rows)
    mapped = {name: type_.lake_type for (_, _, name), type_ in zip(rows, types, strict=True)}
    assert mapped == NAMED


def test_arrays_are_those_of_their_elements(connection: Connection) -> None:
    rows = [row for row in connection.execute(TYPES_OF_COLUMNS).fetchall() if row[1]]
    types = TypeCatalog(connection).column_types((array, -1) for _, array, _ in rows)
    assert {name: type_.lake_type for (_, _, name), type_ in zip(rows, types, strict=True)} == {
        name: f"array<{NAMED[name]}>" for _, _, name in rows
    }


def test_numeric_is_mapped_by_its_precision_and_scale(connection: Connection) -> None:
    near = range(-42, 43)
    shapes = [(p, s) for p, s in product([*near, 1000], [*near, -1000, 1000]) if p > 0]
    types = TypeCatalog(connection).column_types((NUMERIC, ((p << 16) | (s & 0x7FF)) + 4) for p, s in shapes)
    for (p, s), type_ in zip(shapes, types, strict=True):
        assert type_.source_type == f"numeric({p},{s})"
        assert type_.lake_type == documented_numeric(p, s), type_.source_type


def documented_numeric(p: int, s: int) -> str:
    """The lake type by the first row whose condition, an expression of p and s, holds."""
    for types, lake, _ in COLUMNS:
        name, _, conditions = types.partition(", ")
        condition = conditions.replace("any other", "True").replace(", ", " and ")
        if name == "`numeric(p,s)`" and eval(condition, {"p": p, "s": s}):
            head, *sizes = re.split("[(,)]", quoted(lake)[0])
            values = [str(eval(size, {"p": p, "s": s})) for size in sizes if size]
            return f"{head}({','.join(values)})" if values else head
    raise AssertionError(f"numeric({p},{s}) has no row")


def test_types_of_ones_own_follow_the_rules(connection: Connection) -> None:
    for statement in (
        "CREATE TYPE mood AS ENUM ('sad')",
        "CREATE TYPE pair AS (a int, b text)",
        "CREATE TYPE span AS RANGE (subtype = float8)",
        "CREATE TABLE plain (a int)",
        "CREATE DOMAIN price AS numeric(8,2)",
        "CREATE DOMAIN low_price AS price",
        "CREATE DOMAIN ids AS int[]",
        "CREATE EXTENSION vector",
        "CREATE TABLE own (a mood, b pair, c span, d span_multirange, e plain, f vector(3), g mood[],"
        " h price, i low_price, j ids, k price[], l ids[], m pair[], n numeric(8,2)[], o price[][])",
    ):
        connection.execute(f"SET search_path = public; {statement}".encode())
    rows = connection.execute(
        "SELECT atttypid, atttypmod FROM pg_attribute"
        " WHERE attrelid = 'own'::regclass AND attnum > 0 ORDER BY attnum"
    ).fetchall()
    assert [type_.lake_type for type_ in TypeCatalog(connection).column_types(rows)] == [
        *["string"] * 6,
        "array<string>",
        *["decimal(8,2)"] * 2,
        "array<int>",
        "array<decimal(8,2)>",
        "array<array<int>>",
        "array<string>",
        *["array<decimal(8,2)>"] * 2,
    ]


@pytest.mark.parametrize("binary", [True, False])
def test_values_at_the_edges_come_as_written(source: Source, binary: bool) -> None:
    names = [f"c{number}" for number in range(len(EDGES))]
    definition = ", ".join(f"{name} {quoted(row[0])[0]}" for name, row in zip(names, EDGES, strict=True))
    source.sql(f"CREATE TABLE edges (id int PRIMARY KEY, {definition})")
    source.track("edges")
    source.pieces()
    source.sql(
        "INSERT INTO edges VALUES (1" + ", %s" * len(EDGES) + ")", *(quoted(row[1])[0] for row in EDGES)
    )
    source.log._binary = binary
    with capture_logs() as logs:
        ((_, _, *values),) = source.rows()
    words = {said["column"]: said["event"] for said in logs}
    assert len(logs) == len(words)
    for name, row, value in zip(names, EDGES, values, strict=True):
        type_, given, stored, replaced = row
        assert (str(value), words.get(name, "")) == (quoted(stored)[0], replaced), (type_, given)


def test_log_lines_are_in_the_words_of_the_code() -> None:
    code = "".join(Path(str(module.__file__)).read_text() for module in (columns, log, server_values))
    lines = [
        "log is read as text",
        "bytes that are not UTF-8 written as \\xNN",
        "values kept as hex digits: the server cannot read their type",
        "array of several dimensions stored as one list",
        "array that does not begin at 1 stored without its subscripts",
    ]
    for line in lines:
        assert line in DOCUMENT
        assert line.replace("\\", "\\\\") in code
