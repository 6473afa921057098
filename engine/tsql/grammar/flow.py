"""The flow of control, errors, and words to the user."""

from __future__ import annotations

from engine.tsql import statements as st
from engine.tsql.checks import check_condition
from engine.tsql.grammar.base import Grammar
from engine.tsql.grammar.transactions import transaction_name
from engine.tsql.messages import syntax_problem


def begin(grammar: Grammar) -> st.Statement:
    """BEGIN … END, BEGIN TRY, BEGIN TRANSACTION."""
    tokens, line = grammar.tokens, grammar.tokens.line
    tokens.at += 1
    if tokens.take("TRY"):
        return _try(grammar, line)
    if tokens.take("TRAN") or tokens.take("TRANSACTION"):
        return st.Begin(line, transaction_name(grammar))
    if tokens.word() in ("DISTRIBUTED", "ATOMIC", "DIALOG", "CONVERSATION"):
        raise tokens.refused(f"BEGIN {tokens.word()}", "Use BEGIN TRANSACTION.")
    body = _until_end(grammar)
    if not body:
        raise tokens.wrong()
    tokens.need("END")
    return st.Block(line, body)


def _try(grammar: Grammar, line: int) -> st.Statement:
    tokens = grammar.tokens
    tried = _until_end(grammar)
    tokens.need("END", "TRY")
    grammar.skip_semicolons()
    tokens.need("BEGIN", "CATCH")
    grammar.catching += 1
    caught = _until_end(grammar)
    grammar.catching -= 1
    tokens.need("END", "CATCH")
    return st.TryCatch(line, tried, caught)


def _until_end(grammar: Grammar) -> st.Statements:
    found: list[st.Statement] = []
    while grammar.skip_semicolons() and grammar.tokens.word() != "END":
        if grammar.tokens.word() == "ELSE":
            raise grammar.tokens.wrong()
        found.append(grammar.statement())
    return tuple(found)


def if_(grammar: Grammar) -> st.Statement:
    """IF … ELSE."""
    line = grammar.start("IF")
    condition = grammar.expression(check=check_condition)
    then = grammar.statement()
    at = grammar.tokens.at
    grammar.skip_semicolons()
    if grammar.tokens.take("ELSE"):
        return st.If(line, condition, then, grammar.statement())
    grammar.tokens.at = at
    return st.If(line, condition, then)


def while_(grammar: Grammar) -> st.Statement:
    """WHILE."""
    line = grammar.start("WHILE")
    condition = grammar.expression(check=check_condition)
    grammar.loops += 1
    body = grammar.statement()
    grammar.loops -= 1
    return st.While(line, condition, body)


def leave(grammar: Grammar) -> st.Statement:
    """BREAK, CONTINUE."""
    token = grammar.tokens.next()
    if not grammar.loops:
        raise syntax_problem(135, token.text.upper(), line=token.line)
    return st.Leave(token.line, token.text.upper() == "CONTINUE")


def return_(grammar: Grammar) -> st.Statement:
    """RETURN."""
    line = grammar.start("RETURN")
    if grammar.in_function:
        return st.Return(line, grammar.expression())
    if not grammar.at_end():
        raise grammar.tokens.refused("RETURN with a value", "A batch returns none.")
    return st.Return(line)


def throw(grammar: Grammar) -> st.Statement:
    """THROW."""
    line = grammar.start("THROW")
    if grammar.at_end():
        if not grammar.catching:
            raise syntax_problem(10704, line=line)
        return st.Throw(line, ())
    arguments = grammar.expressions()
    if len(arguments) != 3:
        raise syntax_problem(102, "THROW", line=line)
    return st.Throw(line, arguments)


def raise_error(grammar: Grammar) -> st.Statement:
    """RAISERROR."""
    line = grammar.start("RAISERROR")
    grammar.tokens.need("(")
    arguments = grammar.expressions()
    grammar.tokens.need(")")
    if len(arguments) < 3:
        raise syntax_problem(102, ")", line=grammar.tokens.line)
    if grammar.tokens.take("WITH"):
        for token in grammar.tokens.slice(grammar.tokens.expression_end()):
            if token.text.upper() not in ("LOG", "NOWAIT", "SETERROR", ","):
                raise syntax_problem(102, token.text, line=token.line)
    return st.RaiseError(line, arguments)


def print_(grammar: Grammar) -> st.Statement:
    """PRINT."""
    return st.Print(grammar.start("PRINT"), grammar.expression())


def wait(grammar: Grammar) -> st.Statement:
    """WAITFOR DELAY."""
    line = grammar.start("WAITFOR")
    if not grammar.tokens.take("DELAY"):
        raise grammar.tokens.refused(f"WAITFOR {grammar.tokens.word()}", "Use WAITFOR DELAY 'hh:mm:ss'.")
    return st.WaitFor(line, grammar.expression())


def use(grammar: Grammar) -> st.Statement:
    """USE."""
    return st.Use(grammar.start("USE"), grammar.name())


def reconfigure(grammar: Grammar) -> st.Statement:
    """RECONFIGURE."""
    line = grammar.start("RECONFIGURE")
    if grammar.tokens.take("WITH"):
        grammar.tokens.need("OVERRIDE")
    return st.Nothing(line)
