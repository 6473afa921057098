"""UPDATE … FROM and DELETE … FROM as the source has them: the changed table stands apart from FROM. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from engine.tsql.messages import sql_error
from engine.tsql.names import qualifier_of, quoted_identifier, table_name

Key = Callable[[exp.Table], Sequence[str]]
"""The primary key's columns of a table of the source; none where it has none."""

_TARGET = "highwater target"
ROW_PLACE = ("ctid", "tableoid")
"""Where a row is, in a table without a primary key."""


def update_from(tree: exp.Update, key: Key) -> None:
    """``UPDATE a SET … FROM t AS a JOIN u ON …``: the target leaves FROM, its join becomes a condition."""
    source = tree.args.get("from_")
    if source is not None:
        target, rest, conditions = _target_in_from(tree.this, source.this, key)
        tree.set("this", target)
        tree.set("from_", exp.From(this=rest) if rest is not None else None)
        for condition in conditions:
            tree.where(condition, copy=False)
    for assignment in tree.expressions:
        if isinstance(assignment.this, exp.Column):
            assignment.this.set("table", None)


def delete_from(tree: exp.Delete, key: Key) -> None:
    """``DELETE a FROM t AS a JOIN u ON …``: the same with USING."""
    targets = tree.args.get("tables")
    if targets and not isinstance(tree.this, exp.Expr):  # DELETE t, without FROM
        tree.set("this", targets[0])
        tree.set("tables", None)
    elif targets:
        target, rest, conditions = _target_in_from(targets[0], tree.this, key)
        tree.set("tables", None)
        tree.set("this", target)
        if rest is not None:
            tree.set("using", [rest])
        for condition in conditions:
            tree.where(condition, copy=False)


def name_target(tree: exp.Expr) -> None:
    """Columns of a target that stands in FROM too belong to the target, where nothing else is said."""
    if tree.this.alias_or_name != _TARGET:
        return
    written = [each.this for each in tree.expressions] if isinstance(tree, exp.Update) else []
    for column in tree.find_all(exp.Column):
        if (
            not column.table
            and qualifier_of(column) == _TARGET
            and not any(column is each for each in written)
        ):
            column.set("table", quoted_identifier(_TARGET))


def _target_in_from(
    target: exp.Expr, first: exp.Expr, key: Key
) -> tuple[exp.Expr, exp.Expr | None, list[exp.Expr]]:
    """The target's table with its alias, what is left of FROM, and the conditions of its joins."""
    joins = list(first.args.get("joins") or ())
    tables = [first, *(join.this for join in joins)]
    index = _index_of(target, tables)
    if index is None:
        return target, first, []
    found = tables[index]
    if isinstance(found, exp.Table) and any(not _is_inner(join) for join in joins):
        alias = quoted_identifier(found.alias or table_name(found)[1])
        found.set("alias", exp.TableAlias(this=alias))
        return _beside(found), first, _same_row(found, key(found))
    first.set("joins", None)
    conditions = [join.args["on"] for join in joins if join.args.get("on") is not None]
    rest = [table for i, table in enumerate(tables) if i != index]
    if not rest:
        return found, None, conditions
    crossed = [exp.Join(this=each, kind="CROSS") for each in rest[1:]]
    return found, _joined(rest[0], crossed), conditions


def _is_inner(join: exp.Join) -> bool:
    is_plain = (join.kind or "").upper() in ("", "INNER", "CROSS")
    return is_plain and not join.side and not join.args.get("using")


def _joined(first: exp.Expr, joins: list[exp.Join]) -> exp.Expr:
    if joins:
        first.set("joins", joins)
    return first


def _beside(table: exp.Expr) -> exp.Expr:
    """The target once more, apart from FROM: an outer join must keep it among the tables that it joins."""
    target = table.copy()
    target.set("joins", None)
    target.set("alias", exp.TableAlias(this=quoted_identifier(_TARGET)))
    return target


def _same_row(table: exp.Table, key: Sequence[str]) -> list[exp.Expr]:
    """That the target's row is the one that FROM joins.

    By its key, where there is one: a row that another session changes at that moment is then waited for and
    changed too. Its place is another one afterwards, so without a key it would be left as it is.
    """
    return [
        exp.EQ(
            this=exp.Column(this=quoted_identifier(name), table=quoted_identifier(_TARGET)),
            expression=exp.Column(this=quoted_identifier(name), table=quoted_identifier(table.alias)),
        )
        for name in key or ROW_PLACE
    ]


def _index_of(target: exp.Expr, tables: Sequence[exp.Expr]) -> int | None:
    """Which table of FROM the target is; None where it is none of them. Raises 8154.

    By its alias; else by its name, which may have an alias where it stands there only once.
    """
    if not isinstance(target, exp.Table):
        return None
    wanted = _lower(table_name(target))
    named = [i for i, each in enumerate(tables) if isinstance(each, exp.Table) and not _is_call(each)]
    for i in named:
        if not target.db and tables[i].alias.lower() == target.name.lower():
            return i
    same = [i for i in named if _lower(table_name(tables[i])) == wanted]  # type: ignore[arg-type]
    plain = [i for i in same if not tables[i].alias]
    if len(plain) > 1 or (len(same) > 1 and not plain):
        raise sql_error(8154, target.name)
    return next(iter(plain or same), None)


def _is_call(table: exp.Table) -> bool:
    return isinstance(table.this, exp.Func)


def _lower(name: tuple[str, str]) -> tuple[str, str]:
    return name[0].lower(), name[1].lower()
