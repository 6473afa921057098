"""Names after USE msdb: views of msdb are found without their database, all else stays where it was. Pure."""

from __future__ import annotations

from sqlglot import exp

from engine.tsql.catalog_views import VIEWS
from engine.tsql.names import DEFAULT_SCHEMA, is_own

MSDB = "msdb"


def qualified(tree: exp.Expr) -> exp.Expr:
    """The tree with the database before each name of a view of msdb that stands without it."""
    copy = tree.copy()
    for table in copy.find_all(exp.Table):
        is_plain = isinstance(table.this, exp.Identifier) and not table.catalog
        is_plain = is_plain and table.db.lower() in ("", DEFAULT_SCHEMA) and not is_own(table)
        if is_plain and f"{MSDB}.{DEFAULT_SCHEMA}.{table.name.lower()}" in VIEWS:
            table.set("db", exp.to_identifier(DEFAULT_SCHEMA))
            table.set("catalog", exp.to_identifier(MSDB))
    return copy
