"""What T-SQL makes of values by their types, where PostgreSQL and Spark do otherwise. Pure."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from engine.tsql.row_functions import read_time, said_call, said_cast

TypeOf = Callable[[exp.Column], str | None]
"""The type of a column in the target's words, or in T-SQL's."""

MOMENT = "moment"
"""Under this key a tree says that it gives a time."""
_WHOLE = frozenset({"int", "integer", "bigint", "smallint", "tinyint"})
_FRACTIONS = ("numeric", "decimal", "money", "smallmoney", "double", "real", "float")
_BYTES = ("binary", "varbinary")
_MOMENTS = ("timestamp", "datetime", "smalldatetime", "date")
_SAME_KIND = (exp.Paren, exp.Neg, exp.Sum, exp.Max, exp.Min, exp.Abs, exp.Window, exp.Coalesce)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_MOMENT_CALLS = frozenset({"date_trunc", "timestampadd", "last_day", "make_date"})


def typed(node: exp.Expr, dialect: str, type_of_column: TypeOf) -> exp.Expr | None:
    """The node as the target says it for these types; None where it stays. Its parts are said already.

    Raises 241 for text beside a time that is none.
    """
    if isinstance(node, exp.Avg | exp.Window):
        return _average(node, dialect, type_of_column)
    if isinstance(node, exp.Cast):
        return _cut_off(node, type_of_column) if dialect == "postgres" else _number_of(node, type_of_column)
    if isinstance(node, exp.Add | exp.Sub):
        return _days_later(node, dialect, type_of_column)
    if dialect == "spark":
        _read_times(node, type_of_column)
    return None


def _average(node: exp.Expr, dialect: str, type_of_column: TypeOf) -> exp.Expr | None:
    """AVG of whole numbers is a whole number."""
    average = node.this if isinstance(node, exp.Window) else node
    if not isinstance(average, exp.Avg) or isinstance(node.parent, exp.Window):
        return None
    value = average.this
    if isinstance(value, exp.Distinct):
        value = value.expressions[0]
    if not _is_whole(value, type_of_column):
        return None
    whole = node.copy() if dialect == "spark" else exp.Anonymous(this="trunc", expressions=[node.copy()])
    return said_cast(whole, "bigint", dialect)


def _is_whole(node: exp.Expr, type_of_column: TypeOf) -> bool:
    if isinstance(node, exp.Case):
        choices = [each.args["true"] for each in node.args["ifs"]] + [node.args.get("default")]
        there = [each for each in choices if each is not None and not isinstance(each, exp.Null)]
        return all(_is_whole(each, type_of_column) for each in there)
    if isinstance(node, exp.Cast):
        return _cast_to(node) in _WHOLE
    if isinstance(node, _SAME_KIND):
        return _is_whole(node.this, type_of_column)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod):
        return _is_whole(node.this, type_of_column) and _is_whole(node.expression, type_of_column)
    if isinstance(node, exp.Literal):
        return _is_digits(node)
    if isinstance(node, exp.Column):
        return (type_of_column(node) or "").lower() in _WHOLE
    return isinstance(node, exp.Count | exp.IntDiv)


def _is_digits(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()


def _cast_to(node: exp.Cast) -> str:
    return str(node.args["to"].sql("postgres")).lower()


def _cut_off(node: exp.Cast, type_of_column: TypeOf) -> exp.Expr | None:
    """A number becomes whole by losing its fraction, which PostgreSQL would round."""
    is_whole = _cast_to(node) in _WHOLE
    if not is_whole or isinstance(node, exp.TryCast) or not _has_fraction(node.this, type_of_column):
        return None
    node.set("this", exp.Anonymous(this="trunc", expressions=[node.this.copy()]))
    return None


def _number_of(node: exp.Cast, type_of_column: TypeOf) -> exp.Expr | None:
    """The whole number that the last bytes of a column are."""
    digits = {"int": 8, "bigint": 16}.get(str(node.args["to"].sql("spark")).lower())
    value = node.this
    is_binary = isinstance(value, exp.Column) and (type_of_column(value) or "").lower().startswith(_BYTES)
    if digits is None or not is_binary:
        return None
    last = exp.func("right", exp.func("hex", value.copy()), exp.Literal.number(digits))
    numbers = [exp.Literal.number(16), exp.Neg(this=exp.Literal.number(10))]  # with its sign
    number = exp.Anonymous(this="conv", expressions=[last, *numbers])
    return exp.Cast(this=number, to=node.args["to"].copy())


def _has_fraction(node: exp.Expr, type_of_column: TypeOf) -> bool:
    if isinstance(node, exp.Avg) or (isinstance(node, exp.Literal) and not node.is_string):
        return isinstance(node, exp.Avg) or "." in str(node.this)
    if isinstance(node, exp.Cast):
        return _cast_to(node).startswith(_FRACTIONS)
    if isinstance(node, (*_SAME_KIND, exp.Round)):
        return _has_fraction(node.this, type_of_column)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return _has_fraction(node.this, type_of_column) or _has_fraction(node.expression, type_of_column)
    return isinstance(node, exp.Column) and (type_of_column(node) or "").lower().startswith(_FRACTIONS)


def _days_later(node: exp.Expr, dialect: str, type_of_column: TypeOf) -> exp.Expr | None:
    """A time and a number of days."""
    days = node.expression
    if not _is_digits(days) or not _is_moment(node.this, type_of_column):
        return None
    count: exp.Expr = exp.Neg(this=days.copy()) if isinstance(node, exp.Sub) else days
    return said_call("DATEADD", [exp.Literal.string("day"), count, node.this], dialect)


def _is_moment(node: exp.Expr, type_of_column: TypeOf) -> bool:
    if node.meta.get(MOMENT):
        return True
    if isinstance(node, exp.Paren | exp.Max | exp.Min | exp.Coalesce):
        return _is_moment(node.this, type_of_column)
    if isinstance(node, exp.Cast):
        return _cast_to(node).startswith(_MOMENTS)
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _MOMENT_CALLS
    return isinstance(node, exp.Column) and (type_of_column(node) or "").lower().startswith(_MOMENTS)


def _read_times(node: exp.Expr, type_of_column: TypeOf) -> None:
    """Text that is compared with a time is read as T-SQL reads it: Spark knows fewer ways to write one."""
    if isinstance(node, _COMPARISONS):
        sides = [node.this, node.expression]
    elif isinstance(node, exp.Between):
        sides = [node.this, node.args["low"], node.args["high"]]
    elif isinstance(node, exp.In):
        sides = [node.this, *node.expressions]
    else:
        return
    if any(_is_moment(each, type_of_column) for each in sides):
        for each in sides:
            if isinstance(each, exp.Literal) and each.is_string:
                each.replace(read_time(each))
