"""CROSS APPLY and OUTER APPLY of query functions. Pure.

A function whose arguments no row changes gives the same rows for each: it is joined. One that is given
columns is refused, because its range is checked before the query runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from engine.tsql.messages import SyntaxProblem, unsupported


def applied_functions(tree: exp.Expr) -> Iterator[exp.Join]:
    """Joins that apply a function of a schema, or a wrapper function."""
    for join in tree.find_all(exp.Join):
        lateral = join.this
        if isinstance(lateral, exp.Lateral) and isinstance(lateral.this, exp.Dot | exp.Anonymous):
            yield join


def check_applied(tree: exp.Expr, place: tuple[int, int]) -> None:
    """Raises SyntaxProblem for a function that is applied to columns."""
    for join in applied_functions(tree):
        if join.this.this.find(exp.Column) is not None:
            raise _refused(join, place)


def _refused(join: exp.Join, place: tuple[int, int]) -> SyntaxProblem:
    function = join.this.this
    name = function.expression.name if isinstance(function, exp.Dot) else function.name
    return unsupported(
        f"{name} applied to columns", "Give it variables or constants, one range at a time.", *place
    )


def join_functions(tree: exp.Expr) -> None:
    """Applied functions as joined ones: CROSS APPLY is a cross join, OUTER APPLY a left join of all rows."""
    for join in list(applied_functions(tree)):
        lateral = join.this
        function = lateral.this
        is_qualified = isinstance(function, exp.Dot)
        table = exp.Table(
            this=function.expression if is_qualified else function,
            db=function.this if is_qualified else None,
            alias=lateral.args.get("alias"),
        )
        if lateral.args.get("cross_apply"):
            join.replace(exp.Join(this=table, kind="CROSS"))
        else:
            join.replace(exp.Join(this=table, side="LEFT", on=exp.true()))
