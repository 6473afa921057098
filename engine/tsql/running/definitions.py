"""CREATE, ALTER, DROP, TRUNCATE, and wrapper functions."""

from __future__ import annotations

from sqlglot import exp

from engine.tsql import statements as st
from engine.tsql.messages import sql_error
from engine.tsql.names import DEFAULT_SCHEMA, literal, quoted, table_name
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
            name = table.name.lower()
            found = self._session.wrappers.pop(name, None) or self._session.functions.pop(name, None)
            if found is None and not tree.args.get("exists"):
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

    def identity_insert(self, statement: st.IdentityInsert) -> None:
        """SET IDENTITY_INSERT: the source takes numbers that are given at any time; OFF counts on from them.

        Raises 208, 8106 for a table without an identity column.
        """
        schema, name = table_name(statement.table)
        relation = self._queries.translator().relation(schema, name)
        if relation is None:
            raise sql_error(208, name)
        work = self._session.work
        place = (
            quoted(relation.name)
            if relation.is_temporary
            else (f"{quoted(relation.schema)}.{quoted(relation.name)}")
        )
        text = literal(place)
        columns = work.query(
            "SELECT attname::text FROM pg_catalog.pg_attribute"
            f" WHERE attrelid = {text}::regclass AND attidentity <> ''"
        )
        column = next((str(row[0]) for row in list(columns.rows)), None)
        if column is None:
            raise sql_error(8106, name)
        if not statement.is_on:
            counted = work.query(
                "SELECT setval(s, m) FROM (SELECT pg_get_serial_sequence("
                f"{text}, {literal(column)})::regclass AS s, max({quoted(column)}) AS m"
                f" FROM {place}) AS found WHERE m > coalesce(pg_sequence_last_value(s), 0)"
            )
            list(counted.rows)

    def define_function(self, statement: st.DefineFunction) -> None:
        """CREATE FUNCTION that gives a value, for the session. Raises 2714."""
        known = statement.name in self._session.wrappers or statement.name in self._session.functions
        if known and not statement.replaces:
            raise sql_error(2714, statement.name)
        self._session.functions[statement.name] = statement

    def define_wrapper(self, statement: st.DefineWrapper) -> None:
        """CREATE FUNCTION of a generated script. Raises 2714."""
        name, wrapper = wrapper_of(
            self._session.engine, self._session.database, statement.text, self._session.work.principal
        )
        if name.lower() in self._session.wrappers:
            raise sql_error(2714, name)
        self._session.wrappers[name.lower()] = wrapper
