"""What cannot be translated is refused with its place before anything of its batch runs."""

from __future__ import annotations

import pytest

from engine.tsql.messages import SyntaxProblem
from engine.tsql.parser import parse
from engine.tsql.rehearsal import rehearse

PLACED = "DECLARE @v int; DECLARE @t TABLE (i int);\nDELETE T;\n  "


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        ("WHILE 1 = 1 UPDATE T SET @v = 1", 15),
        ("SELECT CONVERT(varchar(30), a, 113) FROM T", 31),
        ("SELECT DATEADD(nanosecond, 1, a) FROM T", 10),
        ("SELECT DATEDIFF(nanosecond, a, b) FROM T", 10),
        ("WITH c AS (SELECT a FROM T) UPDATE c SET a = 1", 3),
        ("WITH c AS (SELECT DISTINCT a FROM T) DELETE FROM c", 3),
        ("DELETE TOP (3) t FROM T t JOIN T u ON u.a = t.a", 3),
        ("SELECT FORMAT(a, 'C') FROM T", 10),
        ("SELECT TRY_CAST(a AS int) FROM T", 19),
        ("SELECT TRY_CONVERT(int, a) FROM T", 27),
        ("SELECT TOP 3 WITH TIES a FROM cdc.x_CT ORDER BY a", 3),
        ("SELECT TOP 50 PERCENT a FROM T", 3),
        ("UPDATE t SET a = sys.fn_cdc_map_lsn_to_time(c.l) FROM T t JOIN cdc.x_CT c ON c.a = t.a", 3),
        ("DECLARE @x int = (SELECT CONVERT(varchar(9), a, 131) FROM T)", 48),
        ("DECLARE c CURSOR FOR SELECT TRY_CAST(a AS int) FROM T", 40),
        ("SELECT a FROM cdc.x_CT WHERE a COLLATE Latin1_General_CI_AS = 'x'", 32),
        ("SELECT * FROM cdc.change_tables c CROSS APPLY cdc.fn_cdc_get_all_changes_x(c.a, 1, 2) a", 3),
    ],
)  # fmt: skip
def test_a_form_that_cannot_be_translated_is_refused_with_its_place(statement: str, column: int) -> None:
    with pytest.raises(SyntaxProblem, match=r"is not supported here\. \w") as caught:
        rehearse(parse(f"{PLACED}{statement}"))
    message = caught.value.message
    assert (message.number, message.severity, message.line) == (50040, 15, 3)
    assert message.text.startswith(f"Line 3, column {column}: ")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a, DATEDIFF(month, a, b), DATEPART(weekday, a) FROM gone WHERE b = @x",
        "SELECT TRY_CAST(a AS int) FROM cdc.x_CT",
        "SELECT sys.fn_cdc_is_bit_set(__$operation, __$update_mask) FROM cdc.x_CT",
        "SELECT v.c FROM cdc.x_CT CROSS APPLY (VALUES (a)) v(c) WHERE v.c LIKE '[x]%' AND c > 'a'",
        "SELECT q.b FROM gone CROSS APPLY (SELECT a AS b, b AS a FROM gone2) q WHERE q.b + 1 > 'x'",
        "SELECT FORMAT(a, @x), QUOTENAME(a, @x) FROM gone",
        "SELECT CONVERT(varchar(30), @x, 113)",
        "INSERT gone (a) SELECT a FROM cdc.x_CT",
        "SELECT * INTO #n FROM cdc.fn_cdc_get_net_changes_x(@x, @x, 'all')",
        "SELECT * FROM fn_all_changes_x(NULL, NULL, 'all')",
        "DELETE cdc.change_tables",
        "SELECT * FROM gone g CROSS APPLY cdc.fn_cdc_get_all_changes_x(@x, @x, 'all') c",
        "WITH c AS (SELECT 1 AS a) SELECT * FROM c",
        "INSERT gone DEFAULT VALUES",
        "CREATE TABLE [a] (b int, PRIMARY KEY CLUSTERED ([b] ASC) WITH (PAD_INDEX = OFF)) ON [PRIMARY]",
        "ALTER TABLE gone DROP CONSTRAINT c",
        "DROP INDEX i ON gone",
    ],
)
def test_what_only_the_run_can_tell_is_left_to_it(statement: str) -> None:
    rehearse(parse(f"DECLARE @x binary(10); {statement}"))
