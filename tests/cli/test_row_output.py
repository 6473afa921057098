"""The forms of output, compared with expected files."""

from __future__ import annotations

import csv
import io
import itertools
import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cli.row_output import Format, lines

EXPECTED = Path(__file__).parent / "expected"
COLUMNS = [
    ("__$start_lsn", "string"),
    ("__$seqval", "string"),
    ("__$operation", "int"),
    ("__$update_mask", "binary"),
    ("ID", "int"),
    ("Name, in full", "string"),
    ("Price", "decimal(12,2)"),
    ("Changed", "timestamp"),
    ("Tags", "array<string>"),
]
ROWS = [
    ("0x00000000015D3F480000", "0x00000000015D3E100001", 2, b"\x1f", 1, "Tide Gauge", Decimal("12.50"),
     "2026-01-05 08:00:00", ["a", "b, c"]),
    ("0x00000000015D3F480000", "0x00000000015D3E980001", 4, b"\x02", 1, "", Decimal("-0.01"),
     "2026-01-05 08:00:00.25", []),
    ("0x00000000015D40000000", "0x00000000015D3FA00001", 1, None, 20, 'Søren "S"\n潮位', None, None, None),
]  # fmt: skip


@pytest.mark.parametrize("form", Format)
def test_output_is_as_expected(form):
    assert "".join(lines(COLUMNS, ROWS, form)) == (EXPECTED / f"changes.{form}").read_text()


@pytest.mark.parametrize(
    ("form", "expected"),
    [(Format.JSON, ""), (Format.CSV, 'id,"a,b"\n'), (Format.TABLE, "id  a,b\n--  ---\n")],
)
def test_without_rows_there_is_the_heading_that_the_form_has(form, expected):
    assert "".join(lines([("id", "int"), ("a,b", "string")], [], form)) == expected


@pytest.mark.parametrize("form", Format)
def test_rows_that_cannot_be_fetched_leave_no_heading(form):
    with pytest.raises(ZeroDivisionError):
        lines([("n", "int")], ((1 // 0,) for _ in range(1)), form)


@pytest.mark.parametrize("form", Format)
def test_rows_are_not_held_back(form):
    endless = ((n,) for n in itertools.count())
    assert len(list(itertools.islice(lines([("n", "int")], endless, form), 1000))) == 1000


@given(st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]))), min_size=2))
def test_json_has_every_value(values):
    columns = [(f"c{n}", "string") for n in range(len(values))]
    assert list(json.loads("".join(lines(columns, [values], Format.JSON))).values()) == values


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=2))
def test_csv_has_every_value(values):
    columns = [(f"c{n}", "string") for n in range(len(values))]
    text = "".join(lines(columns, [values], Format.CSV))
    assert list(csv.reader(io.StringIO(text, newline="")))[1] == values


def test_csv_tells_null_from_an_empty_string():
    text = "".join(lines([("a", "string"), ("b", "string")], [(None, "")], Format.CSV))
    assert text == 'a,b\n,""\n'


def test_a_value_wider_than_its_column_is_shown_in_full():
    rows = [("x" * 100,), ("y",)]
    text = "".join(lines([("a", "string")], rows, Format.TABLE))
    assert text.splitlines()[1:] == ["-" * 60, "x" * 100, "y"]


def test_a_table_shows_control_characters_as_escapes():
    text = "".join(lines([("a", "string")], [("\x1b[31mred",)], Format.TABLE))
    assert "\x1b" not in text
    assert "\\x1b[31mred" in text
