"""docs/security.md names a test for each row: they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "security.md").read_text()
ROWS = [
    line
    for line in DOCUMENT.splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| What |"))
]
NAMED = sorted(set(re.findall(r"`(tests/[^`]+)`", DOCUMENT)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_every_row_names_a_test(row: str) -> None:
    assert "`tests/" in row.rstrip("| ").rpartition("|")[2]


@pytest.mark.parametrize("named", NAMED)
def test_a_named_test_is_there(named: str) -> None:
    path, _, name = named.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("linked", sorted(set(re.findall(r"\]\(([^)]+)\)", DOCUMENT))))
def test_a_linked_file_is_there(linked: str) -> None:
    assert (ROOT / "docs" / linked).is_file()
