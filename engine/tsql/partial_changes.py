"""Changes of some rows of a table: UPDATE and DELETE TOP (n), and DELETE through a CTE. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.tsql.joined_changes import ROW_PLACE, Key
from engine.tsql.messages import sql_error
from engine.tsql.names import is_own, quoted_identifier

_KEY = "highwater key "
_PLAIN = frozenset({"kind", "expressions", "from_", "where", "order", "limit"})


def choose_rows(tree: exp.Expr, key: Key) -> None:
    """Says by its key, or else by its place, which rows a change is for. Raises 50040."""
    target = tree.this
    limit = tree.args.get("limit")
    if isinstance(target, exp.Table) and is_own(target):
        _through_expression(tree, target, key)
    elif limit is not None:
        tree.set("limit", None)
        _first_rows(tree, limit, key)


def _first_rows(tree: exp.Expr, limit: exp.Expr, key: Key) -> None:
    target = tree.this
    if not isinstance(target, exp.Table) or any(tree.args.get(name) for name in ("from_", "using", "tables")):
        raise sql_error(50040, "TOP in a change with FROM", "Give a condition on a subquery with TOP.")
    names = key(target) or ROW_PLACE
    query = exp.Select(expressions=[exp.Column(this=quoted_identifier(name)) for name in names])
    query.set("from_", exp.From(this=target.copy()))
    query.set("where", tree.args.get("where"))
    query.set("limit", limit)
    tree.set("where", _within(names, query))


def _through_expression(tree: exp.Expr, target: exp.Table, key: Key) -> None:
    """``WITH d AS (SELECT …, ROW_NUMBER() … FROM t) DELETE FROM d WHERE …``."""
    clause = next(
        (each for each in tree.args["with_"].expressions if each.alias.lower() == target.name.lower()), None
    )
    query = None if clause is None else clause.this
    base = query.args["from_"].this if isinstance(query, exp.Select) and query.args.get("from_") else None
    is_plain = isinstance(query, exp.Select) and all(
        not value or name in _PLAIN for name, value in query.args.items()
    )
    if query is None or not isinstance(tree, exp.Delete) or not is_plain or not isinstance(base, exp.Table):
        raise sql_error(
            50040,
            "This change through a common table expression",
            "DELETE takes one that selects from one table; else name the table and join.",
        )
    is_listed = bool(clause is not None and clause.args["alias"].columns)
    if base.args.get("joins") or is_own(base) or tree.args.get("limit") or is_listed:
        raise sql_error(50040, "DELETE through this common table expression", "It must read one table.")
    names = key(base) or ROW_PLACE
    labels = [f"{_KEY}{number}" for number, _ in enumerate(names)]
    for name, label in zip(names, labels, strict=True):
        query.append("expressions", exp.alias_(exp.Column(this=quoted_identifier(name)), label, quoted=True))
    chosen = exp.Select(expressions=[exp.Column(this=quoted_identifier(label)) for label in labels])
    chosen.set("from_", exp.From(this=target.copy()))
    chosen.set("where", tree.args.get("where"))
    plain = base.copy()
    plain.set("alias", None)
    tree.set("this", plain)
    tree.set("where", _within(names, chosen))


def _within(names: Sequence[str], query: exp.Select) -> exp.Where:
    row = exp.Tuple(expressions=[exp.Column(this=quoted_identifier(name)) for name in names])
    return exp.Where(this=exp.In(this=row, query=exp.Subquery(this=query)))
