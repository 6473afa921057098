"""OUTPUT as the source's RETURNING: inserted and deleted rows, MERGE's $action. Pure."""

from __future__ import annotations

from sqlglot import exp

from engine.tsql.messages import sql_error
from engine.tsql.names import COLUMNS, column_name, quoted_identifier

_NATURAL: dict[type[exp.Expr], str] = {exp.Insert: "inserted", exp.Update: "inserted", exp.Delete: "deleted"}
"""Whose columns RETURNING gives under the table's own name."""
_ROWS = {"inserted": "new", "deleted": "old"}
"""How PostgreSQL 18 calls the rows; no other has a name for them."""


def into_of(tree: exp.Expr) -> exp.Table | exp.Schema | None:
    """OUTPUT … INTO: its table, taken out of the tree; None where rows go to the user."""
    clause = tree.args.get("returning")
    if clause is None or clause.args.get("into") is None:
        return None
    into: exp.Table | exp.Schema = clause.args["into"]
    clause.set("into", None)
    return into


def name_output(tree: exp.Expr) -> bool:
    """Names what OUTPUT shows, in a tree whose tables are named. Whether only PostgreSQL 18 can say it.

    Raises 207, 4104, 50040.
    """
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    natural, is_new = _NATURAL.get(type(tree), ""), False
    for column in list(tree.args["returning"].find_all(exp.Column)):
        rows = column.table.lower()
        if rows in _ROWS:
            _name(column, target)
            if rows == "deleted" and isinstance(tree, exp.Insert):
                raise sql_error(4104, f"{column.table}.{column.name}")
            if rows == natural:
                own = None if isinstance(tree, exp.Insert) else quoted_identifier(target.alias_or_name)
                column.set("table", own)
            else:
                is_new = True
                column.set("table", quoted_identifier(_ROWS[rows]))
        elif column.name.lower() == "$action" and isinstance(tree, exp.Merge):
            _action(column)
    if is_new and any(table.alias_or_name.lower() in _ROWS.values() for table in tree.find_all(exp.Table)):
        raise sql_error(50040, "A table called old or new in a statement with OUTPUT", "Give it an alias.")
    return is_new


def _name(column: exp.Column, target: exp.Expr) -> None:
    if isinstance(column.this, exp.Star):
        return
    found = column_name(target.meta.get(COLUMNS, {}), column.name)
    if found is None and target.meta.get(COLUMNS):
        raise sql_error(207, column.name)
    column.set("this", quoted_identifier(found[0] if found else column.name))


def _action(column: exp.Column) -> None:
    call = exp.Anonymous(this="merge_action")
    is_labelled = isinstance(column.parent, exp.Alias)
    column.replace(call if is_labelled else exp.alias_(call, "$action", quoted=True))
