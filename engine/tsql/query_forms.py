"""Forms of queries that are said by others that the targets have. Pure."""

from __future__ import annotations

from sqlglot import exp

_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))


def join_texts(tree: exp.Expr) -> exp.Expr:
    """``SELECT ',' + name FROM … ORDER BY … FOR XML PATH('')`` as STRING_AGG, in place.

    The only FOR XML there is: of one column without a name, whose texts are put together. Characters of XML
    become entities as there.
    """
    for query in list(tree.find_all(exp.Select)):
        if (value := _joined_by_path(query)) is not None:
            for character, entity in _ENTITIES:
                value = exp.Replace(
                    this=value,
                    expression=exp.Literal.string(character),
                    replacement=exp.Literal.string(entity),
                )
            if (order := query.args.get("order")) is not None:
                value = exp.Order(this=value, expressions=[each.copy() for each in order.expressions])
            query.set("expressions", [exp.GroupConcat(this=value, separator=exp.Literal.string(""))])
            query.set("order", None)
            query.set("for_", None)
    return tree


def _joined_by_path(query: exp.Select) -> exp.Expr | None:
    """What is put together, where a query has that form."""
    clause = query.args.get("for_")
    if clause is None or str(clause.args.get("kind")) != "XML" or len(query.expressions) != 1:
        return None
    if any(query.args.get(name) for name in ("limit", "distinct", "group", "having")):
        return None
    options = [option.this for option in clause.expressions]
    is_path = len(options) == 1 and isinstance(options[0], exp.XMLKeyValueOption)
    if not is_path or options[0].name.upper() != "PATH" or options[0].args.get("expression") is None:
        return None
    [value] = query.expressions
    if options[0].args["expression"].name or isinstance(value, exp.Alias | exp.Column | exp.Star):
        return None
    return value.copy()  # type: ignore[no-any-return]


def unite_values(tree: exp.Expr) -> None:
    """CROSS APPLY (VALUES …) as queries put together: Spark's VALUES see no columns around them."""
    for lateral in list(tree.find_all(exp.Lateral)):
        inner = lateral.this
        if not (isinstance(inner, exp.Subquery) and isinstance(inner.this, exp.Values)):
            continue
        names = _column_names(lateral)
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in inner.this.expressions]
        queries: list[exp.Expr] = [_row(row, names) for row in rows]
        united = queries[0]
        for query in queries[1:]:
            united = exp.Union(this=united, expression=query, distinct=False)
        inner.set("this", united)


def _column_names(lateral: exp.Lateral) -> list[str]:
    """Those that the alias gives: ``AS x (a, b)``."""
    alias = lateral.args.get("alias")
    return [each.name for each in alias.columns] if isinstance(alias, exp.TableAlias) else []


def _row(values: list[exp.Expr], names: list[str]) -> exp.Select:
    named = [
        exp.alias_(value.copy(), names[place], quoted=True) if place < len(names) else value.copy()
        for place, value in enumerate(values)
    ]
    return exp.Select(expressions=named)


def place_values(tree: exp.Expr) -> None:
    """CROSS APPLY (SELECT value AS name) x: the value stands where x.name does.

    Spark's applied queries can't look up what depends on the rows around them, as a commit's time does.
    """
    for join in list(tree.find_all(exp.Join)):
        lateral, query = join.this, join.parent_select
        values = _values(lateral) if isinstance(lateral, exp.Lateral) else None
        if values is None or query is None or any(_shows_all(each) for each in query.find_all(exp.Star)):
            continue
        name = lateral.alias.lower()
        for column in list(query.find_all(exp.Column)):
            is_its_own = column.table.lower() == name or (not column.table and column.name.lower() in values)
            if is_its_own and (value := values.get(column.name.lower())) is not None:
                _put(column, value)
        join.pop()


def _put(column: exp.Column, value: exp.Expr) -> None:
    new: exp.Expr = exp.Paren(this=value.copy())
    in_list = isinstance(column.parent, exp.Select) and column.arg_key == "expressions"
    column.replace(exp.alias_(new, column.name, quoted=True) if in_list else new)


def _shows_all(star: exp.Star) -> bool:
    return not isinstance(star.parent, exp.Count)


def _values(lateral: exp.Lateral) -> dict[str, exp.Expr] | None:
    """The values of a query without FROM by their names; None for other queries."""
    query = lateral.this.this if isinstance(lateral.this, exp.Subquery) else None
    if not isinstance(query, exp.Select) or any(v and k != "expressions" for k, v in query.args.items()):
        return None
    labels = _column_names(lateral) or [each.alias_or_name for each in query.expressions]
    if not lateral.args.get("cross_apply") or len(labels) != len(query.expressions) or not all(labels):
        return None
    plain = [each.this if isinstance(each, exp.Alias) else each for each in query.expressions]
    return {label.lower(): value for label, value in zip(labels, plain, strict=True)}
