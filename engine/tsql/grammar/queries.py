"""Queries and changes of rows: trees of sqlglot."""

from __future__ import annotations

from sqlglot import exp

from engine.tsql import statements as st
from engine.tsql.checks import check_modification, check_query
from engine.tsql.dialect import parsed, parsed_expression, tokens_of, variable
from engine.tsql.grammar import calls
from engine.tsql.grammar.base import Grammar
from engine.tsql.messages import syntax_problem
from engine.tsql.tokens import Tokens

_ROWS = ("VALUES", "SELECT", "DEFAULT")
"""Words that say where an INSERT has its rows from: an EXEC after them is a statement of its own."""


def select(grammar: Grammar, stop: frozenset[str] = frozenset()) -> st.Statement:
    """A query: rows, values for variables, or SELECT … INTO. ``stop``: words that end it."""
    tokens, line, start = grammar.tokens, grammar.tokens.line, grammar.tokens.at
    tree = grammar.parsed(tokens.query_end(stop))
    return _selected(grammar, tree, line, start)


def _selected(grammar: Grammar, tree: exp.Expr, line: int, start: int) -> st.Statement:
    if not isinstance(tree, exp.Query):
        raise syntax_problem(102, grammar.tokens.all[start].text, line=line)
    grammar.check_variables(tree, line)
    if isinstance(tree, exp.Select) and (assigned := _assigned(grammar, tree, line)):
        check_query(tree, grammar.place(start))
        return st.SelectAssign(line, assigned, tree)
    if tree.args.get("into"):
        check_modification(tree, grammar.place(start))
        return st.Modify(line, tree)
    check_query(tree, grammar.place(start))
    return st.Query(line, tree)


def _assigned(grammar: Grammar, query: exp.Select, line: int) -> tuple[str, ...]:
    """Variables that the query assigns to; then it selects their values alone."""
    names = [variable(each.this) if isinstance(each, exp.EQ) else None for each in query.expressions]
    if not any(names):
        return ()
    for name in names:
        if name is None:
            raise syntax_problem(141, line=line)
    query.set("expressions", [each.expression for each in query.expressions])
    return tuple(name for name in names if name)


def with_(grammar: Grammar) -> st.Statement:
    """A statement that begins with common table expressions."""
    tokens, line, start = grammar.tokens, grammar.tokens.line, grammar.tokens.at
    verb = tokens.with_verb()
    tree = grammar.parsed(tokens.with_end())
    if verb == "SELECT":
        return _selected(grammar, tree, line, start)
    return _modification(grammar, tree, line, start)


def insert(grammar: Grammar) -> st.Statement:
    """INSERT of rows, of a query's, or of a procedure's."""
    tokens, line, start = grammar.tokens, grammar.tokens.line, grammar.tokens.at
    end = tokens.modification_end()
    has_rows = any(tokens.word_at(index) in _ROWS for index in range(tokens.at, end))
    if has_rows or tokens.word_at(end) not in ("EXEC", "EXECUTE"):
        return _modification(grammar, grammar.parsed(end), line, start)
    head = grammar.parsed(end, tokens_of(" DEFAULT VALUES"))
    execute = calls.execute(grammar)
    if not isinstance(head, exp.Insert) or not isinstance(execute, st.Execute | st.ExecuteText):
        raise tokens.wrong()
    grammar.check_variables(head, line)
    target = head.this
    columns = [each.name for each in target.expressions] if isinstance(target, exp.Schema) else []
    table = target.this if isinstance(target, exp.Schema) else target
    return st.InsertExecute(line, table, tuple(columns), execute)


def update_or_delete(grammar: Grammar) -> st.Statement:
    """UPDATE, DELETE."""
    tokens, line, start = grammar.tokens, grammar.tokens.line, grammar.tokens.at
    if tokens.word(1) == "STATISTICS":
        raise tokens.refused("UPDATE STATISTICS", "The source does it by itself.")
    end = tokens.modification_end()
    verb = tokens.next()
    limit = _top(grammar) if tokens.word() == "TOP" else None
    if tokens.word_at(start) == "DELETE" and tokens.word() == "FROM" and _can_do_without(tokens, end):
        # DELETE FROM t FROM t AS a JOIN …, DELETE FROM t OUTPUT …: it may be left out, and sqlglot knows
        # neither two of them nor OUTPUT behind it.
        tokens.next()
    tree = parsed([verb, *tokens.slice(end)], tokens.text)
    if limit is not None:
        tree.set("limit", limit)
    return _modification(grammar, tree, line, start)


def _top(grammar: Grammar) -> exp.Limit:
    """``TOP (n)``: a change wants the brackets."""
    tokens = grammar.tokens
    tokens.need("TOP")
    if tokens.word() != "(":
        raise tokens.wrong()
    end = grammar.closing()
    tokens.next()
    count = parsed_expression(tokens.slice(end - 1), tokens.text)
    tokens.need(")")
    if tokens.word() == "PERCENT":
        raise tokens.refused("TOP with PERCENT in a change", "Give a number of rows.")
    return exp.Limit(expression=count)


def _can_do_without(tokens: Tokens, end: int) -> bool:
    """Whether a DELETE FROM has another FROM, or OUTPUT, before its condition."""
    depth = 0
    for index in range(tokens.at + 1, end):
        word = tokens.word_at(index)
        depth += (word == "(") - (word == ")")
        if depth == 0 and word in ("FROM", "OUTPUT", "WHERE"):
            return word != "WHERE"
    return False


def merge(grammar: Grammar) -> st.Statement:
    """MERGE: ends at its semicolon."""
    tokens, line, start = grammar.tokens, grammar.tokens.line, grammar.tokens.at
    if tokens.word(1) == "TOP":
        raise tokens.refused("MERGE TOP", "Give TOP to the query after USING.")
    return _modification(grammar, grammar.parsed(tokens.semicolon()), line, start)


def _modification(grammar: Grammar, tree: exp.Expr, line: int, start: int) -> st.Statement:
    if not isinstance(tree, exp.Insert | exp.Update | exp.Delete | exp.Merge):
        raise syntax_problem(102, grammar.tokens.all[start].text, line=line)
    grammar.check_variables(tree, line)
    check_modification(tree, grammar.place(start))
    return st.Modify(line, tree)
