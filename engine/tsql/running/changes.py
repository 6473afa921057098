"""Changes of rows at the source, also with rows that Spark finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from engine.sources.sql_session import Answer
from engine.tsql import statements as st
from engine.tsql.applying import join_functions
from engine.tsql.carrying import is_for_spark
from engine.tsql.folding import source_literal
from engine.tsql.messages import SqlError, sql_error
from engine.tsql.msdb_names import qualified
from engine.tsql.names import quoted, table_name
from engine.tsql.rewriting import understood
from engine.tsql.running.carried import Carrier
from engine.tsql.running.definitions import Definitions
from engine.tsql.running.queries import Queries
from engine.tsql.sink import value_of
from engine.tsql.spark_sql import is_change_data, is_system_object

_NEEDS_18 = "It needs PostgreSQL 18 at the source."
_NO_OLD_ROWS = ("Invalid object name 'old'.", "Invalid object name 'new'.")


class Changes:
    """INSERT, UPDATE, DELETE, MERGE, SELECT … INTO."""

    def __init__(self, queries: Queries, definitions: Definitions) -> None:
        self._queries = queries
        self._session = queries.session
        self._definitions = definitions

    def modify(self, statement: st.Modify) -> None:
        """A change of rows. Raises 229 for what belongs to the product, 3930 in a doomed transaction."""
        if self._session.work.doomed:
            raise sql_error(3930)
        tree = qualified(statement.tree) if self._session.in_msdb else statement.tree
        for table in tree.find_all(exp.Table):
            if _is_target(table, tree) and is_system_object(table):
                raise sql_error(
                    229, type(tree).__name__.upper(), table.name, self._session.database, table.db
                )
        if is_change_data(tree, self._session.wrappers):
            with self._session.work.as_one():
                count = self._with_change_data(tree)
            self._session.counted(count)
            return
        self._session.counted(self._at_source(tree))

    def _at_source(self, tree: exp.Expr) -> int:
        """Makes the change; how many rows it touched or showed."""
        self._definitions.make_default_schema(tree)
        with understood():
            text = self._queries.translator().modification(tree)
        try:
            if text.returns_rows:
                answer = self._session.work.query(text.statements[-1])
                return self._session.sink.rows(answer.columns, answer.rows)
            return self._session.work.run(*text.statements) or 0
        except SqlError as error:
            # Before version 18, PostgreSQL takes them for tables that are not there.
            if text.shows_old_and_new and error.message.text in _NO_OLD_ROWS:
                raise sql_error(50040, "OUTPUT of deleted and inserted rows alike", _NEEDS_18) from error
            raise

    def _with_change_data(self, tree: exp.Expr) -> int:
        """What Spark answers goes to the source first, within the same statement."""
        carrier, copy = Carrier(self._queries), tree.copy()
        join_functions(copy)
        if isinstance(copy, exp.Select) and is_for_spark(copy, self._session.wrappers):
            return self._into(carrier, copy)
        carrier.carry(copy)
        count = self._at_source(copy)
        carrier.drop()
        return count

    def _into(self, carrier: Carrier, tree: exp.Select) -> int:
        """SELECT … INTO of change data alone: its rows are the table's. Raises 1038."""
        target = tree.args["into"].this
        tree.set("into", None)
        answer = self._queries.from_spark(tree)
        if not all(each.name for each in answer.columns):
            raise sql_error(1038)
        names = [each.name for each in answer.columns]
        return carrier.load(self._new_name(target), names, answer, not table_name(target)[0])

    def insert_head(self, target: exp.Schema | exp.Table, columns: Sequence[str] = ()) -> tuple[str, int]:
        """``INSERT INTO table (columns)`` as the source has them, and how many columns."""
        table = target.this if isinstance(target, exp.Schema) else target
        listed = (
            [each.name for each in target.expressions] if isinstance(target, exp.Schema) else list(columns)
        )
        schema, name = table_name(table)
        relation = self._queries.translator().relation(schema, name)
        if relation is None:
            raise sql_error(208, f"{table.db}.{name}" if table.db else name)
        known = {column.lower(): column for column in relation.columns}
        for column in listed:
            if column not in relation.columns and column.lower() not in known:
                raise sql_error(207, column)
        names = [column if column in relation.columns else known[column.lower()] for column in listed]
        place = (
            quoted(relation.name)
            if relation.is_temporary
            else f"{quoted(relation.schema)}.{quoted(relation.name)}"
        )
        chosen_names = names or list(relation.columns)
        return f"INSERT INTO {place} ({', '.join(map(quoted, chosen_names))})", len(chosen_names)

    def _new_name(self, table: exp.Table) -> str:
        schema, name = table_name(table)
        if not schema:
            return quoted(name)
        self._definitions.make_default_schema(table)
        translator = self._queries.translator()
        return f"{quoted(translator.known_schema(schema))}.{quoted(name)}"


def _is_target(table: exp.Table, tree: exp.Expr) -> bool:
    if not isinstance(tree, exp.Insert | exp.Update | exp.Delete | exp.Merge):
        return False
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    return any(table is each for each in (target, *(tree.args.get("tables") or ())))


def tuples(answer: Answer) -> Iterator[str]:
    """Rows as ``(…)`` of literals for the source."""
    for row in answer.rows:
        cells = []
        for column, raw in zip(answer.columns, row, strict=True):
            value = value_of(column, raw)
            flag = isinstance(value.value, bool)
            cells.append(("'1'" if value.value else "'0'") if flag else source_literal(value).sql("postgres"))
        yield f"({', '.join(cells)})"
