"""DECLARE and SET."""

from __future__ import annotations

from sqlglot import exp

from engine.tsql import statements as st
from engine.tsql.checks import check_definition
from engine.tsql.dialect import parsed, tokens_of
from engine.tsql.grammar.base import Grammar
from engine.tsql.grammar.cursors import declare_cursor
from engine.tsql.messages import syntax_problem

_OPTIONS = frozenset(
    {
        "NOCOUNT", "XACT_ABORT", "ANSI_NULLS", "QUOTED_IDENTIFIER", "ANSI_WARNINGS", "ANSI_PADDING",
        "ARITHABORT",
        "CONCAT_NULL_YIELDS_NULL", "ANSI_NULL_DFLT_ON", "NUMERIC_ROUNDABORT", "IMPLICIT_TRANSACTIONS",
        "DEADLOCK_PRIORITY", "LOCK_TIMEOUT", "DATEFORMAT", "DATEFIRST", "LANGUAGE", "TEXTSIZE",
    }
)  # fmt: skip
_ONLY_ON = frozenset(
    {"ANSI_NULLS", "QUOTED_IDENTIFIER", "ANSI_WARNINGS", "ANSI_PADDING", "CONCAT_NULL_YIELDS_NULL"}
)
_COMPOUND = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div, "%": exp.Mod}


def declare(grammar: Grammar) -> st.Statement:
    """DECLARE of variables, a table variable or a cursor."""
    line = grammar.start("DECLARE")
    if not (grammar.tokens.word() == "@" or grammar.tokens.word().startswith("@")):
        return declare_cursor(grammar, line)
    variables: list[st.Declaration] = []
    while True:
        name = grammar.variable_name()
        if name in grammar.scalars | grammar.tables:
            raise syntax_problem(134, name, line=grammar.tokens.line)
        grammar.tokens.take("AS")
        if grammar.tokens.word() == "TABLE":
            if variables:
                raise grammar.tokens.refused("A table among other variables", "Declare it on its own.")
            return _declare_table(grammar, line, name)
        if grammar.tokens.word() == "CURSOR":
            raise grammar.tokens.refused("A cursor variable", "Use DECLARE name CURSOR FOR …")
        kind = grammar.type_()
        initial = grammar.expression(frozenset({","})) if grammar.tokens.take("=") else None
        grammar.scalars.add(name)
        variables.append(st.Declaration(name, kind, initial))
        if not grammar.tokens.take(","):
            return st.Declare(line, tuple(variables))


def _declare_table(grammar: Grammar, line: int, name: str) -> st.Statement:
    start = grammar.tokens.at
    grammar.tokens.at += 1
    if grammar.tokens.word() != "(":
        raise grammar.tokens.wrong()
    end = grammar.closing()
    head = tokens_of(f"CREATE TABLE [{name}]")
    tree = parsed([*head, *grammar.tokens.all[start + 1 : end]], grammar.tokens.text)
    if not isinstance(tree, exp.Create):
        raise grammar.tokens.wrong()
    check_definition(tree, grammar.place(start))
    grammar.tokens.at = end
    grammar.tables.add(name)
    return st.DeclareTable(line, name, tree)


def set_(grammar: Grammar) -> st.Statement:
    """SET of a variable or an option."""
    line = grammar.start("SET")
    tokens = grammar.tokens
    if tokens.word() != "@":
        return _set_option(grammar, line)
    name = grammar.known_variable()
    operator = tokens.next().text
    if operator in _COMPOUND:
        tokens.need("=")
        right = grammar.expression()
        left = exp.Parameter(this=exp.Var(this=name[1:]))
        return st.Assign(line, name, _COMPOUND[operator](this=left, expression=exp.Paren(this=right)))
    if operator != "=":
        tokens.at -= 1
        raise tokens.wrong()
    if tokens.word() == "CURSOR":
        raise tokens.refused("A cursor variable", "Use DECLARE name CURSOR FOR …")
    return st.Assign(line, name, grammar.expression())


def _set_option(grammar: Grammar, line: int) -> st.Statement:
    tokens, start = grammar.tokens, grammar.tokens.at
    if tokens.take("TRANSACTION", "ISOLATION", "LEVEL"):
        level = " ".join(token.text.upper() for token in tokens.slice(tokens.expression_end()))
        levels = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SNAPSHOT", "SERIALIZABLE")
        if level not in levels:
            raise tokens.refused(f"Isolation level {level}", f"Supported are {', '.join(levels)}.", start)
        return st.SetOption(line, "ISOLATION", level)
    option = tokens.next().text.upper()
    if option == "IDENTITY_INSERT":
        parts = grammar.object_name()
        name = exp.to_identifier(parts[-1], quoted=True)
        schema = exp.to_identifier(parts[-2], quoted=True) if len(parts) > 1 else None
        is_on = tokens.take("ON")
        if not is_on:
            tokens.need("OFF")
        return st.IdentityInsert(line, exp.Table(this=name, db=schema), is_on)
    if option not in _OPTIONS:
        raise tokens.refused(f"SET {option}", f"Supported are {', '.join(sorted(_OPTIONS))}.", start)
    value = " ".join(token.text.upper() for token in tokens.slice(tokens.expression_end()))
    if option == "IMPLICIT_TRANSACTIONS" and value != "OFF":
        raise tokens.refused("SET IMPLICIT_TRANSACTIONS ON", "Use BEGIN TRANSACTION.", start)
    if option in _ONLY_ON and value != "ON":
        raise tokens.refused(f"SET {option} {value}", "It is always ON here.", start)
    return st.SetOption(line, option, value)
