"""Queries and changes of rows: trees of sqlglot."""

from __future__ import annotations

from sqlglot import exp

from engine.tsql import statements as st
from engine.tsql.checks import check_modification, check_query
from engine.tsql.dialect import tokens_of, variable
from engine.tsql.grammar import calls
from engine.tsql.grammar.base import Grammar
from engine.tsql.messages import syntax_problem


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
    if tokens.word_at(end) not in ("EXEC", "EXECUTE"):
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
    if tokens.word(1) == "TOP":
        raise tokens.refused(f"{tokens.word()} TOP", "Give a condition on a subquery with TOP.")
    return _modification(grammar, grammar.parsed(tokens.modification_end()), line, start)


def merge(grammar: Grammar) -> st.Statement:
    """MERGE: ends at its semicolon."""
    tokens, line, start = grammar.tokens, grammar.tokens.line, grammar.tokens.at
    return _modification(grammar, grammar.parsed(tokens.semicolon()), line, start)


def _modification(grammar: Grammar, tree: exp.Expr, line: int, start: int) -> st.Statement:
    if not isinstance(tree, exp.Insert | exp.Update | exp.Delete | exp.Merge):
        raise syntax_problem(102, grammar.tokens.all[start].text, line=line)
    grammar.check_variables(tree, line)
    check_modification(tree, grammar.place(start))
    return st.Modify(line, tree)
