"""Names that the catalog may hold, whatever they are, stay names on the whole way of a table."""

from __future__ import annotations

from dataclasses import replace

import sqlglot
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import sql

from engine.lake.sql_text import delta_table, quoted
from tests.sources.conftest import Source, placed_rows

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=15).filter(
    lambda name: len(name.encode()) <= 63 and not name.startswith("pg_")
)
WORST = [
    '"; DROP SCHEMA cdc CASCADE; --',
    "'; DROP TABLE x; --",
    "$body$",
    "%s %(a)s",
    "\\'; \\",
    "{}`'\"",
    "\n--",
]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(schema=names, table=names, column=names, value=names)
@example(schema=WORST[0], table=WORST[1], column=WORST[2], value=WORST[3])
@example(schema=WORST[3], table=WORST[4], column=WORST[5], value=WORST[6])
@example(schema=WORST[6], table=WORST[0], column=WORST[0], value=WORST[0])
@example(schema="a.b", table=WORST[5], column=WORST[1], value=WORST[5])
def test_a_table_of_any_name_is_tracked_read_and_left(
    source: Source, schema: str, table: str, column: str, value: str
) -> None:
    space, full, field = sql.Identifier(schema), sql.Identifier(schema, table), sql.Identifier(column)
    run = source.connection.execute
    if schema not in ("public", "cdc", "information_schema"):
        run(sql.SQL("CREATE SCHEMA {}").format(space))
    run(sql.SQL("CREATE TABLE {} ({} text PRIMARY KEY)").format(full, field))
    run("CREATE TABLE public.plain (id int PRIMARY KEY)")
    try:
        found = source.admin.table(schema, table)
        assert found is not None
        assert (found.schema, found.name, found.columns[0].name) == (schema, table, column)
        assert found in source.admin.tables()
        instance = replace(
            source.instance("plain", name=f"{schema}_{table}"),
            source_schema=schema,
            source_table=table,
            source_object_id=found.source_object_id,
            columns=(),
            index_columns=(),
            source_columns=found.shape,
        )
        source.admin.enable_table(instance)
        run(sql.SQL("INSERT INTO {} VALUES ({})").format(full, sql.Literal(value)))
        run(sql.SQL("ALTER TABLE {} ADD more int").format(full))
        assert list(source.admin.tracking_problems([instance])) == []
        pieces = source.pieces()
        assert [row[2:] for row in placed_rows(pieces)] == [(table, 2, value)]
        [relation] = [changes.relation for piece in pieces for changes in piece.changes]
        assert (relation.schema, relation.columns[0].name) == (schema, column)
        source.admin.disable_table(instance, last_of_table=True)
        assert source.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'cdc'") == [(1,)]
    finally:
        run(sql.SQL("DROP TABLE public.plain, {}").format(full))
        if schema not in ("public", "cdc", "information_schema"):
            run(sql.SQL("DROP SCHEMA {}").format(space))


@given(names, st.text(max_size=20))
def test_any_name_is_one_identifier_of_spark(name: str, path: str) -> None:
    [token] = sqlglot.tokenize(quoted(name), read="spark")
    assert (token.token_type, token.text) == (sqlglot.TokenType.IDENTIFIER, name)
    delta, dot, table = sqlglot.tokenize(delta_table(path or "x"), read="spark")
    assert (delta.text, dot.text, table.text) == ("delta", ".", path or "x")
