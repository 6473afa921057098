"""Variables: values, and tables."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from engine.tsql import statements as st
from engine.tsql.accumulation import Accumulation, accumulation, place
from engine.tsql.conversion import convert
from engine.tsql.messages import SqlError
from engine.tsql.names import quoted
from engine.tsql.running.queries import Queries, is_scalar
from engine.tsql.running.session import VariableScope
from engine.tsql.sink import value_of
from engine.tsql.types import Value


class Variables:
    """DECLARE, SET, SELECT @a = …, and table variables, which are temporary tables of the source."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._session = queries.session

    def declare(self, statement: st.Declare) -> None:
        """DECLARE @a int = …"""
        for each in statement.variables:
            value = Value(each.type, None) if each.initial is None else self._queries.value(each.initial)
            self._session.variables[each.name] = convert(value, each.type)

    def set_(self, statement: st.Assign) -> None:
        """SET @a = …"""
        self._queries.assign(statement.name, self._queries.value(statement.expression))

    def select(self, statement: st.SelectAssign) -> None:
        """SELECT @a = …: of several rows the last one, unless each goes on from the one before."""
        if is_scalar(statement.query):
            for name, expression in zip(statement.names, statement.query.expressions, strict=True):
                self._queries.assign(name, self._queries.value(expression))
            self._session.state.rowcount = 1
            return
        found = accumulation(statement.query.expressions, statement.names)
        if found is not None:
            self._session.state.rowcount = self._accumulate(statement, found)
            return
        answer, last, count = self._queries.answer(statement.query), None, 0
        for row in answer.rows:
            last, count = row, count + 1
        if last is not None:
            for name, column, raw in zip(statement.names, answer.columns, last, strict=True):
                self._queries.assign(name, value_of(column, raw))
        self._session.state.rowcount = count

    def _accumulate(self, statement: st.SelectAssign, found: Accumulation) -> int:
        """Assigns row by row; how many there were."""
        query = statement.query.copy()
        query.set("expressions", list(found.pieces))
        answer, count, variables = self._queries.answer(query), 0, self._session.variables
        try:
            for row in answer.rows:
                count += 1
                for number, (column, raw) in enumerate(zip(answer.columns, row, strict=True)):
                    variables[place(number)] = value_of(column, raw)
                for name, expression in zip(statement.names, found.values, strict=True):
                    self._queries.assign(name, self._queries.value(expression))
        finally:
            for number in range(len(found.pieces)):
                variables.pop(place(number), None)
        return count

    def declare_table(self, statement: st.DeclareTable) -> None:
        """DECLARE @t TABLE."""
        [text] = self._queries.translator().definition(statement.definition).statements
        if statement.name in self._session.scopes[-1].tables:
            self._session.work.run(f"DROP TABLE {quoted(statement.name)}")
        self._session.work.run(text)
        self._session.scopes[-1].tables[statement.name] = text

    def drop_tables(self, scope: VariableScope) -> None:
        """The end of a scope's table variables."""
        for name in scope.tables:
            with suppress(SqlError):
                self._session.work.run(f"DROP TABLE IF EXISTS {quoted(name)}")
        scope.tables.clear()

    def keep_tables(self) -> Callable[[], None]:
        """Reads table variables before a rollback; what is returned puts them back after it."""
        kept: list[tuple[str, str, list[str]]] = []
        for scope in self._session.scopes:
            for name, text in scope.tables.items():
                relation = self._queries.translator().relation("", name)
                columns = [] if relation is None else list(relation.columns)
                cells = ", ', ', ".join(f"quote_nullable({quoted(column)}::text)" for column in columns)
                answer = self._session.work.query(f"SELECT concat('(', {cells}, ')') FROM {quoted(name)}")
                kept.append((name, text, [str(row[0]) for row in answer.rows]))

        def restore() -> None:
            for name, text, rows in kept:
                self._session.work.run(f"DROP TABLE IF EXISTS {quoted(name)}", text)
                if rows:
                    self._session.work.insert(f"INSERT INTO {quoted(name)}", iter(rows))

        return restore
