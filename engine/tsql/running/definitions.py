"""CREATE, ALTER, DROP, TRUNCATE, and wrapper functions."""

from __future__ import annotations

from sqlglot import exp

from engine.tsql import statements as st
from engine.tsql.messages import sql_error
from engine.tsql.names import DEFAULT_SCHEMA, table_name
from engine.tsql.rewriting import understood
from engine.tsql.running.queries import Queries
from engine.tsql.wrappers import wrapper_of


class Definitions:
    """Tables of the source, and wrapper functions of the session."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._session = queries.session

    def define(self, statement: st.Define) -> None:
        """CREATE, ALTER, DROP, TRUNCATE. Raises 3930 in a doomed transaction."""
        if self._session.work.doomed:
            raise sql_error(3930)
        if isinstance(statement.tree, exp.Drop) and self._drop_wrappers(statement.tree):
            return
        self.make_default_schema(statement.tree)
        with understood():
            text = self._queries.translator().definition(statement.tree)
        self._session.work.run(*text.statements)

    def _drop_wrappers(self, tree: exp.Drop) -> bool:
        """DROP FUNCTION of wrapper functions."""
        if str(tree.args.get("kind")).upper() != "FUNCTION":
            return False
        for table in tree.args.get("tables") or [tree.this]:
            if self._session.wrappers.pop(table.name.lower(), None) is None and not tree.args.get("exists"):
                raise sql_error(3701, table.name)
        return True

    def make_default_schema(self, tree: exp.Expr) -> None:
        """Schema dbo comes when a table of it is made."""
        is_made = isinstance(tree, exp.Create | exp.Table) or bool(tree.args.get("into"))
        wanted = (
            table_name(table)[0].lower() == DEFAULT_SCHEMA for table in tree.find_all(exp.Table) if table.name
        )
        if is_made and any(wanted):
            known = {schema.lower() for schema in self._session.work.schemas()}
            if DEFAULT_SCHEMA not in known:
                self._session.work.run(f"CREATE SCHEMA {DEFAULT_SCHEMA}")

    def define_wrapper(self, statement: st.DefineWrapper) -> None:
        """CREATE FUNCTION of a generated script. Raises 2714."""
        name, wrapper = wrapper_of(
            self._session.engine, self._session.database, statement.text, self._session.work.principal
        )
        if name.lower() in self._session.wrappers:
            raise sql_error(2714, name)
        self._session.wrappers[name.lower()] = wrapper
