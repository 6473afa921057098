"""Runs batches: statements one after the other, errors and transactions as T-SQL has them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from engine.commands.statements import quoted
from engine.errors import CdcError, UnknownDatabase
from engine.tsql import statements as st
from engine.tsql.batches import Batch
from engine.tsql.conversion import as_text
from engine.tsql.messages import INFORMATION, Message, SqlError, from_engine, sql_error
from engine.tsql.msdb_names import MSDB
from engine.tsql.parser import parse
from engine.tsql.rehearsal import rehearse
from engine.tsql.running.calls import Calls
from engine.tsql.running.changes import Changes
from engine.tsql.running.cursor_steps import CursorSteps
from engine.tsql.running.definitions import Definitions
from engine.tsql.running.flow import BatchEnded, Left, Returned, ReturnedValue
from engine.tsql.running.principals import Principals
from engine.tsql.running.queries import Queries
from engine.tsql.running.raising import raise_error, throw
from engine.tsql.running.session import Session, VariableScope
from engine.tsql.running.variables import Variables
from engine.tsql.sink import Sink

if TYPE_CHECKING:
    from engine.commands.guard import Record
    from engine.engine import Engine

_DELAY = re.compile(r"\s*(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*")
_LEVELS = {"SNAPSHOT": "REPEATABLE READ"}


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Interpreter:
    """Runs the batches of a session."""

    def __init__(
        self,
        engine: Engine,
        database: str,
        sink: Sink,
        principal: str | None = None,
        clock: Callable[[], datetime] = _utc_now,
        sleep: Callable[[float], None] = time.sleep,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """``principal``: a role of the source whose rights hold; None: the owner's.

        ``stopped``: asked before each statement; the batch ends where it says so, and nothing is shown.
        """
        self._session = Session(engine, database, sink, principal, clock, sleep)
        self._session.stopped = stopped
        self._queries = Queries(self._session)
        self._variables = Variables(self._queries)
        self._session.before_rollback = self._variables.keep_tables
        self._principals = Principals(self._session)
        self._trying = 0
        self.failed = False
        """Whether an error above severity 10 was shown."""
        self._record: Record | None = None
        self._run_statement = self._runners()

    def _runners(self) -> Mapping[type[st.Statement], Callable[[Any], None]]:
        queries, variables = self._queries, self._variables
        definitions = Definitions(queries)
        changes = Changes(queries, definitions)
        calls = Calls(queries, changes, variables, self._principals, self._statements)
        cursors = CursorSteps(queries)
        return {
            st.Declare: variables.declare,
            st.DeclareTable: variables.declare_table,
            st.Assign: variables.set_,
            st.SelectAssign: variables.select,
            st.SetOption: self._option,
            st.Query: queries.run,
            st.Modify: changes.modify,
            st.Define: definitions.define,
            st.IdentityInsert: definitions.identity_insert,
            st.DefineWrapper: definitions.define_wrapper,
            st.DefineFunction: definitions.define_function,
            st.Execute: calls.execute,
            st.ExecuteText: calls.execute_text,
            st.InsertExecute: calls.insert_execute,
            st.Block: self._block,
            st.If: self._if,
            st.While: self._while,
            st.Leave: self._leave,
            st.Return: self._return,
            st.TryCatch: self._try_catch,
            st.Throw: lambda statement: throw(queries, statement),
            st.RaiseError: lambda statement: raise_error(queries, statement),
            st.Print: self._print,
            st.WaitFor: self._wait,
            st.Use: self._use,
            st.Begin: self._begin,
            st.Commit: self._commit,
            st.Rollback: self._rollback,
            st.Save: self._save,
            st.DeclareCursor: cursors.declare,
            st.CursorStep: cursors.step,
            st.Fetch: cursors.fetch,
            st.Impersonate: self._impersonate,
            st.ChangePrincipal: self._principals.change,
            st.Nothing: self._nothing,
        }

    @property
    def database(self) -> str:
        """The one that statements mean: USE changes it."""
        return self._session.database

    # Batches

    def run(self, batch: Batch) -> None:
        """Runs a batch as often as it says. Errors go to the sink."""
        for _ in range(batch.count):
            self._run_once(batch)

    def run_recorded(self, batch: Batch) -> None:
        """The same, written down in the activity; the database of USE is what copied text begins with."""
        text = f"USE {quoted(self.database)};\nGO\n{batch.text.strip()}"
        with self._session.engine.batch(self.database, text) as record:
            self._record = record
            try:
                self.run(batch)
            finally:
                self._record = None

    def _run_once(self, batch: Batch) -> None:
        session = self._session
        session.scopes = [VariableScope()]
        self._trying = 0
        try:
            statements = parse(batch.text, first_line=batch.line)
            rehearse(statements)
        except SqlError as error:
            session.state.error = error.message.number
            self._show(error)
            return
        try:
            with suppress(BatchEnded, Returned):
                self._statements(statements)
            if session.work.doomed:
                with suppress(SqlError):
                    session.work.rollback()
                self._show(sql_error(3998, line=session.line))
        finally:  # also after Ctrl-C: the next batch may declare the same name
            self._variables.drop_tables(session.scopes[0])

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back."""
        self._session.work.close()

    def cancel(self) -> None:
        """Stops what the source or Spark does for this session now, from another thread."""
        self._session.work.cancel()
        query = self._session.spark_query
        if query is not None:
            query.cancel()

    def _show(self, error: SqlError) -> None:
        if error.message.severity > INFORMATION:
            self.failed = True
            if self._record is not None:
                self._record.failed(error.message.number, error.message.text)
            self._session.sink.error(error.message)
        else:
            self._session.sink.message(error.message)

    # Statements

    def _statements(self, statements: Sequence[st.Statement]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: st.Statement) -> None:
        self._session.line = statement.line
        if self._session.stopped():
            raise BatchEnded
        try:
            self._run_statement[type(statement)](statement)
            if not isinstance(statement, _FLOW):
                self._session.state.error = 0
        except (SqlError, CdcError) as error:
            problem = from_engine(error) if isinstance(error, CdcError) else error
            self._failed(problem.at(statement.line))

    def _failed(self, error: SqlError) -> None:
        """A statement's error: shown, or left to TRY; the transaction as XACT_ABORT says."""
        if self._session.stopped():
            raise BatchEnded
        if error.message.severity <= INFORMATION:
            self._show(error)
            return
        self._session.state.error = error.message.number
        aborts = self._session.xact_abort and not error.keeps_transaction
        if self._trying:
            if (aborts or error.aborts_batch) and self._session.work.transactions:
                self._session.work.doomed = True
            raise error
        self._show(error)
        if aborts and self._session.work.transactions:
            self._session.work.rollback()
        if aborts or error.aborts_batch:
            if self._session.work.transactions:
                self._session.work.rollback()
            raise BatchEnded

    def _block(self, statement: st.Block) -> None:
        self._statements(statement.statements)

    def _if(self, statement: st.If) -> None:
        if self._holds(statement.condition):
            self._statement(statement.then)
        elif statement.otherwise is not None:
            self._statement(statement.otherwise)

    def _holds(self, condition: exp.Expr) -> bool:
        """What IF and WHILE ask: a statement of its own for @@ERROR and @@ROWCOUNT."""
        found = self._queries.evaluator().condition(condition)
        self._session.state.error = self._session.state.rowcount = 0
        return bool(found)

    def _while(self, statement: st.While) -> None:
        while self._holds(statement.condition):
            try:
                self._statement(statement.body)
            except Left as left:
                if not left.again:
                    return
            self._session.line = statement.line

    def _leave(self, statement: st.Leave) -> None:
        raise Left(statement.again)

    def _return(self, statement: st.Return) -> None:
        if statement.value is not None:
            raise ReturnedValue(self._queries.value(statement.value))
        raise Returned

    def _try_catch(self, statement: st.TryCatch) -> None:
        self._trying += 1
        try:
            self._statements(statement.tried)
            self._trying -= 1
            return
        except SqlError as error:
            self._trying -= 1
            caught = error.message
        except BaseException:
            self._trying -= 1
            raise
        self._session.state.caught.append(caught)
        try:
            self._statements(statement.caught)
        finally:
            self._session.state.caught.pop()

    def _print(self, statement: st.Print) -> None:
        value = self._queries.value(statement.expression)
        self._session.sink.message(Message(0, 0, 1, "" if value.is_null else as_text(value), statement.line))
        self._session.state.rowcount = 0

    def _wait(self, statement: st.WaitFor) -> None:
        value = self._queries.value(statement.delay)
        match = None if value.is_null else _DELAY.fullmatch(as_text(value))
        if match is None:
            raise sql_error(148, "" if value.is_null else as_text(value))
        hours, minutes, seconds, fraction = match.groups()
        delay = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)
        self._session.sleep(delay + float(f"0.{fraction or 0}"))

    def _use(self, statement: st.Use) -> None:
        wanted = statement.database
        names = [each.name for each in self._session.engine.databases()]
        matches = [name for name in names if name.lower() == wanted.lower()]
        if not matches and wanted.lower() == MSDB:
            # Here msdb is a place for names alone: statements go on at the source that they were at.
            self._session.in_msdb = True
            return
        if not matches:
            raise from_engine(UnknownDatabase(wanted, f"Known: {', '.join(names) or 'none'}."))
        name = wanted if wanted in matches else matches[0]
        if name == self.database:
            self._session.in_msdb = False
            return
        if self._session.work.transactions:
            raise sql_error(226, "USE")
        self._session.work.close()
        self._session.use(name)

    def _option(self, statement: st.SetOption) -> None:
        if statement.option == "NOCOUNT":
            self._session.nocount = statement.value == "ON"
        elif statement.option == "XACT_ABORT":
            self._session.xact_abort = statement.value == "ON"
        elif statement.option == "ISOLATION":
            self._session.work.isolation = _LEVELS.get(statement.value, statement.value)

    def _nothing(self, statement: st.Nothing) -> None:
        return

    # Transactions and principals

    def _begin(self, statement: st.Begin) -> None:
        self._session.work.begin(statement.name)

    def _commit(self, statement: st.Commit) -> None:
        self._session.work.commit()

    def _rollback(self, statement: st.Rollback) -> None:
        self._session.work.rollback(statement.name)

    def _save(self, statement: st.Save) -> None:
        self._session.work.save(statement.name)

    def _impersonate(self, statement: st.Impersonate) -> None:
        if statement.user is None:
            self._session.work.revert()
            return
        self._principals.impersonate(as_text(self._queries.value(statement.user)))


@contextmanager
def session(engine: Engine, database: str, sink: Sink, principal: str | None = None) -> Iterator[Interpreter]:
    """A session that is closed afterwards."""
    interpreter = Interpreter(engine, database, sink, principal)
    try:
        yield interpreter
    finally:
        interpreter.close()


_FLOW = (st.If, st.While, st.Block, st.TryCatch)
