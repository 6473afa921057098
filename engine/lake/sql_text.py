"""Spark SQL text. Queries are text because that runs alike on classic and Connect sessions."""

from __future__ import annotations

from collections.abc import Iterable


def quoted(name: str) -> str:
    """A column name or table path as an identifier."""
    return "`" + name.replace("`", "``") + "`"


def delta_table(path: str) -> str:
    """A Delta table by its path."""
    return f"delta.{quoted(path)}"


def renamed(columns: Iterable[tuple[str, str]]) -> str:
    """A select list of (expression, name) pairs."""
    return ", ".join(f"{expression} AS {quoted(name)}" for expression, name in columns)
