"""GO as the client reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tsql.batches import Batch, batches, is_complete


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("SELECT 1", [Batch("SELECT 1")]),
        ("SELECT 1\nGO\nSELECT 2", [Batch("SELECT 1\n"), Batch("SELECT 2", 3)]),
        ("a\r\n go 3 \r\nb\n", [Batch("a\r\n", 1, 3), Batch("b\n", 3)]),
        ("GO\nGO\n\nGO", []),
        ("SELECT 'x\nGO\n'\nGO", [Batch("SELECT 'x\nGO\n'\n")]),
        ("/* a /* b */\nGO\n*/ SELECT 1\nGO -- end", [Batch("/* a /* b */\nGO\n*/ SELECT 1\n")]),
        ("SELECT [a\nGO\n]", [Batch("SELECT [a\nGO\n]")]),
        ("-- it's\nGO\nSELECT 1", [Batch("-- it's\n"), Batch("SELECT 1", 3)]),
        ("SELECT 1 GO", [Batch("SELECT 1 GO")]),
        ("GOTO x", [Batch("GOTO x")]),
    ],
)
def test_go_stands_on_a_line_of_its_own(script: str, expected: list[Batch]) -> None:
    assert list(batches(script)) == expected


def test_a_console_waits_for_go() -> None:
    assert is_complete("SELECT 1\nGO\n")
    assert is_complete("GO")
    assert not is_complete("SELECT 1\n")
    assert not is_complete("SELECT '\nGO\n")


@given(st.lists(st.text(alphabet="GOgo 1\n'[]-*/x", max_size=12), max_size=6))
def test_no_text_is_lost_and_lines_are_right(parts: list[str]) -> None:
    script = "\nGO\n".join(parts)
    lines = script.split("\n")
    for batch in batches(script):
        first = batch.text.split("\n")[0]
        assert lines[batch.line - 1].startswith(first.rstrip("\r"))
