"""Conversions, arithmetic and functions, by the original's documented examples."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from engine.tsql import statements
from engine.tsql.conversion import convert
from engine.tsql.evaluation import Evaluator
from engine.tsql.formatting import formatted
from engine.tsql.messages import SqlError
from engine.tsql.operators import compare
from engine.tsql.parser import parse
from engine.tsql.types import BIGINT, DATETIME, INT, LSN, TEXT, SqlType, Value, parse_type

NOW = datetime(2026, 11, 21, 14, 5, 6, 789000)


class Nothing:
    """A session that knows one moment."""

    def variable(self, name: str) -> Value:
        return {"@n": Value(INT, None), "@d": Value(DATETIME, NOW)}[name]

    def function(self, name: str, arguments: Sequence[Value]) -> Value:
        return Value(DATETIME, NOW)

    def first_value(self, query: exp.Query) -> Value:
        raise AssertionError

    def has_rows(self, query: exp.Query) -> bool:
        raise AssertionError

    def column(self, query: exp.Query) -> Sequence[Value]:
        raise AssertionError


def evaluated(expression: str) -> Value:
    *_, statement = parse(f"DECLARE @n int, @d datetime PRINT {expression}")
    assert isinstance(statement, statements.Print)
    return Evaluator(Nothing()).value(statement.expression)


@pytest.mark.parametrize(
    ("expression", "expected", "type_"),
    [
        ("7 / 2", 3, "int"),
        ("FORMAT(@d, 'dd/MM/yyyy HH:mm:ss.fff')", "21/11/2026 14:05:06.789", "nvarchar(4000)"),
        ("FORMAT(@d, 'dddd, MMM d ''at'' h tt')", "Saturday, Nov 21 at 2 PM", "nvarchar(4000)"),
        ("FORMAT(@d, 'd')", "11/21/2026", "nvarchar(4000)"),
        ("FORMAT(1234567.891, 'N2')", "1,234,567.89", "nvarchar(4000)"),
        ("FORMAT(7, '000')", "007", "nvarchar(4000)"),
        ("FORMAT(-1234.5, '#,##0.00')", "-1,234.50", "nvarchar(4000)"),
        ("-7 / 2", -3, "int"),
        ("-7 % 3", -1, "int"),
        ("7 / 2.0", Decimal("3.500000"), "decimal(17,6)"),
        ("1 + '2'", 3, "int"),
        ("'a' + 'b'", "ab", "varchar(2)"),
        ("N'a' + 'b'", "ab", "nvarchar(2)"),
        ("0x01 + 0xFF", b"\x01\xff", "varbinary(2)"),
        ("@n + 1", None, "int"),
        ("'a' + NULL", None, "varchar(1)"),
        ("1e1 * 2", 20.0, "float"),
        ("5 & 6 | 8", 12, "int"),
        ("@d - 1", NOW.replace(day=20, microsecond=790000), "datetime"),
        ("CAST(1.5 AS int)", 1, "int"),
        ("CAST('abc' AS varchar(2))", "ab", "varchar(2)"),
        ("CAST(123456 AS varchar(3))", "*", "varchar(3)"),
        ("CONVERT(binary(10), '0x' + '00AB', 1)", bytes([0, 0xAB]) + bytes(8), "binary(10)"),
        ("CONVERT(varchar(30), 0x00AB, 1)", "0x00AB", "varchar(30)"),
        ("CONVERT(varchar(30), 0x00AB, 2)", "00AB", "varchar(30)"),
        ("CAST(1 AS binary(4))", b"\0\0\0\1", "binary(4)"),
        ("CAST(0x0102 AS int)", 258, "int"),
        ("CONVERT(varchar(30), @d, 121)", "2026-11-21 14:05:06.789", "varchar(30)"),
        ("CONVERT(varchar(30), @d, 126)", "2026-11-21T14:05:06.789", "varchar(30)"),
        ("CONVERT(varchar(30), @d, 112)", "20261121", "varchar(30)"),
        ("CAST(@d AS varchar(30))", "Nov 21 2026  2:05PM", "varchar(30)"),
        ("CAST('20070101 12:00' AS datetime)", datetime(2007, 1, 1, 12), "datetime"),
        ("CAST('1/2/2007 3:04 PM' AS datetime)", datetime(2007, 1, 2, 15, 4), "datetime"),
        ("TRY_CAST('x' AS int)", None, "int"),
        ("ISNULL(@n, 5)", 5, "int"),
        ("ISNULL(NULL, 'x')", "x", "varchar(1)"),
        ("COALESCE(@n, NULL, 3)", 3, "int"),
        ("IIF(@n IS NULL, 'yes', 'no')", "yes", "varchar(3)"),
        ("CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' END", "b", "varchar(1)"),
        ("CASE WHEN 'ABC' = 'abc  ' THEN 1 ELSE 0 END", 1, "int"),
        ("CASE WHEN @n = NULL THEN 1 ELSE 0 END", 0, "int"),
        ("CASE WHEN NOT (@n = 1) THEN 1 ELSE 0 END", 0, "int"),
        ("CASE WHEN 2 IN (1, 2) AND 3 BETWEEN 1 AND 5 AND 'Hello' LIKE 'h_l%' THEN 1 END", 1, "int"),
        ("CASE WHEN '50%' LIKE '50!%' ESCAPE '!' AND 'b' LIKE '[a-c]' THEN 1 END", 1, "int"),
        ("LEN('ab ')", 2, "int"),
        ("SUBSTRING('abcdef', 2, 3)", "bcd", "varchar(6)"),
        ("SUBSTRING(0x0102030405, 2, 2)", b"\x02\x03", "varbinary(5)"),
        ("REPLACE('abcABC', 'B', 'x')", "axcAxC", "varchar(max)"),
        ("CHARINDEX('C', 'abc')", 3, "int"),
        ("QUOTENAME('a]b')", "[a]]b]", "nvarchar(258)"),
        ("UPPER('a') + LOWER('B') + LTRIM(' c') + RTRIM('d ')", "Abcd", "varchar(6)"),
        ("CONCAT('a', NULL, 1)", "a1", "nvarchar(max)"),
        ("STUFF('abc', 2, 1, 'xy')", "axyc", "varchar(max)"),
        ("ROUND(2.345, 2)", Decimal("2.350"), "decimal(4,3)"),
        ("DATEADD(month, 1, '2026-01-31')", datetime(2026, 2, 28), "datetime"),
        ("DATEDIFF(day, '2026-01-01 23:59', '2026-01-02 00:01')", 1, "int"),
        ("DATEDIFF(second, '2026-01-01', '2026-01-01 00:01')", 60, "int"),
        ("DATEPART(year, @d) * 100 + MONTH(@d)", 202611, "int"),
        ("DATENAME(month, @d)", "November", "nvarchar(30)"),
    ],
)
def test_expressions(expression: str, expected: Any, type_: str) -> None:
    value = evaluated(expression)
    assert value.value == expected
    assert str(value.type) == type_


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        ("1 / 0", 8134),
        ("2147483647 + 1", 8115),
        ("CAST('x' AS int)", 245),
        ("CAST(300 AS tinyint)", 220),
        ("CAST('2026-13-01' AS datetime)", 241),
        ("CONVERT(binary(10), 'xx', 1)", 8114),
        ("CAST('x' AS uniqueidentifier)", 8169),
        ("CAST(GETDATE() AS uniqueidentifier)", 529),
        ("GETDATE() + GETDATE()", 402),
        ("CAST(12345 AS nvarchar(3))", 8115),
        ("CAST(1234 AS decimal(3,1))", 8115),
        ("LEFT('a', -1)", 536),
        ("DATEADD(year, 9000, GETDATE())", 517),
    ],
)
def test_errors_of_expressions(expression: str, number: int) -> None:
    with pytest.raises(SqlError) as caught:
        evaluated(expression)
    assert caught.value.message.number == number


@pytest.mark.parametrize(
    "text", ["int", "nvarchar(30)", "nvarchar(max)", "binary(10)", "decimal(12,2)", "datetime2(3)", "bit"]
)
def test_a_type_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_type(text)) == text


def test_a_type_has_its_defaults() -> None:
    texts = ["sysname", "varchar", "float(24)", "decimal", "time", "ntext"]
    assert [str(parse_type(text)) for text in texts] == [
        "nvarchar(128)",
        "varchar(1)",
        "real",
        "decimal(18,0)",
        "time(7)",
        "nvarchar(max)",
    ]


@given(st.binary(min_size=10, max_size=10))
def test_an_lsn_survives_its_text(raw: bytes) -> None:
    text = convert(Value(LSN, raw), SqlType("varchar", 22), 1)
    assert convert(text, LSN, 1) == Value(LSN, raw)


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_survive_text_and_bytes(number: int) -> None:
    value = Value(BIGINT, number)
    assert convert(convert(value, TEXT), BIGINT) == value
    assert convert(convert(value, SqlType("binary", 8)), BIGINT) == value


@given(st.datetimes(datetime(1753, 1, 1), datetime(9999, 12, 30)))
def test_datetime_moves_by_less_than_its_step(moment: datetime) -> None:
    found = convert(Value(SqlType("datetime2", scale=7), moment), DATETIME).value
    assert isinstance(found, datetime)
    assert abs((found - moment).total_seconds()) < 0.003
    assert convert(Value(DATETIME, found), DATETIME, None).value == found


def test_comparing_with_null_is_unknown() -> None:
    assert compare(Value(INT, None), Value(INT, 1)) is None
    assert compare(Value(TEXT, "B"), Value(TEXT, "a")) == 1
    assert compare(Value(LSN, bytes(10)), Value(LSN, bytes(9) + b"\1")) == -1


def test_raiserror_puts_values_in_their_places() -> None:
    values = [Value(TEXT, "abc"), Value(INT, 7), Value(INT, None)]
    assert formatted("%-5s|%3d|%s|%%|%d", values) == "abc  |  7|(null)|%|(null)"
    with pytest.raises(SqlError):
        formatted("%y", values)


def test_a_zone_is_kept() -> None:
    value = convert(Value(TEXT, "2026-01-05T08:00:00+02:00"), SqlType("datetimeoffset", scale=7)).value
    assert value == datetime(2026, 1, 5, 6, tzinfo=UTC)
