"""DECLARE CURSOR, OPEN, FETCH, CLOSE, DEALLOCATE."""

from __future__ import annotations

from engine.tsql import statements as st
from engine.tsql.conversion import convert
from engine.tsql.cursors import Cursor
from engine.tsql.messages import sql_error
from engine.tsql.running.queries import Queries
from engine.tsql.sink import value_of
from engine.tsql.types import INT


class CursorSteps:
    """The cursors of a session."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._session = queries.session

    def declare(self, statement: st.DeclareCursor) -> None:
        """DECLARE CURSOR. Raises 16915."""
        if statement.name in self._session.cursors:
            raise sql_error(16915, statement.name)
        self._session.cursors[statement.name] = Cursor(statement.query, statement.scrolls)

    def _cursor(self, name: str) -> Cursor:
        found = self._session.cursors.get(name)
        if found is None:
            raise sql_error(16916, name)
        return found

    def step(self, statement: st.CursorStep) -> None:
        """OPEN, CLOSE, DEALLOCATE. Raises 16916."""
        cursor = self._cursor(statement.name)
        if statement.action == "OPEN":
            answer = self._queries.answer(cursor.query)
            cursor.open(answer.columns, list(answer.rows))
        elif statement.action == "CLOSE":
            cursor.close()
        else:
            del self._session.cursors[statement.name]

    def fetch(self, statement: st.Fetch) -> None:
        """FETCH [INTO]. Raises 16924."""
        cursor = self._cursor(statement.name)
        place = None if statement.place is None else convert(self._queries.value(statement.place), INT).value
        row = cursor.fetch(statement.direction, None if place is None else int(place))  # type: ignore[arg-type]
        self._session.state.fetch_status = -1 if row is None else 0
        if not statement.into:
            self._session.counted(self._session.sink.rows(cursor.columns, [] if row is None else [row]))
            return
        if len(statement.into) != len(cursor.columns):
            raise sql_error(16924)
        for name, column, raw in zip(statement.into, cursor.columns, row or (), strict=False):
            self._queries.assign(name, value_of(column, raw))
