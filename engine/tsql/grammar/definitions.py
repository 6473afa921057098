"""CREATE, ALTER, DROP and TRUNCATE; what only says how rows are stored is passed over."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from engine.tsql import statements as st
from engine.tsql.checks import check_definition
from engine.tsql.dialect import parsed
from engine.tsql.grammar.base import Grammar
from engine.tsql.grammar.functions import create_function
from engine.tsql.grammar.principals import KINDS, change_principal

_MODULES = ("FUNCTION", "PROCEDURE", "PROC", "TRIGGER", "VIEW")
# The source has one kind of index, ascending unless told, and sqlglot does not know these words everywhere.
_LEFT_OUT = ("CLUSTERED", "NONCLUSTERED", "ASC")
_STORAGE = frozenset(
    {
        "PAD_INDEX", "STATISTICS_NORECOMPUTE", "IGNORE_DUP_KEY", "ALLOW_ROW_LOCKS", "ALLOW_PAGE_LOCKS",
        "FILLFACTOR", "SORT_IN_TEMPDB", "DROP_EXISTING", "ONLINE", "OPTIMIZE_FOR_SEQUENTIAL_KEY",
        "DATA_COMPRESSION", "MAXDOP",
    }
)  # fmt: skip


def define(grammar: Grammar) -> st.Statement:
    """CREATE, ALTER, DROP, TRUNCATE."""
    tokens, line, start = grammar.tokens, grammar.tokens.line, grammar.tokens.at
    if tokens.word(1) in KINDS and tokens.word() != "TRUNCATE":
        return change_principal(grammar)
    at = 3 if tokens.word(1) == "OR" and tokens.word(2) == "ALTER" else 1
    if tokens.word(at) in _MODULES:
        return _module(grammar, line, tokens.word(at))
    tree = parsed(_meaningful(grammar, tokens.definition_end()), tokens.text)
    grammar.check_variables(tree, line)
    check_definition(tree, grammar.place(start))
    return st.Define(line, tree)


def _meaningful(grammar: Grammar, end: int) -> Sequence[Token]:
    """The tokens without words of storage: WITH (PAD_INDEX = …), ON [PRIMARY], TEXTIMAGE_ON [PRIMARY]."""
    tokens, found = grammar.tokens, []
    while tokens.at < end:
        if _is_storage(grammar):
            tokens.at += 1
            tokens.at = grammar.closing()
        elif tokens.word() in ("ON", "TEXTIMAGE_ON") and _is_filegroup(grammar):
            tokens.at += 2
        else:
            token = tokens.next()
            if token.token_type == TokenType.IDENTIFIER or token.text.upper() not in _LEFT_OUT:
                found.append(token)
    return found


def _is_storage(grammar: Grammar) -> bool:
    tokens = grammar.tokens
    if tokens.word() != "WITH" or tokens.word(1) != "(" or tokens.word(2) not in _STORAGE:
        return False
    last = tokens.at
    while tokens.word_at(last) not in (")", ""):
        if tokens.word_at(last) == "IGNORE_DUP_KEY" and tokens.word_at(last + 2) == "ON":
            raise tokens.refused("IGNORE_DUP_KEY = ON", "Insert what is not there yet.", last)
        last += 1
    return True


def _is_filegroup(grammar: Grammar) -> bool:
    """Whether ON is followed by PRIMARY at the end of a definition or of one of its parts."""
    tokens = grammar.tokens
    name = tokens.all[tokens.at + 1].text.upper() if tokens.at + 1 < len(tokens.all) else ""
    return name == "PRIMARY" and tokens.word(2) != "KEY"


def _module(grammar: Grammar, line: int, kind: str) -> st.Statement:
    """CREATE FUNCTION, and DROP of modules."""
    tokens = grammar.tokens
    if tokens.word() == "DROP":
        tree = grammar.parsed(tokens.definition_end())
        check_definition(tree, grammar.place(tokens.at - 1))
        return st.Define(line, tree)
    if kind != "FUNCTION":
        raise tokens.refused(
            f"{tokens.word()} {kind}", "Wrapper functions and scalar functions can be made, for the session."
        )
    return create_function(grammar)
