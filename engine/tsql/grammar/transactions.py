"""Transactions and savepoints."""

from __future__ import annotations

from engine.tsql import statements as st
from engine.tsql.grammar.base import Grammar


def transaction_name(grammar: Grammar) -> str | None:
    """The name after TRANSACTION; None where there is none."""
    if grammar.at_end() or grammar.tokens.word() == "WITH":
        return None
    if grammar.tokens.word() == "@":
        raise grammar.tokens.refused("A transaction's name in a variable", "Write the name.")
    return grammar.name()


def commit(grammar: Grammar) -> st.Statement:
    """COMMIT."""
    line = grammar.start("COMMIT")
    if not (grammar.tokens.take("TRAN") or grammar.tokens.take("TRANSACTION")):
        grammar.tokens.take("WORK")
        return st.Commit(line)
    transaction_name(grammar)
    return st.Commit(line)


def rollback(grammar: Grammar) -> st.Statement:
    """ROLLBACK."""
    line = grammar.start("ROLLBACK")
    if not (grammar.tokens.take("TRAN") or grammar.tokens.take("TRANSACTION")):
        grammar.tokens.take("WORK")
        return st.Rollback(line)
    return st.Rollback(line, transaction_name(grammar))


def save(grammar: Grammar) -> st.Statement:
    """SAVE TRANSACTION."""
    line = grammar.start("SAVE")
    if not (grammar.tokens.take("TRAN") or grammar.tokens.take("TRANSACTION")):
        raise grammar.tokens.wrong()
    name = transaction_name(grammar)
    if name is None:
        raise grammar.tokens.wrong()
    return st.Save(line, name)
