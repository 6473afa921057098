"""Which parts of a change Spark answers, and how its rows fit what they are inserted into."""

from __future__ import annotations

import pytest
from sqlglot import exp

from engine.tsql import statements as st
from engine.tsql.carrying import converted, parts, with_own_expressions
from engine.tsql.names import COLUMNS, ColumnType, query_columns
from engine.tsql.parser import parse

CHANGES = "cdc.fn_cdc_get_net_changes_x(NULL, NULL, 'all')"


def parted(text: str) -> tuple[list[str], str]:
    """What Spark is asked, and what is left for the source."""
    [statement] = parse(text)
    assert isinstance(statement, st.Modify)
    tree = statement.tree
    if isinstance(tree, exp.Insert):
        with_own_expressions(tree, {})
    asked = []
    for number, part in enumerate(parts(tree, {}), 1):
        asked.append(part.query.sql("tsql"))
        part.becomes(f"#{number}")
    return asked, tree.sql("tsql")


@pytest.mark.parametrize(
    ("text", "asked", "left"),
    [
        (
            f"MERGE t USING (SELECT a FROM {CHANGES} WHERE b = 1) s ON s.a = t.a WHEN MATCHED THEN DELETE;",
            [f"SELECT a FROM {CHANGES} WHERE b = 1"],
            "(SELECT * FROM [#1]) AS s ON s.a = t.a",
        ),
        (
            f"MERGE t USING {CHANGES} AS s ON s.a = t.a WHEN MATCHED THEN DELETE;",
            [f"SELECT * FROM {CHANGES}"],
            "USING [#1] AS s ON",
        ),
        (
            "WITH c AS (SELECT a FROM cdc.x_CT) INSERT INTO t SELECT a FROM c",
            ["WITH c AS (SELECT a AS a FROM cdc.x_CT) SELECT a FROM c"],
            "INSERT INTO t SELECT * FROM [#1]",
        ),
        (
            "WITH c AS (SELECT a FROM cdc.x_CT) DELETE t FROM t JOIN c ON c.a = t.a",
            ["SELECT a FROM cdc.x_CT"],
            "WITH c AS (SELECT * FROM [#1]) DELETE",
        ),
        (
            "UPDATE t SET b = c.b FROM t JOIN cdc.x_CT c ON c.a = t.a WHERE c.b IN (SELECT b FROM u)",
            ["SELECT * FROM cdc.x_CT"],
            "JOIN [#1] AS c ON c.a = t.a WHERE c.b IN (SELECT b FROM u)",
        ),
        (
            "DELETE t WHERE a IN (SELECT a FROM cdc.x_CT) OR b = (SELECT MAX(b) FROM cdc.y_CT)",
            ["SELECT a FROM cdc.x_CT", "SELECT MAX(b) FROM cdc.y_CT"],
            "a IN (SELECT * FROM [#1]) OR b = (SELECT * FROM [#2])",
        ),
        (
            "INSERT t SELECT c.a, u.b FROM cdc.x_CT c JOIN u ON u.a = c.a",
            ["SELECT * FROM cdc.x_CT"],
            "FROM [#1] AS c JOIN u ON u.a = c.a",
        ),
        (
            "INSERT t SELECT sys.fn_cdc_map_lsn_to_time(c.l) FROM cdc.x_CT c JOIN u ON u.a = c.a",
            ["SELECT sys.FN_CDC_MAP_LSN_TO_TIME(c.l) FROM cdc.x_CT AS c JOIN u ON u.a = c.a"],
            "INSERT INTO t SELECT * FROM [#1]",
        ),
        ("INSERT t SELECT a FROM u", [], "INSERT INTO t SELECT a FROM u"),
    ],
)
def test_the_largest_query_that_reads_only_changes_is_asked_whole(
    text: str, asked: list[str], left: str
) -> None:
    found, rest = parted(text)
    assert [each.lower() for each in found] == [each.lower() for each in asked]
    assert left.lower() in rest.lower()


def test_a_captured_column_keeps_the_sources_type_through_derived_tables() -> None:
    [statement] = parse(
        "SELECT x AS y, s.*, UPPER(x) AS z FROM (SELECT a AS x, MAX(a) AS m FROM t GROUP BY a) s"
    )
    assert isinstance(statement, st.Query)
    [table] = statement.query.find_all(exp.Table)
    table.meta[COLUMNS] = {"a": ("a", ColumnType.of("nvarchar", "uuid"))}
    types = {
        name: getattr(type_, "source_type", None) for name, type_ in query_columns(statement.query).values()
    }
    assert types == {"y": "uuid", "x": "uuid", "m": None, "z": None}


@pytest.mark.parametrize(
    ("have", "need", "expected"),
    [
        ("integer", "bigint", '"c"'),
        ("numeric(5,2)", "numeric(3,1)", '"c"'),
        ("character varying(9)", "character(2)", '"c"'),
        ("timestamp(3) without time zone", "date", '"c"'),
        ("integer", "character varying(9)", 'CAST("c" AS text)'),
        ("text", "uuid", 'CAST("c" AS uuid)'),
        ("text", "numeric(5,2)", 'CAST("c" AS numeric)'),
        ("boolean", "smallint", 'CAST("c" AS integer)'),
        ("bigint", "boolean", 'CAST(CAST("c" AS integer) AS boolean)'),
        ("text", "boolean", 'CAST("c" AS boolean)'),
        ("jsonb", "text", 'CAST("c" AS text)'),
    ],
)
def test_values_are_converted_where_an_assignment_is_not_enough(have: str, need: str, expected: str) -> None:
    assert converted("c", have, need).sql("postgres") == expected
