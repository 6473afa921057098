"""Change data that a change of rows reads: fetched from Spark into temporary tables at the source."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.sources.sql_session import Answer
from engine.tsql.carrying import Part, converted, parts, tables_of, with_own_expressions
from engine.tsql.messages import SqlError, sql_error
from engine.tsql.names import quoted, quoted_identifier, table_name
from engine.tsql.rewriting import postgres_type
from engine.tsql.running.queries import Queries
from engine.tsql.sink import type_of

_NO_SUCH_COLUMN = 207


class Carrier:
    """Carries change data to the source, within the statement that reads it: the tables go with `drop`."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._session = queries.session
        self._made: list[str] = []

    def carry(self, tree: exp.Expr) -> None:
        """Puts temporary tables in the place of what Spark answers, in the tree too. Raises SqlError."""
        if isinstance(tree, exp.Insert):
            with_own_expressions(tree, self._session.wrappers)
        for part in parts(tree, self._session.wrappers):
            is_inserted = isinstance(tree, exp.Insert) and part.node is tree.expression
            self._carry(part)
            if is_inserted and isinstance(tree, exp.Insert):
                self._convert(tree, self._made[-1])

    def drop(self) -> None:
        """The temporary tables go."""
        for name in self._made:
            self._session.work.run(f"DROP TABLE {quoted(name)}")
        self._made.clear()

    def load(self, place: str, names: Sequence[str], answer: Answer, temporary: bool) -> int:
        """Makes a table and fills it. place: its name as the source reads it. How many rows."""
        columns = ", ".join(
            f"{quoted(name)} {column.source_type or postgres_type(type_of(column))}"
            for name, column in zip(names, answer.columns, strict=True)
        )
        self._session.work.run(f"CREATE {'TEMPORARY ' if temporary else ''}TABLE {place} ({columns})")
        return self._session.work.load(place, answer.rows)

    def _carry(self, part: Part) -> None:
        """Makes the part's table. A subquery that speaks of the rows around it becomes that of its tables."""
        try:
            answer = self._queries.from_spark(part.query)
        except SqlError as error:
            if part.is_table or error.message.number != _NO_SUCH_COLUMN:
                raise
            for table in tables_of(part, self._session.wrappers):
                self._carry(table)
            return
        name = f"#highwater {len(self._made) + 1}"
        self.load(quoted(name), _names(part, answer), answer, True)
        self._made.append(name)
        part.becomes(name)

    def _convert(self, tree: exp.Insert, name: str) -> None:
        """Rows to insert get the types of the columns that they are for. Raises 208, 213."""
        target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        translator = self._queries.translator()
        wanted, have = translator.relation(*table_name(target)), translator.relation("", name)
        if wanted is None or have is None:
            raise sql_error(208, target.name)
        columns = {column.lower(): type_ for column, type_ in wanted.columns.items()}
        needed = (
            [
                wanted.columns.get(each.name) or columns.get(each.name.lower())
                for each in tree.this.expressions
            ]
            if isinstance(tree.this, exp.Schema)
            else list(wanted.columns.values())
        )
        if len(needed) != len(have.columns):
            raise sql_error(213)
        expressions = [
            converted(column, type_, need or type_)
            for (column, type_), need in zip(have.columns.items(), needed, strict=True)
        ]
        table = exp.Table(this=quoted_identifier(name))
        tree.set("expression", exp.select(*expressions).from_(table))


def _names(part: Part, answer: Answer) -> list[str]:
    """Names of a temporary table's columns. Raises 8155, 8156 where a derived table must give them some."""
    above = part.node.parent
    alias = above.args.get("alias") if isinstance(above, exp.Subquery | exp.CTE) else None
    if isinstance(part.node, exp.Table):
        return [column.name for column in answer.columns]
    if not isinstance(alias, exp.TableAlias) or alias.columns:  # nobody calls them by these names
        return [f"column {number}" for number in range(1, len(answer.columns) + 1)]
    names: dict[str, str] = {}
    for number, column in enumerate(answer.columns, 1):
        if not column.name:
            raise sql_error(8155, number, alias.name)
        if column.name.lower() in names:
            raise sql_error(8156, column.name, alias.name)
        names[column.name.lower()] = column.name
    return list(names.values())
