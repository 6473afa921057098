"""A session's work at the source: statements, transactions and savepoints as T-SQL has them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from engine.errors import CdcError
from engine.sources.sql_session import Answer, SourceRelation, SqlSession, StatementRefused
from engine.tsql.messages import SqlError, from_engine, sql_error
from engine.tsql.refusals import of_source

_STATEMENT = "highwater_statement"
_ROWS_AT_ONCE = 500


class SourceWork:
    """One connection, opened when it is first needed, with T-SQL's transaction count.

    A statement that fails within a transaction is taken back alone, as T-SQL does: PostgreSQL would give up
    the whole transaction, so each statement has a savepoint.
    """

    def __init__(self, open_session: Callable[[], SqlSession], database: str, principal: str | None) -> None:
        self._open_session = open_session
        self._database = database
        self._session: SqlSession | None = None
        self._principals = [principal]
        self._named: str | None = None
        self._saved: list[str] = []
        self._taken: Generator[Sequence[Any], None, None] | None = None
        self.isolation: str | None = None
        self._within = False
        """Whether what runs is part of a statement that keeps or undoes it all."""
        self.transactions = 0
        """@@TRANCOUNT."""
        self.doomed = False
        """XACT_STATE() = -1: only a rollback is possible."""
        self.before_rollback: Callable[[], Callable[[], None]] = lambda: lambda: None
        """Called before a rollback; what it returns, after it: table variables outlive transactions."""

    # Statements

    def query(self, text: str) -> Answer:
        """Rows, taken while they come. Raises SqlError."""
        session = self._ready()
        self._guard(session)
        try:
            answer = session.query(text)
        except (StatementRefused, CdcError) as error:
            self._undo(session)
            raise self._error(error) from error
        except BaseException:
            self._give_up(session, False)
            raise
        self._taken = self._rows(session, answer.rows)
        return Answer(answer.columns, self._taken)

    def _rows(
        self, session: SqlSession, rows: Iterator[Sequence[Any]]
    ) -> Generator[Sequence[Any], None, None]:
        finished = False
        try:
            yield from rows
            finished = True
        except (StatementRefused, CdcError) as error:
            raise self._error(error) from error
        finally:
            if finished:
                self._keep(session)
            else:
                rows.close()  # type: ignore[attr-defined]
                self._undo(session)

    def run(self, *texts: str) -> int | None:
        """Statements without rows, all or none; how many rows the last one touched. Raises SqlError."""
        session = self._ready()
        count = None
        with self._together(session, len(texts)):
            for text in texts:
                count = session.run(text)
        return count

    @contextmanager
    def as_one(self) -> Iterator[None]:
        """What runs within is one statement: all of it stays, or nothing does. Raises SqlError."""
        session = self._ready()
        with self._together(session, 2):
            depth, self._within = self._within, True
            try:
                yield
            finally:
                self._within = depth

    def load(self, table: str, rows: Iterable[Sequence[Any]]) -> int:
        """Rows into a table, its name quoted: all or none; how many they were. Raises SqlError."""
        session = self._ready()
        with self._together(session, 1):
            return session.load(table, rows)

    @contextmanager
    def _together(self, session: SqlSession, statements: int) -> Iterator[None]:
        alone = self.transactions == 0 and statements > 1 and not self._within
        try:
            if alone:
                session.run("BEGIN")
            else:
                self._guard(session)
            yield
            if alone:
                session.run("COMMIT")
            else:
                self._keep(session)
        except (StatementRefused, CdcError) as error:
            if alone:
                session.run("ROLLBACK")
            else:
                self._undo(session)
            raise self._error(error) from error
        except BaseException:
            self._give_up(session, alone)
            raise

    def _give_up(self, session: SqlSession, alone: bool) -> None:
        """After Ctrl-C: the statement is taken back, and the transaction goes on, as after an attention."""
        with suppress(SqlError), self._as_errors():
            if alone:
                session.run("ROLLBACK")
            else:
                self._undo(session)

    def insert(self, head: str, rows: Iterator[str]) -> int:
        """INSERT of many rows, each as ``(…)``; all or none. ``head``: up to VALUES. Raises SqlError."""
        session = self._ready()
        count = 0
        with self._together(session, 2):
            chunk: list[str] = []
            for row in rows:
                chunk.append(row)
                if len(chunk) == _ROWS_AT_ONCE:
                    count += self._insert(session, head, chunk)
                    chunk = []
            if chunk:
                count += self._insert(session, head, chunk)
        return count

    def _insert(self, session: SqlSession, head: str, rows: Sequence[str]) -> int:
        session.run(f"{head} VALUES {', '.join(rows)}")
        return len(rows)

    def relations(self, names: Sequence[str]) -> Sequence[SourceRelation]:
        """Tables with these names. Raises SqlError."""
        with self._as_errors():
            return self._ready().relations(names)

    def schemas(self) -> Sequence[str]:
        """Names of schemas. Raises SqlError."""
        with self._as_errors():
            return self._ready().schemas()

    # Transactions

    def begin(self, name: str | None = None) -> None:
        """BEGIN TRANSACTION."""
        if self.transactions == 0:
            level = f" ISOLATION LEVEL {self.isolation}" if self.isolation else ""
            with self._as_errors():
                self._ready().run(f"BEGIN{level}")
            self._named = name
        self.transactions += 1

    def commit(self) -> None:
        """COMMIT: the outermost one commits. Raises 3902, 3930."""
        if self.transactions == 0:
            raise sql_error(3902)
        if self.doomed:
            raise sql_error(3930)
        if self.transactions == 1:
            with self._as_errors():
                try:
                    self._ready().run("COMMIT")
                finally:
                    self._ended()
            return
        self.transactions -= 1

    def rollback(self, name: str | None = None) -> None:
        """ROLLBACK of everything, or to a savepoint. Raises 3903, 6401."""
        if self.transactions == 0:
            raise sql_error(3903)
        lower = None if name is None else name.lower()
        if lower is not None and lower in self._saved:
            if self.doomed:
                raise sql_error(3930)
            restore = self.before_rollback()
            with self._as_errors():
                self._ready().run(f"ROLLBACK TO SAVEPOINT {_savepoint(lower)}")
            restore()
            return
        if lower is not None and lower != (self._named or "").lower():
            raise sql_error(6401, name)
        restore = self.before_rollback()
        try:
            with self._as_errors():
                self._ready().run("ROLLBACK")
        finally:
            self._ended()
        restore()

    def save(self, name: str) -> None:
        """SAVE TRANSACTION."""
        if self.transactions == 0:
            raise sql_error(628)
        with self._as_errors():
            self._ready().run(f"SAVEPOINT {_savepoint(name.lower())}")
        self._saved.append(name.lower())

    def _ended(self) -> None:
        self.transactions, self.doomed, self._named = 0, False, None
        self._saved.clear()

    # Principals

    def impersonate(self, principal: str | None) -> None:
        """EXECUTE AS. Raises 15517."""
        self._principals.append(principal)
        try:
            self._assume()
        except SqlError:
            self._principals.pop()
            raise

    def revert(self) -> None:
        """REVERT: the principal before; nothing where there is none."""
        if len(self._principals) > 1:
            self._principals.pop()
            self._assume()

    @property
    def principal(self) -> str | None:
        """Whose rights hold now; None: the owner's."""
        return self._principals[-1]

    def _assume(self) -> None:
        if self._session is None:
            self._ready()
            return
        try:
            self._session.impersonate(self.principal)
        except StatementRefused as error:
            raise sql_error(15517, self.principal) from error

    # Connection

    def cancel(self) -> None:
        """Stops what runs now, from another thread."""
        if self._session is not None:
            self._session.cancel()

    def close(self) -> None:
        """Ends the connection; an open transaction is rolled back."""
        if self._session is not None:
            self._session.close()
            self._session = None
        self._ended()

    def _ready(self) -> SqlSession:
        """The connection, free for a statement: rows that nobody went on taking (after Ctrl-C) are closed."""
        if self._taken is not None:
            self._taken.close()
            self._taken = None
        if self._session is None:
            session = self._open_session()
            if self.principal is not None:
                try:
                    session.impersonate(self.principal)
                except StatementRefused as error:
                    session.close()
                    raise sql_error(15517, self.principal) from error
                except CdcError as error:
                    raise from_engine(error) from error
            self._session = session
        return self._session

    def _guard(self, session: SqlSession) -> None:
        if self.transactions and not self._within:
            with self._as_errors():
                session.run(f"SAVEPOINT {_STATEMENT}")

    def _keep(self, session: SqlSession) -> None:
        if self.transactions and not self._within:
            with self._as_errors():
                session.run(f"RELEASE SAVEPOINT {_STATEMENT}")

    def _undo(self, session: SqlSession) -> None:
        if self.transactions and not self._within:
            with self._as_errors():
                session.run(f"ROLLBACK TO SAVEPOINT {_STATEMENT}")

    @contextmanager
    def _as_errors(self) -> Iterator[None]:
        try:
            yield
        except (StatementRefused, CdcError) as error:
            raise self._error(error) from error

    def _error(self, error: StatementRefused | CdcError) -> SqlError:
        if isinstance(error, CdcError):
            return from_engine(error)
        return of_source(error, self._database)


def _savepoint(name: str) -> str:
    return '"' + f"tsql {name}".replace('"', '""') + '"'
