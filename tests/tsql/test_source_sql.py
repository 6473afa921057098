"""T-SQL for the source: names as created, values as literals, nothing that escapes its place."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from engine.sources.sql_session import SourceRelation
from engine.tsql import statements
from engine.tsql.evaluation import Evaluator
from engine.tsql.folding import source_literal, spark_literal
from engine.tsql.messages import SqlError
from engine.tsql.parser import parse
from engine.tsql.rewriting import understood
from engine.tsql.source_sql import SourceTranslator
from engine.tsql.types import DATETIME, INT, LSN, TEXT, SqlType, Value

TABLES = (
    SourceRelation(
        "dbo",
        "MyTable",
        {
            "ID": "integer",
            "Name": "character varying(20)",
            "Flag": "boolean",
            "Data": "bytea",
            "When": "timestamp",
        },
    ),
    SourceRelation("Hr", "Dept", {"DeptID": "integer", "Name": "text"}, key=("DeptID",)),
    SourceRelation("pg_temp_3", "@t", {"a": "text"}, is_temporary=True),
    SourceRelation("pg_temp_3", "#x", {"b": "text"}, is_temporary=True),
)


class Session:
    """Some variables, one moment, no CDC."""

    def variable(self, name: str) -> Value:
        values = {"@i": Value(INT, 5), "@s": Value(TEXT, "o'b\\"), "@l": Value(LSN, bytes(10))}
        return values.get(name, Value(TEXT, None))

    def function(self, name: str, arguments: Sequence[Value]) -> Value:
        return Value(DATETIME, datetime(2026, 1, 2, 3, 4, 5))

    def first_value(self, query: exp.Query) -> Value:
        raise AssertionError

    def has_rows(self, query: exp.Query) -> bool:
        raise AssertionError

    def column(self, query: exp.Query) -> Sequence[Value]:
        raise AssertionError


def translated(text: str, tables: Sequence[SourceRelation] = TABLES) -> tuple[str, ...]:
    *_, statement = parse(
        f"DECLARE @i int, @s nvarchar(9), @l binary(10), @n int; DECLARE @t TABLE (a int); {text}"
    )
    translator = SourceTranslator(
        lambda names: [each for each in tables if each.name.lower() in {name.lower() for name in names}],
        Evaluator(Session()),
    )
    translator.schemas = ["dbo", "Hr"]
    if isinstance(statement, statements.Query):
        return translator.query(statement.query).statements
    if isinstance(statement, statements.Modify):
        return translator.modification(statement.tree).statements
    assert isinstance(statement, statements.Define)
    return translator.definition(statement.tree).statements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT id, [name] + 'x' AS Y FROM mytable WHERE flag = 1 AND name = @s ORDER BY y",
            'SELECT "ID", "Name" || \'x\' AS "Y" FROM "dbo"."MyTable" AS "mytable"'
            ' WHERE "Flag" = TRUE AND "Name" = \'o\'\'b\\\' ORDER BY "Y" NULLS FIRST',
        ),
        (
            "SELECT m.NAME, d.name FROM dbo.MYTABLE m JOIN hr.dept AS D ON d.deptid = m.id",
            'SELECT "m"."Name", "D"."Name" FROM "dbo"."MyTable" AS "m" JOIN "Hr"."Dept" AS "D"'
            ' ON "D"."DeptID" = "m"."ID"',
        ),
        (
            "SELECT q.N FROM (SELECT name AS n FROM mytable) q WHERE EXISTS (SELECT 1 FROM @t WHERE A = q.n)",
            'SELECT "q"."n" FROM (SELECT "Name" AS "n" FROM "dbo"."MyTable" AS "mytable") AS "q"'
            ' WHERE EXISTS(SELECT 1 FROM "@t" AS "@t" WHERE "a" = "q"."n")',
        ),
        (
            "INSERT mytable (id, FLAG, data) VALUES (@i, 0, 0xAB)",
            'INSERT INTO "dbo"."MyTable" ("ID", "Flag", "Data") VALUES (5, FALSE, CAST(\'\\xab\' AS BYTEA))',
        ),
        (
            "UPDATE m SET m.name = d.name, flag = 1 FROM mytable m JOIN hr.dept d ON d.deptid = m.id",
            'UPDATE "dbo"."MyTable" AS "m" SET "Name" = "d"."Name", "Flag" = TRUE'
            ' FROM "Hr"."Dept" AS "d" WHERE "d"."DeptID" = "m"."ID"',
        ),
        (
            "DELETE m FROM mytable m INNER JOIN hr.dept d ON d.deptid = m.id",
            'DELETE FROM "dbo"."MyTable" AS "m" USING "Hr"."Dept" AS "d" WHERE "d"."DeptID" = "m"."ID"',
        ),
        (
            "UPDATE m SET name = d.name, flag = 0 FROM mytable m LEFT JOIN hr.dept d ON d.deptid = m.id"
            " WHERE id > 1",
            'UPDATE "dbo"."MyTable" AS "highwater target" SET "Name" = "d"."Name", "Flag" = FALSE'
            ' FROM "dbo"."MyTable" AS "m" LEFT JOIN "Hr"."Dept" AS "d" ON "d"."DeptID" = "m"."ID"'
            ' WHERE ("highwater target"."ID" > 1 AND "highwater target"."ctid" = "m"."ctid")'
            ' AND "highwater target"."tableoid" = "m"."tableoid"',
        ),
        (
            "UPDATE mytable SET flag = 1 FROM MyTable m JOIN hr.dept d ON d.deptid = m.id",
            'UPDATE "dbo"."MyTable" AS "m" SET "Flag" = TRUE FROM "Hr"."Dept" AS "d"'
            ' WHERE "d"."DeptID" = "m"."ID"',
        ),
        (
            "DELETE FROM mytable FROM mytable m JOIN hr.dept d ON d.deptid = m.id WHERE d.deptid = 3",
            'DELETE FROM "dbo"."MyTable" AS "m" USING "Hr"."Dept" AS "d"'
            ' WHERE "d"."DeptID" = 3 AND "d"."DeptID" = "m"."ID"',
        ),
        (
            "UPDATE mytable SET flag = 1 FROM mytable JOIN mytable n ON n.id = mytable.id + 1",
            'UPDATE "dbo"."MyTable" SET "Flag" = TRUE FROM "dbo"."MyTable" AS "n"'
            ' WHERE "n"."ID" = "MyTable"."ID" + 1',
        ),
        (
            "DELETE hr.dept FROM hr.dept LEFT JOIN mytable m ON m.id = dept.deptid WHERE m.id IS NULL",
            'DELETE FROM "Hr"."Dept" AS "highwater target"'
            ' USING "Hr"."Dept" AS "dept" LEFT JOIN "dbo"."MyTable" AS "m" ON "m"."ID" = "dept"."DeptID"'
            ' WHERE "m"."ID" IS NULL AND "highwater target"."DeptID" = "dept"."DeptID"',
        ),
        (
            "SELECT TOP (3) WITH TIES id FROM mytable ORDER BY name",
            'SELECT "ID" FROM "dbo"."MyTable" AS "mytable" ORDER BY "Name" NULLS FIRST'
            " FETCH FIRST 3 ROWS WITH TIES",
        ),
        (
            "SELECT QUOTENAME(name), STUFF(name, 1, 1, ''), CHOOSE(id, 'a', name) FROM mytable",
            "SELECT ('[' || REPLACE(\"Name\", ']', ']]') || ']'), CASE WHEN 1 BETWEEN 1 AND LENGTH(\"Name\")"
            " THEN OVERLAY(\"Name\", COALESCE('', ''), 1, 1) END,"
            ' CASE "ID" WHEN 1 THEN \'a\' WHEN 2 THEN "Name" END'
            ' FROM "dbo"."MyTable" AS "mytable"',
        ),
        (
            "SELECT FORMAT([when], 'yyyy-MM-dd HH:mm'), FORMAT(id, 'N0'), DATENAME(month, [when])"
            " FROM mytable",
            'SELECT TO_CHAR("When", \'YYYY"-"MM"-"DD" "HH24":"MI\'),'
            " TO_CHAR(\"ID\", 'FM999,999,999,999,999,990'), TO_CHAR(\"When\", 'FMMonth')"
            ' FROM "dbo"."MyTable" AS "mytable"',
        ),
        (
            "SELECT name FROM mytable WHERE name LIKE '[^a-c_]%[[]x'"
            " OR name LIKE 'a\\b%' OR name LIKE 'a!_' ESCAPE '!'",
            'SELECT "Name" FROM "dbo"."MyTable" AS "mytable" WHERE "Name" ~ \'^[^a-c\\_].*[\\[]x$\''
            " OR \"Name\" LIKE 'a\\\\b%' OR \"Name\" LIKE 'a!_' ESCAPE '!'",
        ),
        (
            "UPDATE mytable SET id += 1 * 2, name += 'x' WHERE id = 1",
            'UPDATE "dbo"."MyTable" SET "ID" = "ID" + 2, "Name" = "Name" || \'x\' WHERE "ID" = 1',
        ),
        (
            "DELETE FROM mytable OUTPUT deleted.id WHERE id = 1",
            'DELETE FROM "dbo"."MyTable" WHERE "ID" = 1 RETURNING "MyTable"."ID"',
        ),
        (
            "SELECT (SELECT ', ' + name FROM mytable ORDER BY id FOR XML PATH('')) AS n FROM @t",
            "SELECT (SELECT STRING_AGG(REPLACE(REPLACE(REPLACE(', ' || \"Name\", '&', '&amp;'),"
            " '<', '&lt;'), '>', '&gt;'), '' ORDER BY \"ID\" NULLS FIRST)"
            ' FROM "dbo"."MyTable" AS "mytable") AS "n" FROM "@t" AS "@t"',
        ),
        (
            "DELETE TOP (@i) FROM mytable OUTPUT deleted.id WHERE id > 1",
            'DELETE FROM "dbo"."MyTable" WHERE ("ctid", "tableoid") IN (SELECT "ctid", "tableoid"'
            ' FROM "dbo"."MyTable" AS "mytable" WHERE "ID" > 1 LIMIT 5) RETURNING "MyTable"."ID"',
        ),
        (
            "UPDATE TOP (2) hr.dept SET name = 'x'",
            'UPDATE "Hr"."Dept" SET "Name" = \'x\' WHERE ("DeptID") IN (SELECT "DeptID"'
            ' FROM "Hr"."Dept" AS "dept" LIMIT 2)',
        ),
        (
            "WITH d AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY name ORDER BY deptid) AS n FROM hr.dept)"
            " DELETE FROM d WHERE n > 1",
            'WITH "d" AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY "Name" ORDER BY "DeptID" NULLS FIRST)'
            ' AS "n", "DeptID" AS "highwater key 0" FROM "Hr"."Dept" AS "dept") DELETE FROM "Hr"."Dept"'
            ' WHERE ("DeptID") IN (SELECT "highwater key 0" FROM "d" WHERE "n" > 1)',
        ),
        (
            "SELECT AVG(id), AVG(id) OVER (), CAST(AVG(1.0 * id) AS int), [when] - 1 FROM mytable",
            'SELECT CAST(TRUNC(AVG("ID")) AS BIGINT), CAST(TRUNC(AVG("ID") OVER ()) AS BIGINT),'
            ' CAST(TRUNC(AVG(1.0 * "ID")) AS INT), ("When" + (-1) * INTERVAL \'1 DAY\')'
            ' FROM "dbo"."MyTable" AS "mytable"',
        ),
        (
            "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n",
            'WITH RECURSIVE "n" AS (SELECT 1 AS "i" UNION ALL SELECT "i" + 1 FROM "n" WHERE "i" < 3)'
            ' SELECT "i" FROM "n"',
        ),
        (
            "SELECT name + CASE WHEN id = 1 THEN 'x' ELSE name END FROM mytable",
            'SELECT "Name" || CASE WHEN "ID" = 1 THEN \'x\' ELSE "Name" END'
            ' FROM "dbo"."MyTable" AS "mytable"',
        ),
        (
            "SELECT q.n + ';' FROM (SELECT MAX(name) + 'x' AS n FROM mytable) q",
            'SELECT "q"."n" || \';\' FROM (SELECT MAX("Name") || \'x\' AS "n"'
            ' FROM "dbo"."MyTable" AS "mytable") AS "q"',
        ),
        (
            "CREATE TABLE N (a int, n nvarchar(10), b AS (a * 2), [c d] AS n + 'x' PERSISTED NOT NULL)",
            'CREATE TABLE "dbo"."N" ("a" INT, "n" VARCHAR(10),'
            ' "b" text GENERATED ALWAYS AS (("a" * 2)) STORED,'
            ' "c d" text GENERATED ALWAYS AS ("n" || \'x\') STORED NOT NULL)',
        ),
        ("DELETE mytable", 'DELETE FROM "dbo"."MyTable"'),
        (
            "SELECT TOP (2) name INTO #y FROM mytable ORDER BY id DESC",
            'CREATE TEMPORARY TABLE "#y" AS SELECT "Name" FROM "dbo"."MyTable" AS "mytable"'
            ' ORDER BY "ID" DESC NULLS LAST LIMIT 2',
        ),
        (
            "INSERT INTO mytable (id) OUTPUT inserted.id VALUES (7)",
            'INSERT INTO "dbo"."MyTable" ("ID") VALUES (7) RETURNING "ID"',
        ),
        (
            "CREATE TABLE New1 (a int IDENTITY(1,1) PRIMARY KEY CLUSTERED, b bit NOT NULL DEFAULT 0,"
            " c datetime2(7) DEFAULT GETDATE(), d nvarchar(max), e varchar(5) COLLATE Latin1_General_BIN,"
            " f int REFERENCES mytable (id), g varbinary(max), h money)",
            'CREATE TABLE "dbo"."New1" ("a" INT GENERATED BY DEFAULT AS IDENTITY'
            " (START WITH 1 INCREMENT BY 1)"
            ' PRIMARY KEY, "b" BOOLEAN NOT NULL DEFAULT FALSE, "c" TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP,'
            ' "d" TEXT, "e" VARCHAR(5), "f" INT REFERENCES "dbo"."MyTable" ("ID"), "g" BYTEA,'
            ' "h" DECIMAL(19, 4))',
        ),
        ("ALTER TABLE hr.DEPT ADD Test int NULL", 'ALTER TABLE "Hr"."Dept" ADD COLUMN "Test" INT NULL'),
        ("DROP TABLE IF EXISTS mytable, gone", 'DROP TABLE "dbo"."MyTable"'),
        ("TRUNCATE TABLE #x", 'TRUNCATE TABLE "#x"'),
        (
            "CREATE UNIQUE NONCLUSTERED INDEX AK ON mytable (name)",
            'CREATE UNIQUE INDEX "AK" ON "dbo"."MyTable"("Name" NULLS FIRST)',
        ),
    ],
)
def test_statements_of_the_source(text: str, expected: str) -> None:
    [statement] = translated(text)
    assert statement == expected


def test_type_and_nullability_of_a_column_change_one_by_one() -> None:
    assert translated("ALTER TABLE mytable ALTER COLUMN name nvarchar(50) NOT NULL") == (
        'ALTER TABLE "dbo"."MyTable" ALTER COLUMN "Name" SET DATA TYPE VARCHAR(50)',
        'ALTER TABLE "dbo"."MyTable" ALTER COLUMN "Name" SET NOT NULL',
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("SELECT 1 FROM gone", 208),
        ("SELECT 1 FROM generate_series(1, 2)", 208),
        ("DROP TABLE gone", 3701),
        ("INSERT mytable (nope) VALUES (1)", 207),
        ("UPDATE mytable SET flag = 1 FROM mytable a JOIN mytable b ON b.id = a.id + 1", 8154),
    ],
)
def test_what_the_source_is_not_asked(text: str, number: int) -> None:
    with pytest.raises(SqlError) as caught:
        translated(text)
    assert caught.value.message.number == number


def test_of_names_that_differ_only_in_case_the_one_written_so_is_meant() -> None:
    tables = [SourceRelation("dbo", "T", {"A": "integer"}), SourceRelation("dbo", "t", {"a": "integer"})]
    assert translated("SELECT a FROM T", tables) == ('SELECT "A" FROM "dbo"."T" AS "T"',)
    assert translated("SELECT a FROM t", tables) == ('SELECT "a" FROM "dbo"."t" AS "t"',)
    with pytest.raises(SqlError, match=r"ambiguous.*dbo\.T, dbo\.t"):
        translated("SELECT a FROM DBO.T", [*tables, SourceRelation("Dbo", "T", {})])


_NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(_NAMES, _NAMES, _NAMES)
def test_hostile_names_stay_names(schema: str, table: str, column: str) -> None:
    if table.startswith(("#", "@")):
        return
    relation = SourceRelation(schema, table, {column: "text"})
    brackets = ["[" + name.replace("]", "]]") + "]" for name in (schema, table, column)]
    [text] = translated(f"SELECT {brackets[2]} FROM {brackets[0]}.{brackets[1]} AS z", [relation])
    quoted = ['"' + name.replace('"', '""') + '"' for name in (schema, table, column)]
    assert text == f'SELECT {quoted[2]} FROM {quoted[0]}.{quoted[1]} AS "z"'


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_hostile_text_stays_text(text: str) -> None:
    value = Value(TEXT, text)
    assert source_literal(value).sql("postgres") == "'" + text.replace("'", "''") + "'"
    spark = spark_literal(value).sql("spark")
    [token] = sqlglot.tokenize(spark, read="spark")
    assert token.text == text


@given(st.binary(max_size=12))
def test_bytes_stay_bytes(raw: bytes) -> None:
    value = Value(SqlType("varbinary", 12), raw)
    assert source_literal(value).sql("postgres") == f"CAST('\\x{raw.hex()}' AS BYTEA)"
    assert spark_literal(value).sql("spark") == f"X'{raw.hex().upper()}'"


def test_a_tree_that_nobody_thought_of_is_refused() -> None:
    with pytest.raises(SqlError, match="not supported"), understood():
        exp.Select().args["expressions"]
