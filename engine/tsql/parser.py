"""Batches to statements: control flow is parsed here, expressions and queries by sqlglot. Pure.

A batch is parsed whole: what is wrong or not supported in its last line keeps its first from running.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.tsql import statements as st
from engine.tsql.dialect import tokens_of
from engine.tsql.grammar import calls, cursors, definitions, flow, queries, transactions, variables
from engine.tsql.grammar.base import Grammar
from engine.tsql.tokens import STARTERS, Tokens

SUPPORTED = (
    "Supported are DECLARE, SET, SELECT, INSERT, UPDATE, DELETE, MERGE, CREATE, ALTER, DROP and TRUNCATE of "
    "tables, IF, WHILE, BEGIN … END, TRY … CATCH, THROW, RAISERROR, PRINT, WAITFOR DELAY, EXEC, cursors, USE "
    "and transactions."
)


@dataclass(frozen=True, slots=True)
class Scope:
    """Variables that are known before a batch begins: parameters of sp_executesql."""

    variables: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()


def parse(text: str, scope: Scope | None = None, first_line: int = 1) -> st.Statements:
    """The statements of a batch; ``first_line``: the script's line where it begins. Raises SyntaxProblem."""
    # Lines before the batch count, so that places are those of the script.
    text = "\n" * (first_line - 1) + text
    tokens = tokens_of(text)
    if not tokens:
        return ()
    known = scope or Scope()
    return _batch(Grammar(Tokens(tokens, text), known.variables, known.tables, _statement))


def _batch(grammar: Grammar) -> st.Statements:
    found = []
    while grammar.skip_semicolons():
        if grammar.tokens.word() in ("END", "ELSE"):
            raise grammar.tokens.wrong()
        found.append(grammar.statement())
    return tuple(found)


def _statement(grammar: Grammar) -> st.Statement:
    grammar.skip_semicolons()
    tokens = grammar.tokens
    word = tokens.word()
    rule = _STATEMENTS.get(word)
    column = tokens.column
    if rule is not None:
        return replace(rule(grammar), column=column)
    if word == "(":
        return queries.select(grammar)
    if tokens.at == 0 and not tokens.done and word not in STARTERS:
        return calls.execute(grammar, bare=True)
    if word.isalpha() and word:
        raise tokens.refused(f"The statement '{tokens.all[tokens.at].text}'", SUPPORTED)
    raise tokens.wrong()


_STATEMENTS: dict[str, Callable[[Grammar], st.Statement]] = {
    "DECLARE": variables.declare,
    "SET": variables.set_,
    "SELECT": queries.select,
    "WITH": queries.with_,
    "INSERT": queries.insert,
    "UPDATE": queries.update_or_delete,
    "DELETE": queries.update_or_delete,
    "MERGE": queries.merge,
    "CREATE": definitions.define,
    "ALTER": definitions.define,
    "DROP": definitions.define,
    "TRUNCATE": definitions.define,
    "EXEC": calls.execute,
    "EXECUTE": calls.execute,
    "BEGIN": flow.begin,
    "IF": flow.if_,
    "WHILE": flow.while_,
    "BREAK": flow.leave,
    "CONTINUE": flow.leave,
    "RETURN": flow.return_,
    "THROW": flow.throw,
    "RAISERROR": flow.raise_error,
    "PRINT": flow.print_,
    "WAITFOR": flow.wait,
    "USE": flow.use,
    "COMMIT": transactions.commit,
    "ROLLBACK": transactions.rollback,
    "SAVE": transactions.save,
    "OPEN": cursors.cursor_step,
    "CLOSE": cursors.cursor_step,
    "DEALLOCATE": cursors.cursor_step,
    "FETCH": cursors.fetch,
    "REVERT": calls.revert,
    "RECONFIGURE": flow.reconfigure,
}
