"""What a batch says, and what it is refused for."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as hypothesis

from engine.tsql import statements as st
from engine.tsql.messages import SyntaxProblem
from engine.tsql.parser import parse


def kinds(text: str) -> list[type[st.Statement]]:
    return [type(statement) for statement in parse(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (";;", []),
        ("DECLARE @x int = 1 SET @x += 1 SELECT @x", [st.Declare, st.Assign, st.Query]),
        (
            "DECLARE @end int, @case int SELECT @end = @case IF @end = 1 SET @case = @end",
            [st.Declare, st.SelectAssign, st.If],
        ),
        ("DECLARE @x int SELECT @x = 1 PRINT @x", [st.Declare, st.SelectAssign, st.Print]),
        ("IF 1 = 1 PRINT 'a' ELSE PRINT 'b' PRINT 'c'", [st.If, st.Print]),
        ("IF 1 = 1 BEGIN PRINT 'a'; PRINT 'b' END; ELSE PRINT 'c'", [st.If]),
        ("DECLARE @i int = 0 WHILE @i < 3 BEGIN SET @i += 1 IF @i = 2 BREAK END", [st.Declare, st.While]),
        ("BEGIN TRY SELECT 1/0 END TRY BEGIN CATCH PRINT ERROR_MESSAGE(); THROW END CATCH", [st.TryCatch]),
        ("INSERT t (a) VALUES (1) INSERT INTO t SELECT 2 UPDATE t SET a = 3 DELETE t", [st.Modify] * 4),
        ("INSERT INTO t SELECT 1 UNION ALL SELECT 2 SELECT 3", [st.Modify, st.Query]),
        ("INSERT t (a) VALUES (1) EXEC p INSERT t DEFAULT VALUES EXEC p", [st.Modify, st.Execute] * 2),
        (
            "WITH c AS (SELECT 1 AS a) SELECT * FROM c; WITH d AS (SELECT 1 AS a) DELETE t",
            [st.Query, st.Modify],
        ),
        ("SELECT a FROM t ORDER BY a OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY SELECT 2", [st.Query, st.Query]),
        ("SELECT CASE WHEN 1 = 1 THEN 2 ELSE 3 END SELECT 4", [st.Query, st.Query]),
        ("ALTER TABLE t ADD a int NULL ALTER TABLE t DROP COLUMN b DROP TABLE IF EXISTS t", [st.Define] * 3),
        (
            "CREATE TABLE t (a int PRIMARY KEY CLUSTERED REFERENCES u (a) ON DELETE CASCADE) SELECT 1",
            [st.Define, st.Query],
        ),
        ("EXEC sp_a 1, @b = 2 EXEC sp_c", [st.Execute, st.Execute]),
        ("sp_help", [st.Execute]),
        ("EXEC ('SELECT 1')", [st.ExecuteText]),
        ("DECLARE @t TABLE (a int) INSERT INTO @t EXEC p", [st.DeclareTable, st.InsertExecute]),
        (
            "DECLARE #c CURSOR LOCAL FAST_FORWARD FOR SELECT 1 OPEN #c CLOSE #c DEALLOCATE #c",
            [st.DeclareCursor, st.CursorStep, st.CursorStep, st.CursorStep],
        ),
        (
            "BEGIN TRAN SAVE TRAN a ROLLBACK TRAN a COMMIT TRANSACTION",
            [st.Begin, st.Save, st.Rollback, st.Commit],
        ),
        ("USE [a b] SET NOCOUNT ON WAITFOR DELAY '00:00:01'", [st.Use, st.SetOption, st.WaitFor]),
        ("EXEC sp_configure 'show advanced options', 1; RECONFIGURE", [st.Execute, st.Nothing]),
        ("EXECUTE AS USER = 'cdc' REVERT", [st.Impersonate, st.Impersonate]),
        ("RAISERROR('%d', 16, -1, 5) WITH NOWAIT THROW 50001, 'x', 1", [st.RaiseError, st.Throw]),
    ],
)
def test_statements_need_no_semicolons(text: str, expected: list[type[st.Statement]]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("text", "number", "line"),
    [
        ("SELECT @x", 137, 1),
        ("SELECT 1\nSELECT * FROM @t", 1087, 2),
        ("DECLARE @x int\nDECLARE @X int", 134, 2),
        ("SELECT 1 FROM", 102, 1),
        ("\n\nPRINT 'abc", 105, 3),
        ("IF 1 PRINT 'a'", 102, 1),
        ("SELECT 1\nBREAK", 135, 2),
        ("THROW", 10704, 1),
        ("SELECT nothing_like_it(1) FROM t", 195, 1),
        ("SELECT LEFT('a', 1)\nPRINT LEFT('a')", 102, 2),
        ("SELECT DATEADD(fortnight, 1, GETDATE())", 155, 1),
        ("SELECT 1\nGOTO x", 50040, 2),
        ("CREATE PROCEDURE p AS SELECT 1", 50040, 1),
        ("SELECT 1 CREATE FUNCTION f() RETURNS int AS BEGIN RETURN 1 END", 111, 1),
        ("SELECT * FROM t FOR XML AUTO", 50040, 1),
        ("SELECT a FROM t OPTION (RECOMPILE)", 50040, 1),
        ("EXEC p 1 + 2", 50040, 1),
        ("DECLARE @c CURSOR", 50040, 1),
        ("DECLARE @x geography", 50040, 1),
        ("SET ANSI_NULLS OFF", 50040, 1),
        ("PRINT 1 = 1", 102, 1),
        ("SELECT PATINDEX(a, b) FROM t", 50040, 1),
        ("SELECT sys.fn_cdc_increment_lsn(a) FROM t", 50040, 1),
        ("WAITFOR TIME '10:00'", 50040, 1),
        ("DELETE TOP (5) PERCENT FROM t", 50040, 1),
        ("DECLARE @x int SELECT @x = 1, 2", 141, 1),
        ("GRANT SELECT ON t TO u", 50040, 1),
        ("BEGIN PRINT 'a'", 102, 1),
        ("END", 102, 1),
        ("PRINT 1;\n  FORBID", 50040, 2),
    ],
)
def test_what_is_not_understood_is_refused_before_anything_runs(text: str, number: int, line: int) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse(text)
    assert (caught.value.message.number, caught.value.message.line) == (number, line)


def test_a_refusal_says_line_column_and_what_is_supported() -> None:
    with pytest.raises(SyntaxProblem, match=r"Line 2, column 3: .*FORBID.* Supported are DECLARE, SET"):
        parse("PRINT 1;\n  FORBID")


def test_places_are_those_of_the_script() -> None:
    [statement] = parse("\nSELECT 1", first_line=5)
    assert statement.line == 6


def test_arguments_of_a_call() -> None:
    [_, statement] = parse(
        "DECLARE @r int, @l binary(10) EXEC @r = [sys].sp_x N'a', -1, name, @l OUTPUT, @p = DEFAULT".replace(
            "@p", "@q"
        )
    )
    assert isinstance(statement, st.Execute)
    assert (statement.procedure, statement.result) == (("sys", "sp_x"), "@r")
    values = [each.value.sql("tsql") if each.value else None for each in statement.arguments]
    assert values == ["N'a'", "-1", "'name'", "@l", None]
    assert [each.output for each in statement.arguments] == [None, None, None, "@l", None]


@given(hypothesis.text(max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(SyntaxProblem):
        parse(text)


_WORDS = [
    "SELECT", "FROM", "t", "@x", "(", ")", "1", "'a'", "IF", "ELSE", "BEGIN", "END", "TRY", "CATCH",
    "WHILE", "EXEC",
    "INSERT", "UPDATE", "SET", "=", ",", ";", "DECLARE", "int", "CASE", "WHEN", "THEN", "AS", "ORDER BY",
    "TABLE", "DROP",
    "CURSOR", "FOR", "WITH", "UNION", ".", "*", "[a]", "CREATE", "ALTER", "RAISERROR", "PRINT", "TRAN",
    "OUTPUT",
]  # fmt: skip


@given(hypothesis.lists(hypothesis.sampled_from(_WORDS), max_size=14))
def test_any_words_are_parsed_or_refused(words: list[str]) -> None:
    with suppress(SyntaxProblem):
        parse(" ".join(words))
