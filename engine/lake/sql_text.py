"""Spark SQL text. Queries are text because that runs alike on classic and Connect sessions."""

from __future__ import annotations

from collections.abc import Iterable


def quoted(name: str) -> str:
    """A column name or table path as an identifier."""
    return "`" + name.replace("`", "``") + "`"


def delta_table(path: str, version: int | None = None) -> str:
    """A Delta table by its path: as it is whenever it is read, or always in one version."""
    return f"delta.{quoted(path)}" + ("" if version is None else f" VERSION AS OF {version:d}")


def renamed(columns: Iterable[tuple[str, str]]) -> str:
    """A select list of (expression, name) pairs."""
    return ", ".join(named(columns))


def named(columns: Iterable[tuple[str, str]]) -> list[str]:
    """Expressions for `DataFrame.selectExpr` of (expression, name) pairs."""
    return [f"{expression} AS {quoted(name)}" for expression, name in columns]
