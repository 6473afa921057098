"""Results as JSON lines, CSV and tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from engine.sources.sql_session import ResultColumn
from engine.tsql.messages import Message, SqlError, sql_error
from engine.tsql.output import CsvSink, JsonSink, TableSink
from engine.tsql.sink import Sink

COLUMNS = (ResultColumn("id", "int"), ResultColumn("", "nvarchar", 10), ResultColumn("lsn", "binary", 10))
ROWS: list[list[Any]] = [[1, 'a,"b"', b"\0\xab"], [None, "", None]]


class Written:
    """What a sink writes, and what it says elsewhere."""

    def __init__(self) -> None:
        self.text = self.said = ""

    def write(self, text: str) -> None:
        self.text += text

    def say(self, text: str) -> None:
        self.said += text


@pytest.fixture
def written() -> Written:
    return Written()


def test_json_is_one_object_a_line(written: Written) -> None:
    sink = JsonSink(written.write)
    assert sink.rows(COLUMNS, ROWS) == 2
    sink.count(2)
    sink.message(Message(0, 0, 1, "hello"))
    sink.error(sql_error(208, "x", line=3).message)
    assert [json.loads(line) for line in written.text.splitlines()] == [
        {
            "type": "resultset",
            "columns": [
                {"name": "id", "type": "int"},
                {"name": "", "type": "nvarchar(10)"},
                {"name": "lsn", "type": "binary(10)"},
            ],
            "rows": [[1, 'a,"b"', "0x00AB"], [None, "", None]],
        },
        {"type": "rowcount", "count": 2},
        {"type": "message", "number": 0, "severity": 0, "state": 1, "text": "hello"},
        {
            "type": "error",
            "number": 208,
            "severity": 16,
            "state": 1,
            "text": "Invalid object name 'x'.",
            "line": 3,
        },
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("12345678901234567890.1000"), "12345678901234567890.1000"),
        (Decimal("1E+3"), "1000"),
        (1.5, "1.5"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
        (True, "true"),
        (datetime(2026, 1, 5, 8, 0, 0, 500000), '"2026-01-05T08:00:00.500000"'),
        (datetime(2026, 1, 5, 8, tzinfo=UTC), '"2026-01-05T08:00:00+00:00"'),
        (date(2026, 1, 5), '"2026-01-05"'),
        ([1, None, "x"], '"[1, null, \\"x\\"]"'),
        ("é\n", '"é\\n"'),
    ],
)
def test_json_values(written: Written, value: Any, expected: str) -> None:
    JsonSink(written.write).rows([ResultColumn("x", "int")], [[value]])
    assert written.text.endswith(f'"rows":[[{expected}]]}}\n')


def breaking_off() -> Iterator[list[Any]]:
    yield [1, "a", b""]
    raise sql_error(8134)


def test_a_result_that_breaks_off_is_closed(written: Written) -> None:
    with pytest.raises(SqlError):
        JsonSink(written.write).rows(COLUMNS, breaking_off())
    assert json.loads(written.text)["rows"] == [[1, "a", "0x"]]


@pytest.mark.parametrize("form", ["json", "csv", "table"])
def test_what_cannot_be_fetched_leaves_no_heading(written: Written, form: str) -> None:
    def failing() -> Iterator[list[Any]]:
        raise sql_error(8134)
        yield []

    sinks: dict[str, Sink] = {
        "json": JsonSink(written.write),
        "csv": CsvSink(written.write, written.say),
        "table": TableSink(written.write, written.say),
    }
    with pytest.raises(SqlError):
        sinks[form].rows(COLUMNS, failing())
    assert written.text == ""


def test_csv_has_rows_alone(written: Written) -> None:
    sink = CsvSink(written.write, written.say)
    sink.rows(COLUMNS, ROWS)
    sink.count(2)
    sink.message(Message(0, 0, 1, "hello"))
    sink.rows([ResultColumn("b", "bit")], [[True]])
    assert written.text == 'id,"",lsn\n1,"a,""b""",0x00AB\n,"",\n\nb\n1\n'
    assert written.said == "hello\n"


def test_a_table_is_as_wide_as_its_values(written: Written) -> None:
    sink = TableSink(written.write, written.say)
    sink.rows(COLUMNS, ROWS)
    sink.count(2)
    sink.error(sql_error(208, "x", line=3).message)
    assert written.text == (
        'id         lsn\n---- ----- ------\n   1 a,"b" 0x00AB\nNULL       NULL\n\n(2 rows affected)\n'
    )
    assert written.said == "Msg 208, Level 16, State 1, Line 3\nInvalid object name 'x'.\n"


def test_a_table_steers_no_terminal(written: Written) -> None:
    TableSink(written.write, written.say).rows([ResultColumn("\x1b[2J", "nvarchar")], [["a\nb"]])
    assert "\x1b" not in written.text
    assert "a\\nb" in written.text


def test_rows_are_written_while_they_come(written: Written) -> None:
    taken = 0

    def rows() -> Iterator[list[Any]]:
        nonlocal taken
        for number in range(1000):
            taken = number
            if number > 500:
                assert len(written.text) > 1000
            yield [number, "x", b""]

    for sink in (JsonSink(written.write), CsvSink(written.write, written.say)):
        assert sink.rows(COLUMNS, rows()) == 1000
    assert taken == 999
