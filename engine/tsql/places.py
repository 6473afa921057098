"""Where in the script a tree stands. Pure."""

from __future__ import annotations

from sqlglot import exp


def place_of(node: exp.Expr) -> tuple[int, int] | None:
    """Line and column of the first name or constant of a tree; None where it has none."""
    marks = [each.meta for each in node.walk() if "start" in each.meta and "line" in each.meta]
    if not marks:
        return None
    first = min(marks, key=lambda mark: mark["start"])
    return first["line"], max(1, first["col"] - (first["end"] - first["start"]))
