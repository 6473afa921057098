"""Cursors."""

from __future__ import annotations

from engine.tsql import statements as st
from engine.tsql.grammar.base import Grammar
from engine.tsql.grammar.queries import select, with_

_CURSOR_OPTIONS = frozenset(
    {
        "LOCAL", "GLOBAL", "FORWARD_ONLY", "SCROLL", "STATIC", "KEYSET", "DYNAMIC", "FAST_FORWARD",
        "READ_ONLY",
        "SCROLL_LOCKS", "OPTIMISTIC", "TYPE_WARNING", "INSENSITIVE",
    }
)  # fmt: skip


def declare_cursor(grammar: Grammar, line: int) -> st.Statement:
    """DECLARE name CURSOR."""
    tokens = grammar.tokens
    name = _cursor_name(grammar)
    tokens.take("INSENSITIVE")
    scrolls = tokens.take("SCROLL")
    if not tokens.take("CURSOR"):
        raise tokens.wrong()
    while tokens.word() in _CURSOR_OPTIONS:
        scrolls |= tokens.next().text.upper() == "SCROLL"
    tokens.need("FOR")
    start = tokens.at
    query = with_(grammar) if tokens.word() == "WITH" else select(grammar, frozenset({"FOR"}))
    if not isinstance(query, st.Query):
        raise tokens.refused("A cursor over this statement", "Give a SELECT.", start)
    if tokens.take("FOR"):
        tokens.need("READ", "ONLY")
    return st.DeclareCursor(line, name, query.query, scrolls)


def _cursor_name(grammar: Grammar) -> str:
    grammar.tokens.take("GLOBAL")
    if grammar.tokens.word() == "@":
        raise grammar.tokens.refused("A cursor variable", "Use DECLARE name CURSOR FOR …")
    return grammar.name().lower()


def cursor_step(grammar: Grammar) -> st.Statement:
    """OPEN, CLOSE, DEALLOCATE."""
    token = grammar.tokens.next()
    return st.CursorStep(token.line, token.text.upper(), _cursor_name(grammar))


def fetch(grammar: Grammar) -> st.Statement:
    """FETCH."""
    line = grammar.start("FETCH")
    tokens, direction, place = grammar.tokens, "NEXT", None
    if tokens.word() in ("NEXT", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE"):
        direction = tokens.next().text.upper()
        if direction in ("ABSOLUTE", "RELATIVE"):
            place = grammar.expression(frozenset({"FROM"}))
        tokens.need("FROM")
    else:
        tokens.take("FROM")
    name = _cursor_name(grammar)
    into: list[str] = []
    if tokens.take("INTO"):
        into.append(grammar.known_variable())
        while tokens.take(","):
            into.append(grammar.known_variable())
    return st.Fetch(line, name, direction, place, tuple(into))
