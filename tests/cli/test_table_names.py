"""Names of tables as they are written on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.table_names import parse_table_name, schema_of
from engine.errors import TableMissing

NAMES = st.text(min_size=1)


@pytest.mark.parametrize(
    ("text", "schema", "table"),
    [
        ("HumanResources.Department", "HumanResources", "Department"),
        ("orders", None, "orders"),
        ('"my.schema"."my table"', "my.schema", "my table"),
        ("[my.schema].[T]", "my.schema", "T"),
        ('public."a""b"', "public", 'a"b'),
        ("[a]]b].c", "a]b", "c"),
        ("Größe.Maß", "Größe", "Maß"),
        ("öffentlich.two words", "öffentlich", "two words"),
    ],
)
def test_names(text, schema, table):
    assert parse_table_name(text) == (schema, table)


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a.b.c", '"a', "[a", 'a"b', '"a"b', "a..b", '""', "[]"]
)
def test_what_is_no_name(text):
    with pytest.raises(ValueError, match="is not a table name"):
        parse_table_name(text)


@given(NAMES, NAMES)
def test_any_name_can_be_quoted(schema, table):
    quoted = '"{}"."{}"'.format(schema.replace('"', '""'), table.replace('"', '""'))
    bracketed = "[{}].[{}]".format(schema.replace("]", "]]"), table.replace("]", "]]"))
    assert parse_table_name(quoted) == parse_table_name(bracketed) == (schema, table)


def test_the_schema_of_a_table_that_only_one_has():
    assert schema_of("t", [("a", "t"), ("b", "u")]) == "a"


def test_a_table_in_several_schemas_must_be_named_in_full():
    with pytest.raises(ValueError, match=r"name one of a\.t, b\.t"):
        schema_of("t", [("b", "t"), ("a", "t")])


def test_a_table_that_no_schema_has():
    with pytest.raises(TableMissing):
        schema_of("t", [("a", "T")])
