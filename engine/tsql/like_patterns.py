"""LIKE's patterns where the targets read them differently: sets in brackets, and the backslash. Pure."""

from __future__ import annotations

import re

from sqlglot import exp


def like_said(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """LIKE, with or without ESCAPE, for "postgres" or "spark"; None where the target reads it the same.

    Of patterns that are no constants only % and _ are understood.
    """
    inner = node.this if isinstance(node, exp.Escape) else node
    if not isinstance(inner, exp.Like) or not isinstance(inner.expression, exp.Literal):
        return None
    escape = node.expression.name if isinstance(node, exp.Escape) else None
    pattern = str(inner.expression.this)
    if "[" in pattern:
        shape = regular_expression(pattern, escape)
        text = f"(?s){shape}" if dialect == "spark" else shape
        return exp.RegexpLike(this=inner.this.copy(), expression=exp.Literal.string(text))
    if escape is None and "\\" in pattern:
        inner.set("expression", exp.Literal.string(pattern.replace("\\", "\\\\")))
    return None


def regular_expression(pattern: str, escape: str | None = None) -> str:
    """What PostgreSQL and Java match as the whole text alike."""
    found, index = "", 0
    while index < len(pattern):
        character = pattern[index]
        if escape and character == escape and index + 1 < len(pattern):
            index += 1
            found += _plain(pattern[index])
        elif character == "[" and (end := pattern.find("]", index + 2)) > 0:
            found += _set(pattern[index + 1 : end])
            index = end
        else:
            found += {"%": ".*", "_": "."}.get(character) or _plain(character)
        index += 1
    return f"^{found}$"


def _plain(character: str) -> str:
    return character if character.isalnum() or character.isspace() else f"\\{character}"


def _set(inner: str) -> str:
    """``[a-z]``, ``[^0-9]``: ranges as they are, everything else as itself."""
    negated = "^" if inner.startswith("^") and len(inner) > 1 else ""
    rest = inner[len(negated) :]
    return f"[{negated}{re.sub(r'([^-0-9A-Za-z])', _escaped, rest)}]"


def _escaped(found: re.Match[str]) -> str:
    return _plain(found[1])
