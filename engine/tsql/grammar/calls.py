"""Calls of procedures, EXEC of a text, EXECUTE AS."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.tsql import statements as st
from engine.tsql.checks import check_expression
from engine.tsql.dialect import parsed_expression, variable
from engine.tsql.grammar.base import CONSTANTS, Grammar


def execute(grammar: Grammar, bare: bool = False) -> st.Statement:
    """EXEC; ``bare``: a batch's first statement needs no word before the procedure."""
    tokens = grammar.tokens
    line = tokens.line
    if not bare:
        tokens.at += 1
    if tokens.word() == "(":
        return _execute_text(grammar, line)
    if tokens.take("AS"):
        return _impersonate(grammar, line)
    result = None
    if tokens.word() == "@":
        result = grammar.known_variable()
        tokens.need("=")
    procedure = grammar.object_name()
    if tokens.take(";") and not tokens.done and tokens.all[tokens.at].token_type == TokenType.NUMBER:
        raise tokens.refused("A numbered procedure", "Name it alone.")
    arguments: list[st.Argument] = []
    ends = tokens.at > 0 and tokens.word_at(tokens.at - 1) == ";"
    while not ends and not grammar.at_end():
        arguments.append(_argument(grammar))
        if not tokens.take(","):
            break
    if tokens.take("WITH", "RECOMPILE"):
        pass
    return st.Execute(line, procedure, tuple(arguments), result)


def _argument(grammar: Grammar) -> st.Argument:
    tokens = grammar.tokens
    name = None
    if tokens.word() == "@" and tokens.word(2) == "=":
        name = grammar.variable_name()
        tokens.need("=")
    if tokens.take("DEFAULT"):
        return st.Argument(name, None)
    value = _constant(grammar)
    is_output = tokens.take("OUTPUT") or tokens.take("OUT")
    output = variable(value) if is_output else None
    if is_output and output is None:
        raise tokens.refused("OUTPUT of a constant", "Give a variable.", tokens.at - 1)
    return st.Argument(name, value, output)


def _constant(grammar: Grammar) -> exp.Expr:
    """An argument's value: a constant, a variable, or a word that stands for its own text."""
    tokens, start = grammar.tokens, grammar.tokens.at
    if tokens.take("-") or tokens.take("+"):
        pass
    if tokens.word() == "@":
        if tokens.word(1) == "@":
            tokens.at += 3
        else:
            grammar.known_variable()
        return parsed_expression(tokens.all[start : tokens.at], tokens.text)
    token = tokens.next()
    if token.token_type in (TokenType.IDENTIFIER,) or (
        token.token_type not in CONSTANTS and token.text[:1].isalpha() and token.text.upper() != "NULL"
    ):
        value: exp.Expr = exp.Literal.string(token.text)
    else:
        value = parsed_expression(tokens.all[start : tokens.at], tokens.text)
        check_expression(value, grammar.place(start))
    if not grammar.at_end() and tokens.word() not in (",", "OUTPUT", "OUT"):
        raise tokens.refused(
            "An expression as an argument", "Assign it to a variable, and give the variable."
        )
    return value


def _execute_text(grammar: Grammar, line: int) -> st.Statement:
    tokens = grammar.tokens
    tokens.need("(")
    expression = grammar.expression()
    tokens.need(")")
    return st.ExecuteText(line, expression)


def _impersonate(grammar: Grammar, line: int) -> st.Statement:
    tokens = grammar.tokens
    if not (tokens.take("USER") or tokens.take("LOGIN")):
        raise tokens.refused("EXECUTE AS of another kind", "Use EXECUTE AS USER = '…'.")
    tokens.need("=")
    return st.Impersonate(line, grammar.expression())


def revert(grammar: Grammar) -> st.Statement:
    """REVERT."""
    return st.Impersonate(grammar.start("REVERT"), None)
