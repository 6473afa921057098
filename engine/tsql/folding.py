"""Variables and constant calls of a query as literals: T-SQL evaluates them once for a statement."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal

from sqlglot import exp

from engine.tsql.checks import ROW_FUNCTIONS
from engine.tsql.dialect import variable
from engine.tsql.evaluation import (
    CONDITION_NODES,
    OWN_FUNCTION,
    VALUE_NODES,
    Evaluator,
    call_of,
    session_function,
)
from engine.tsql.functions import FUNCTIONS, RANDOM
from engine.tsql.types import Value

Literal = Callable[[Value], exp.Expr]
"""A value as a dialect writes it."""

_PLAIN = (exp.Literal, exp.Null, exp.Paren, exp.Alias, exp.Subquery)


def folded(tree: exp.Expr, evaluator: Evaluator, literal: Literal) -> exp.Expr:
    """The tree with literals for whatever no row changes. It is changed in place."""
    is_branch = isinstance(tree, exp.If) and isinstance(tree.parent, exp.Case)
    if not is_branch and _is_constant(tree) and not isinstance(tree, exp.Literal | exp.Null):
        return literal(evaluator.value(tree))
    if isinstance(tree, exp.National):
        return exp.Literal.string(str(tree.this))
    for child in list(tree.iter_expressions()):
        if isinstance(child, exp.DataType | exp.Identifier | exp.Var) or _is_table_variable(child):
            continue
        new = folded(child, evaluator, literal)
        if new is not child:
            child.replace(new)
    return tree


def _is_table_variable(node: exp.Expr) -> bool:
    return isinstance(node, exp.Parameter) and isinstance(node.parent, exp.Table)


def _is_constant(node: exp.Expr) -> bool:
    """Whether it has a value without a row, and is more than a literal."""
    if isinstance(node, exp.Literal | exp.Null):
        return True
    if isinstance(node, exp.Parameter):
        return variable(node) is not None
    if isinstance(node, exp.HexString | exp.National):
        return True
    if isinstance(node, _PLAIN) and not isinstance(node, exp.Paren):
        return False
    call = call_of(node)
    if call is not None:
        name, arguments = call
        known = session_function(name) or name
        is_own = name.startswith(OWN_FUNCTION)
        if known in RANDOM or not (known in FUNCTIONS or session_function(name) or is_own):
            return False
        if known in ROW_FUNCTIONS and not arguments:
            return False
        return all(_is_constant(argument) for argument in arguments)
    if type(node) not in VALUE_NODES or isinstance(node, exp.Subquery | exp.Case | exp.If):
        return isinstance(node, exp.Case | exp.If) and _is_constant_choice(node)
    return all(
        _is_constant(child) for child in node.iter_expressions() if not isinstance(child, exp.DataType)
    )


def _is_constant_choice(node: exp.Expr) -> bool:
    """CASE and IIF over constants: their conditions are no values, so they are looked through."""
    return all(
        _is_constant(child) or (type(child) in CONDITION_NODES and _is_constant_condition(child))
        if not (isinstance(node, exp.Case) and isinstance(child, exp.If))
        else _is_constant_choice(child)
        for child in node.iter_expressions()
    )


def _is_constant_condition(node: exp.Expr) -> bool:
    if isinstance(node, exp.Exists) or node.args.get("query") is not None:
        return False
    return all(
        _is_constant(child) or (type(child) in CONDITION_NODES and _is_constant_condition(child))
        for child in node.iter_expressions()
    )


def number_literal(number: int | Decimal) -> exp.Expr:
    """A number with its sign."""
    plain = exp.Literal.number(f"{abs(number):f}" if isinstance(number, Decimal) else str(abs(number)))
    return exp.Paren(this=exp.Neg(this=plain)) if number < 0 else plain


def source_literal(value: Value) -> exp.Expr:
    """As PostgreSQL reads it. Text has no type of its own there until its place gives it one."""
    raw = value.value
    match raw:
        case bytes():
            return exp.cast(exp.Literal.string("\\x" + raw.hex()), "bytea", dialect="postgres")
        case datetime():
            return exp.cast(
                exp.Literal.string(raw.isoformat(" ")), "timestamptz" if raw.tzinfo else "timestamp"
            )
        case float():
            return exp.cast(exp.Literal.string(repr(raw)), "double")
    return _common_literal(value)


def spark_literal(value: Value) -> exp.Expr:
    """As Spark reads it."""
    raw = value.value
    match raw:
        case bytes():
            return exp.HexString(this=raw.hex().upper())
        case datetime():
            return exp.cast(exp.Literal.string(raw.isoformat(" ")), "timestamp")
        case float():
            return exp.cast(exp.Literal.string(repr(raw)), "double")
    return _common_literal(value)


def _common_literal(value: Value) -> exp.Expr:
    raw = value.value
    match raw:
        case None:
            return exp.Null()
        case bool():
            return exp.Literal.number(int(raw))
        case int() | Decimal():
            return number_literal(raw)
        case date():
            return exp.cast(exp.Literal.string(raw.isoformat()), "date")
        case time():
            return exp.Literal.string(raw.isoformat())
    return exp.Literal.string(str(raw))
