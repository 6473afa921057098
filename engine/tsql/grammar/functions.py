"""CREATE FUNCTION: of the scripts of sys.sp_cdc_generate_wrapper_function, and of scalar functions."""

from __future__ import annotations

from collections.abc import Iterator

from engine.tsql import statements as st
from engine.tsql.grammar.base import Grammar
from engine.tsql.messages import syntax_problem

_PURE = (st.Declare, st.Assign, st.SelectAssign, st.If, st.While, st.Block, st.Leave, st.Return)


def create_function(grammar: Grammar) -> st.Statement:
    """It takes the rest of its batch; a function that gives a table is compared with generated scripts."""
    tokens, line, column = grammar.tokens, grammar.tokens.line, grammar.tokens.column
    if tokens.at != 0:
        raise syntax_problem(111, f"{tokens.word()} FUNCTION", line=line, column=column)
    if _gives_table(grammar):
        tokens.at = len(tokens.all)
        return st.DefineWrapper(line, tokens.text)
    replaces = tokens.take("CREATE", "OR", "ALTER") or not tokens.take("CREATE")
    if replaces:
        tokens.take("ALTER")
    tokens.need("FUNCTION")
    name = grammar.object_name()
    parameters = _parameters(grammar)
    tokens.need("RETURNS")
    returns = grammar.type_()
    if tokens.take("WITH"):
        tokens.slice(
            next(i for i in range(tokens.at, len(tokens.all)) if tokens.word_at(i) in ("AS", "BEGIN"))
        )
    tokens.take("AS")
    grammar.in_function = True
    body = _body(grammar)
    grammar.in_function = False
    return st.DefineFunction(line, name[-1].lower(), parameters, returns, body, replaces)


def _gives_table(grammar: Grammar) -> bool:
    tokens = grammar.tokens
    places = range(tokens.at, len(tokens.all))
    returns = next((place for place in places if tokens.word_at(place) == "RETURNS"), None)
    return returns is not None and tokens.word_at(returns + 1) in ("TABLE", "@")


def _parameters(grammar: Grammar) -> tuple[st.Declaration, ...]:
    tokens = grammar.tokens
    tokens.need("(")
    found: list[st.Declaration] = []
    while not tokens.take(")"):
        name = grammar.variable_name()
        tokens.take("AS")
        found.append(st.Declaration(name, grammar.type_()))
        grammar.scalars.add(name)
        if tokens.word() == "=":
            raise tokens.refused("A default of a parameter", "Give every argument.")
        if tokens.word() != ")":
            tokens.need(",")
    return tuple(found)


def _body(grammar: Grammar) -> st.Statements:
    tokens = grammar.tokens
    start = tokens.at
    if tokens.word() != "BEGIN":
        raise tokens.wrong()
    body = (grammar.statement(),)
    grammar.skip_semicolons()
    for each in _all(body):
        if not isinstance(each, _PURE):
            raise tokens.refused("A statement with effects in a function", "Compute, and RETURN.", start)
    return body


def _all(statements: st.Statements) -> Iterator[st.Statement]:
    for each in statements:
        yield each
        match each:
            case st.Block():
                yield from _all(each.statements)
            case st.If():
                yield from _all((each.then,) if each.otherwise is None else (each.then, each.otherwise))
            case st.While():
                yield from _all((each.body,))
