"""``SELECT @a = @a + column FROM …``: what rows give, and what is computed with it row by row. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp

from engine.tsql.dialect import variable
from engine.tsql.evaluation import CONDITION_NODES, VALUE_NODES, call_of
from engine.tsql.functions import FUNCTIONS

_OF_ROWS = (exp.Column, exp.AggFunc, exp.Window, exp.Query, exp.Star)
_PLACE = "highwater row "


@dataclass(frozen=True, slots=True)
class Accumulation:
    """``pieces``: what the query gives; ``values``: what is assigned, with `place` variables for pieces."""

    pieces: tuple[exp.Expr, ...]
    values: tuple[exp.Expr, ...]


def place(number: int) -> str:
    """The variable that stands for a piece of the row."""
    return f"@{_PLACE}{number}"


def accumulation(expressions: Sequence[exp.Expr], names: Collection[str]) -> Accumulation | None:
    """How values are computed that use the variables they are assigned to; None where none does."""
    if not any(_mentions(each, names) for each in expressions):
        return None
    pieces: list[exp.Expr] = []
    values = tuple(_rest(each.copy(), names, pieces) for each in expressions)
    return Accumulation(tuple(pieces) or (exp.Literal.number(1),), values)


def _mentions(node: exp.Expr, names: Collection[str]) -> bool:
    return any(variable(each) in names for each in node.find_all(exp.Parameter))


def _rest(node: exp.Expr, names: Collection[str], pieces: list[exp.Expr]) -> exp.Expr:
    """The tree with variables for what only rows have. It is changed in place."""
    if node.find(*_OF_ROWS) is None:
        return node
    is_condition = type(node) in CONDITION_NODES
    is_asked = isinstance(node, exp.Exists) or node.args.get("query") is not None
    if is_condition and is_asked:
        choice = exp.Case(
            ifs=[exp.If(this=node.copy(), true=exp.Literal.number(1))], default=exp.Literal.number(0)
        )
        return exp.EQ(this=_placed(choice, pieces), expression=exp.Literal.number(1))
    if not is_condition and not (_is_computed(node) and _mentions(node, names)):
        return _placed(node, pieces)
    for child in list(node.iter_expressions()):
        new = _rest(child, names, pieces)
        if new is not child:
            child.replace(new)
    return node


def _is_computed(node: exp.Expr) -> bool:
    """Whether T-SQL's own rules compute it from its parts, rather than the source or Spark."""
    if isinstance(node, exp.AggFunc | exp.Window | exp.Query | exp.Subquery | exp.Column):
        return False
    call = call_of(node)
    return type(node) in VALUE_NODES if call is None else call[0] in FUNCTIONS


def _placed(node: exp.Expr, pieces: list[exp.Expr]) -> exp.Expr:
    pieces.append(node.copy())
    return exp.Parameter(this=exp.Var(this=place(len(pieces) - 1)[1:]))
