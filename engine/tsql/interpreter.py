"""Runs batches: statements one after the other, errors and transactions as T-SQL has them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from engine.errors import CdcError, UnknownDatabase
from engine.sources.sql_session import Answer, ResultColumn
from engine.tsql import statements as st
from engine.tsql.batches import Batch
from engine.tsql.conversion import as_text, convert
from engine.tsql.cursors import Cursor
from engine.tsql.environment import SessionEnvironment, State
from engine.tsql.evaluation import Evaluator
from engine.tsql.folding import source_literal
from engine.tsql.formatting import formatted
from engine.tsql.messages import INFORMATION, USER_ERROR, Message, SqlError, from_engine, sql_error
from engine.tsql.names import DEFAULT_SCHEMA, chosen, table_name
from engine.tsql.parser import Scope, parse
from engine.tsql.procedures import Call, bound, procedure_of, reported
from engine.tsql.rewriting import postgres_type, understood
from engine.tsql.sink import Sink, column_of, type_of, value_of
from engine.tsql.source_sql import SourceTranslator
from engine.tsql.spark_sql import Place, SparkTranslator, Wrapper, has_name, is_change_data, is_count
from engine.tsql.types import INT, TEXT, Value
from engine.tsql.work import SourceWork
from engine.tsql.wrappers import wrapper_of

if TYPE_CHECKING:
    from engine.engine import Engine

_DELAY = re.compile(r"\s*(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*")
_LEVELS = {"SNAPSHOT": "REPEATABLE READ"}
_NESTING = 32
_OPTIONS: Mapping[str, tuple[str, int]] = {
    "show advanced options": ("show advanced options", 0),
    "max text repl size": ("max text repl size (B)", 65536),
    "max text repl size (b)": ("max text repl size (B)", 65536),
}
"""Options of sp_configure that say nothing here: values of any size are captured whole."""


class _Left(Exception):  # noqa: N818 - no error
    """BREAK or CONTINUE."""

    def __init__(self, again: bool) -> None:
        self.again = again


class _Returned(Exception):  # noqa: N818 - no error
    """RETURN."""


class _BatchEnded(Exception):  # noqa: N818 - the error was shown
    """An error that nobody caught and that ends the batch; it was shown."""


@dataclass(slots=True)
class _Scope:
    """Variables of a batch, or of one sp_executesql."""

    variables: dict[str, Value] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    """Table variables and the statements that make them."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Interpreter:
    """A session: one database at a time, one principal, one connection to the source."""

    def __init__(
        self,
        engine: Engine,
        database: str,
        sink: Sink,
        principal: str | None = None,
        clock: Callable[[], datetime] = _utc_now,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``principal``: a role of the source whose rights hold; None: the owner's."""
        self._engine = engine
        self._sink = sink
        self._clock = clock
        self._sleep = sleep
        self._login = principal
        self.database = database
        self._work = self._new_work()
        self._state = State()
        self._scopes = [_Scope()]
        self._cursors: dict[str, Cursor] = {}
        self._wrappers: dict[str, Wrapper] = {}
        self._configured = dict(_OPTIONS.values())
        self._nocount = False
        self._xact_abort = False
        self._trying = 0
        self._line = 1
        self.failed = False
        """Whether an error above severity 10 was shown."""

    # Batches

    def run(self, batch: Batch) -> None:
        """Runs a batch as often as it says. Errors go to the sink."""
        for _ in range(batch.count):
            self._run_once(batch)

    def _run_once(self, batch: Batch) -> None:
        self._scopes = [_Scope()]
        self._trying = 0
        try:
            statements = parse(batch.text, first_line=batch.line)
        except SqlError as error:
            self._state.error = error.message.number
            self._show(error)
            return
        with suppress(_BatchEnded, _Returned):
            self._statements(statements)
        if self._work.doomed:
            with suppress(SqlError):
                self._work.rollback()
            self._show(sql_error(3998, line=self._line))
        self._drop_tables(self._scopes[-1])

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back."""
        self._work.close()

    def cancel(self) -> None:
        """Stops what the source does for this session now, from another thread."""
        self._work.cancel()

    def _show(self, error: SqlError) -> None:
        if error.message.severity > INFORMATION:
            self.failed = True
            self._sink.error(error.message)
        else:
            self._sink.message(error.message)

    # Statements

    def _statements(self, statements: Sequence[st.Statement]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: st.Statement) -> None:
        self._line = statement.line
        try:
            _RUN[type(statement)](self, statement)
            if not isinstance(statement, _FLOW):
                self._state.error = 0
        except (SqlError, CdcError) as error:
            problem = from_engine(error) if isinstance(error, CdcError) else error
            self._failed(problem.at(statement.line))

    def _failed(self, error: SqlError) -> None:
        """A statement's error: shown, or left to TRY; the transaction as XACT_ABORT says."""
        if error.message.severity <= INFORMATION:
            self._show(error)
            return
        self._state.error = error.message.number
        aborts = self._xact_abort and not error.keeps_transaction
        if self._trying:
            if (aborts or error.aborts_batch) and self._work.transactions:
                self._work.doomed = True
            raise error
        self._show(error)
        if aborts and self._work.transactions:
            self._work.rollback()
        if aborts or error.aborts_batch:
            if self._work.transactions:
                self._work.rollback()
            raise _BatchEnded

    def _block(self, statement: st.Block) -> None:
        self._statements(statement.statements)

    def _if(self, statement: st.If) -> None:
        if self._evaluator().condition(statement.condition):
            self._statement(statement.then)
        elif statement.otherwise is not None:
            self._statement(statement.otherwise)

    def _while(self, statement: st.While) -> None:
        while self._evaluator().condition(statement.condition):
            try:
                self._statement(statement.body)
            except _Left as left:
                if not left.again:
                    return
            self._line = statement.line

    def _leave(self, statement: st.Leave) -> None:
        raise _Left(statement.again)

    def _return(self, statement: st.Return) -> None:
        raise _Returned

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
        self._state.caught.append(caught)
        try:
            self._statements(statement.caught)
        finally:
            self._state.caught.pop()

    def _throw(self, statement: st.Throw) -> None:
        if not statement.arguments:
            raise SqlError(self._state.caught[-1], True)
        number, text, state = (self._value(argument) for argument in statement.arguments)
        code = convert(number, INT).value
        if not isinstance(code, int) or code < USER_ERROR:
            raise sql_error(35100, code)
        level = convert(state, INT).value
        message = Message(code, 16, int(level or 0) % 256, "" if text.is_null else as_text(text), 0)  # type: ignore[arg-type]
        raise SqlError(message, True)

    def _raise_error(self, statement: st.RaiseError) -> None:
        text, severity, state, *rest = (self._value(argument) for argument in statement.arguments)
        level, place = convert(severity, INT).value, convert(state, INT).value
        if not isinstance(level, int) or level < 0:
            level = 0
        if level > 18:
            raise sql_error(2754)
        number = USER_ERROR
        if text.type.is_integer:
            number = int(text.value or 0)  # type: ignore[arg-type]
            raise sql_error(18054, number, level, place)
        words = formatted("" if text.is_null else as_text(text), rest)
        # A negative state is shown as 1; documented samples give -1.
        shown = place if isinstance(place, int) and 0 <= place <= 255 else 1
        raise SqlError(Message(number, level, shown, words, 0), False, True)

    def _print(self, statement: st.Print) -> None:
        value = self._value(statement.expression)
        self._sink.message(Message(0, 0, 1, "" if value.is_null else as_text(value), statement.line))

    def _wait(self, statement: st.WaitFor) -> None:
        value = self._value(statement.delay)
        match = None if value.is_null else _DELAY.fullmatch(as_text(value))
        if match is None:
            raise sql_error(148, "" if value.is_null else as_text(value))
        hours, minutes, seconds, fraction = match.groups()
        delay = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)
        self._sleep(delay + float(f"0.{fraction or 0}"))

    def _use(self, statement: st.Use) -> None:
        wanted = statement.database
        names = [each.name for each in self._engine.databases()]
        matches = [name for name in names if name.lower() == wanted.lower()]
        if not matches:
            raise from_engine(UnknownDatabase(wanted, f"Known: {', '.join(names) or 'none'}."))
        name = wanted if wanted in matches else matches[0]
        if name == self.database:
            return
        if self._work.transactions:
            raise sql_error(226, "USE")
        self._work.close()
        self.database = name
        self._work = self._new_work()

    def _option(self, statement: st.SetOption) -> None:
        if statement.option == "NOCOUNT":
            self._nocount = statement.value == "ON"
        elif statement.option == "XACT_ABORT":
            self._xact_abort = statement.value == "ON"
        elif statement.option == "ISOLATION":
            self._work.isolation = _LEVELS.get(statement.value, statement.value)

    def _nothing(self, statement: st.Nothing) -> None:
        return

    # Variables

    @property
    def _variables(self) -> dict[str, Value]:
        return self._scopes[-1].variables

    def _value(self, expression: exp.Expr) -> Value:
        return self._evaluator().value(expression)

    def _declare(self, statement: st.Declare) -> None:
        for each in statement.variables:
            value = Value(each.type, None) if each.initial is None else self._value(each.initial)
            self._variables[each.name] = convert(value, each.type)

    def _assign(self, statement: st.Assign) -> None:
        self._set(statement.name, self._value(statement.expression))

    def _set(self, name: str, value: Value) -> None:
        self._variables[name] = convert(value, self._variables[name].type)

    def _select_assign(self, statement: st.SelectAssign) -> None:
        if _is_scalar(statement.query):
            for name, expression in zip(statement.names, statement.query.expressions, strict=True):
                self._set(name, self._value(expression))
            self._state.rowcount = 1
            return
        answer, last, count = self._answer(statement.query), None, 0
        for row in answer.rows:
            last, count = row, count + 1
        if last is not None:
            for name, column, raw in zip(statement.names, answer.columns, last, strict=True):
                self._set(name, value_of(column, raw))
        self._state.rowcount = count

    def _declare_table(self, statement: st.DeclareTable) -> None:
        [text] = self._translator().definition(statement.definition).statements
        if statement.name in self._scopes[-1].tables:
            self._work.run(f"DROP TABLE {_quoted(statement.name)}")
        self._work.run(text)
        self._scopes[-1].tables[statement.name] = text

    def _drop_tables(self, scope: _Scope) -> None:
        for name in scope.tables:
            with suppress(SqlError):
                self._work.run(f"DROP TABLE IF EXISTS {_quoted(name)}")
        scope.tables.clear()

    def _keep_tables(self) -> Callable[[], None]:
        """Reads table variables before a rollback; what is returned puts them back after it."""
        kept: list[tuple[str, str, list[str]]] = []
        for scope in self._scopes:
            for name, text in scope.tables.items():
                relation = self._translator().relation("", name)
                columns = [] if relation is None else list(relation.columns)
                cells = ", ', ', ".join(f"quote_nullable({_quoted(column)}::text)" for column in columns)
                answer = self._work.query(f"SELECT concat('(', {cells}, ')') FROM {_quoted(name)}")
                kept.append((name, text, [str(row[0]) for row in answer.rows]))

        def restore() -> None:
            for name, text, rows in kept:
                self._work.run(f"DROP TABLE IF EXISTS {_quoted(name)}", text)
                if rows:
                    self._work.insert(f"INSERT INTO {_quoted(name)}", iter(rows))

        return restore

    # Queries

    def _evaluator(self) -> Evaluator:
        return Evaluator(
            SessionEnvironment(
                self._engine,
                self.database,
                self._work,
                self._state,
                self._variables,
                self._answer,
                self._clock,
                self._object_id,
            )
        )

    def _translator(self) -> SourceTranslator:
        translator = SourceTranslator(self._work.relations, self._evaluator())
        translator.schemas = _Schemas(self._work)
        return translator

    def _answer(self, query: exp.Expr) -> Answer:
        """The rows of a query, from where they are."""
        if isinstance(query, exp.Subquery) and not query.alias:
            query = query.this
        if _is_scalar(query):
            values = [self._value(each) for each in query.expressions]
            columns = tuple(
                column_of(each.alias, value.type)
                for each, value in zip(query.expressions, values, strict=True)
            )
            return Answer(columns, iter([[value.value for value in values]]))
        if is_change_data(query, self._wrappers):
            return self._from_spark(query)
        with understood():
            text = self._translator().query(query)
        answer = self._work.query(text.statements[-1])
        return Answer(_labelled(query, answer.columns), answer.rows)

    def _from_spark(self, query: exp.Expr) -> Answer:
        from engine.query.ad_hoc import AdHocQuery

        ad_hoc = AdHocQuery(self._engine.spark_session())
        try:
            answer = SparkTranslator(self._place(), self._evaluator(), ad_hoc).run(query)
        except BaseException:
            ad_hoc.close()
            raise
        return Answer(answer.columns, _closing(answer.rows, ad_hoc.close))

    def _place(self) -> Place:
        return Place(
            self._engine,
            self.database,
            self._work.principal,
            self._is_owner,
            self._wrappers,
            self._source_rows,
        )

    def _is_owner(self) -> bool:
        principal = self._work.principal
        return principal is None or self._engine.privileges(self.database, principal).is_owner

    def _source_rows(self, table: exp.Table) -> Answer:
        plain = table.copy()
        plain.set("alias", None)
        plain.set("joins", None)
        return self._work.query(self._translator().query(exp.select("*").from_(plain)).statements[-1])

    def _query(self, statement: st.Query) -> None:
        answer = self._answer(statement.query)
        self._counted(self._sink.rows(answer.columns, answer.rows))

    def _counted(self, rows: int) -> None:
        self._state.rowcount = rows
        if not self._nocount:
            self._sink.count(rows)

    def _modify(self, statement: st.Modify) -> None:
        if self._work.doomed:
            raise sql_error(3930)
        tree = statement.tree
        for table in tree.find_all(exp.Table):
            if _is_target(table, tree) and (
                table.db.lower() in ("cdc", "sys") or table.catalog.lower() == "msdb"
            ):
                raise sql_error(229, type(tree).__name__.upper(), table.name, self.database, table.db)
        if is_change_data(tree, self._wrappers):
            self._counted(self._moved(tree))
            return
        self._make_default_schema(tree)
        with understood():
            text = self._translator().modification(tree)
        if text.returns_rows:
            answer = self._work.query(text.statements[-1])
            self._counted(self._sink.rows(answer.columns, answer.rows))
            return
        self._counted(self._work.run(*text.statements) or 0)

    def _moved(self, tree: exp.Expr) -> int:
        """INSERT … SELECT and SELECT … INTO from change data: rows go from Spark to the source."""
        if isinstance(tree, exp.Select):
            selected = tree.copy()
            target = selected.args["into"].this
            selected.set("into", None)
            answer = self._from_spark(selected)
            kind = "TEMPORARY TABLE" if not table_name(target)[0] else "TABLE"
            name = self._new_name(target)
            columns = ", ".join(
                f"{_quoted(each.name)} {postgres_type(type_of(each))}" for each in answer.columns
            )
            self._work.run(f"CREATE {kind} {name} ({columns})")
            return self._work.insert(f"INSERT INTO {name}", _tuples(answer))
        if not isinstance(tree, exp.Insert) or not isinstance(tree.expression, exp.Query):
            raise sql_error(
                50040, "UPDATE, DELETE or MERGE with change data", "Use INSERT … SELECT into a table first."
            )
        with_ = tree.args.get("with_")
        query = tree.expression.copy()
        if with_ is not None:
            query.set("with_", with_.copy())
        head, width = self._insert_head(tree.this)
        answer = self._answer(query)
        if len(answer.columns) != width:
            raise sql_error(213)
        return self._work.insert(head, _tuples(answer))

    def _insert_head(self, target: exp.Schema | exp.Table, columns: Sequence[str] = ()) -> tuple[str, int]:
        """``INSERT INTO table (columns)`` as the source has them, and how many columns."""
        table = target.this if isinstance(target, exp.Schema) else target
        listed = (
            [each.name for each in target.expressions] if isinstance(target, exp.Schema) else list(columns)
        )
        schema, name = table_name(table)
        relation = self._translator().relation(schema, name)
        if relation is None:
            raise sql_error(208, f"{table.db}.{name}" if table.db else name)
        known = {column.lower(): column for column in relation.columns}
        for column in listed:
            if column not in relation.columns and column.lower() not in known:
                raise sql_error(207, column)
        names = [column if column in relation.columns else known[column.lower()] for column in listed]
        place = (
            _quoted(relation.name)
            if relation.is_temporary
            else f"{_quoted(relation.schema)}.{_quoted(relation.name)}"
        )
        chosen_names = names or list(relation.columns)
        return f"INSERT INTO {place} ({', '.join(map(_quoted, chosen_names))})", len(chosen_names)

    def _new_name(self, table: exp.Table) -> str:
        schema, name = table_name(table)
        if not schema:
            return _quoted(name)
        self._make_default_schema(table)
        translator = self._translator()
        return f"{_quoted(translator.known_schema(schema))}.{_quoted(name)}"

    def _define(self, statement: st.Define) -> None:
        if self._work.doomed:
            raise sql_error(3930)
        if isinstance(statement.tree, exp.Drop) and self._drop_wrappers(statement.tree):
            return
        self._make_default_schema(statement.tree)
        with understood():
            text = self._translator().definition(statement.tree)
        self._work.run(*text.statements)

    def _drop_wrappers(self, tree: exp.Drop) -> bool:
        """DROP FUNCTION of wrapper functions."""
        if str(tree.args.get("kind")).upper() != "FUNCTION":
            return False
        for table in tree.args.get("tables") or [tree.this]:
            if self._wrappers.pop(table.name.lower(), None) is None and not tree.args.get("exists"):
                raise sql_error(3701, table.name)
        return True

    def _make_default_schema(self, tree: exp.Expr) -> None:
        """Schema dbo comes when a table of it is made."""
        is_made = isinstance(tree, exp.Create | exp.Table) or bool(tree.args.get("into"))
        wanted = (
            table_name(table)[0].lower() == DEFAULT_SCHEMA for table in tree.find_all(exp.Table) if table.name
        )
        if is_made and any(wanted):
            known = {schema.lower() for schema in self._work.schemas()}
            if DEFAULT_SCHEMA not in known:
                self._work.run(f"CREATE SCHEMA {DEFAULT_SCHEMA}")

    def _define_wrapper(self, statement: st.DefineWrapper) -> None:
        name, wrapper = wrapper_of(self._engine, self.database, statement.text, self._work.principal)
        if name.lower() in self._wrappers:
            raise sql_error(2714, name)
        self._wrappers[name.lower()] = wrapper

    def _object_id(self, name: str) -> int | None:
        """OBJECT_ID of a table of the source, or of a temporary one: anything but NULL says it is there."""
        parts = [part.strip('[]"') for part in re.findall(r'\[[^\]]+\]|"[^"]+"|[^.]+', name)]
        *qualifier, last = parts
        if last.startswith("#"):
            return 1 if chosen(self._work.relations([last]), "", last) else None
        schema = (qualifier[-1] if qualifier else "") or DEFAULT_SCHEMA
        for each in self._engine.source_tables(self.database):
            if (each.schema.lower(), each.name.lower()) == (schema.lower(), last.lower()):
                return each.source_object_id
        if schema.lower() == "cdc" and self._engine.database(self.database).is_cdc_enabled:
            for instance in self._engine.help_change_data_capture(self.database):
                if instance.change_table.lower() == last.lower():
                    return instance.object_id
        return None

    # Calls

    def _execute(self, statement: st.Execute) -> None:
        self._call(statement, self._sink)

    def _call(self, statement: st.Execute, sink: Sink) -> None:
        name = statement.procedure[-1].lower()
        if name in _OWN_PROCEDURES and len(statement.procedure) <= 3:
            _OWN_PROCEDURES[name](self, statement, sink)
            if statement.result is not None:
                self._set(statement.result, Value(INT, 0))
            return
        procedure = procedure_of(statement.procedure)
        if procedure is None:
            raise sql_error(2812, ".".join(part for part in statement.procedure if part))
        given = [
            (each.name, None if each.value is None else self._value(each.value))
            for each in statement.arguments
        ]
        values = bound(procedure, given)
        allowed = [each.name for each in procedure.parameters if each.is_output]
        outputs = self._outputs(statement, allowed, [each.name for each in procedure.parameters])
        if procedure.changes and self._work.transactions:
            raise sql_error(226, procedure.name)
        call = Call(self._engine, self.database, self._work.principal, sink, values)
        try:
            with reported(call, procedure.name):
                procedure.run(call)
        except SqlError:
            if statement.result is not None:
                self._set(statement.result, Value(INT, 1))
            raise
        for parameter, target in outputs.items():
            self._set(
                target, Value(self._variables[target].type, call.outputs.get(parameter, values[parameter]))
            )
        if statement.result is not None:
            self._set(statement.result, Value(INT, 0))

    def _outputs(self, statement: st.Execute, allowed: Sequence[str], names: Sequence[str]) -> dict[str, str]:
        """Parameters whose values come back, and the variables for them. Raises 8162."""
        found = {}
        for place, argument in enumerate(statement.arguments):
            parameter = argument.name or names[place]
            if argument.output is None:
                continue
            if parameter not in allowed:
                raise sql_error(8162, parameter)
            found[parameter] = argument.output
        return found

    def _execute_text(self, statement: st.ExecuteText) -> None:
        value = self._value(statement.text)
        self._nested("" if value.is_null else as_text(value), _Scope())

    def _nested(self, text: str, scope: _Scope) -> None:
        """Runs text in a scope of its own. A text that can't be parsed is an error of the statement."""
        if len(self._scopes) > _NESTING:
            raise sql_error(217)
        try:
            statements = parse(text, Scope(frozenset(scope.variables)))
        except SqlError as error:
            raise SqlError(error.message, False) from error
        self._scopes.append(scope)
        try:
            self._statements(statements)
        except _Returned:
            pass
        finally:
            self._drop_tables(scope)
            self._scopes.pop()

    def _execute_sql(self, statement: st.Execute, sink: Sink) -> None:
        """sp_executesql."""
        arguments = list(statement.arguments)
        if not arguments or arguments[0].value is None:
            raise sql_error(201, "sp_executesql", "@statement")
        text = self._value(arguments[0].value)
        scope = _Scope()
        declared: list[str] = []
        outputs: set[str] = set()
        if len(arguments) > 1 and arguments[1].value is not None:
            definition = self._value(arguments[1].value)
            declared, outputs = self._declared("" if definition.is_null else as_text(definition), scope)
        back: dict[str, str] = {}
        for place, argument in enumerate(arguments[2:]):
            if argument.name is None and place >= len(declared):
                raise sql_error(8144, "sp_executesql")
            name = argument.name or declared[place]
            if name not in declared:
                raise sql_error(8145, "sp_executesql", name)
            if argument.value is not None:
                scope.variables[name] = convert(self._value(argument.value), scope.variables[name].type)
            if argument.output is not None:
                if name not in outputs:
                    raise sql_error(8162, name)
                back[name] = argument.output
        given = {argument.name or declared[place] for place, argument in enumerate(arguments[2:])}
        for name in declared:
            if name not in given:
                raise sql_error(8178, name)
        outer, self._sink = self._sink, sink
        try:
            self._nested("" if text.is_null else as_text(text), scope)
        finally:
            self._sink = outer
        for name, target in back.items():
            self._set(target, scope.variables[name])

    def _declared(self, definition: str, scope: _Scope) -> tuple[list[str], set[str]]:
        """Parameters of sp_executesql: names in order, and which are OUTPUT."""
        if not definition.strip():
            return [], set()
        plain = re.sub(r"\s+(OUTPUT|OUT)\b", "", definition, flags=re.IGNORECASE)
        outputs = {
            match[1].lower()
            for match in re.finditer(r"(@\w+)[^,@]*?\s(?:OUTPUT|OUT)\b", definition, flags=re.IGNORECASE)
        }
        [statement] = parse(f"DECLARE {plain}")
        if not isinstance(statement, st.Declare):
            raise sql_error(102, definition)
        for each in statement.variables:
            scope.variables[each.name] = Value(each.type, None)
        return [each.name for each in statement.variables], outputs

    def _configure(self, statement: st.Execute, sink: Sink) -> None:
        """sp_configure: options that mean something only in the original are taken and kept."""
        values = [self._value(each.value) for each in statement.arguments if each.value is not None]
        if not values:
            columns = (column_of("name", TEXT), column_of("config_value", INT), column_of("run_value", INT))
            sink.rows(columns, [(name, value, value) for name, value in self._configured.items()])
            return
        wanted = as_text(values[0])
        known = _OPTIONS.get(wanted.lower())
        if known is None:
            raise sql_error(15123, wanted)
        name = known[0]
        if len(values) > 1:
            new = convert(values[1], INT).value
            old, self._configured[name] = self._configured[name], int(new or 0)  # type: ignore[arg-type]
            text = (
                f"Configuration option '{name}' changed from {old} to {new}. "
                "Run the RECONFIGURE statement to install."
            )
            sink.message(Message(15457, 0, 1, text, self._line))

    def _insert_execute(self, statement: st.InsertExecute) -> None:
        head, width = self._insert_head(statement.target, statement.columns)
        collector = _Collector(self._sink)
        outer, self._sink = self._sink, collector
        try:
            if isinstance(statement.execute, st.Execute):
                self._call(statement.execute, collector)
            else:
                self._execute_text(statement.execute)
        finally:
            self._sink = outer
        if any(len(answer[0]) != width for answer in collector.answers):
            raise sql_error(213)
        count = 0
        for columns, rows in collector.answers:
            count += self._work.insert(head, _tuples(Answer(columns, iter(rows))))
        self._counted(count)

    def _impersonate(self, statement: st.Impersonate) -> None:
        if statement.user is None:
            self._work.revert()
            return
        self._work.impersonate(as_text(self._value(statement.user)))

    # Transactions

    def _begin(self, statement: st.Begin) -> None:
        self._work.begin(statement.name)

    def _commit(self, statement: st.Commit) -> None:
        self._work.commit()

    def _rollback(self, statement: st.Rollback) -> None:
        self._work.rollback(statement.name)

    def _save(self, statement: st.Save) -> None:
        self._work.save(statement.name)

    # Cursors

    def _declare_cursor(self, statement: st.DeclareCursor) -> None:
        if statement.name in self._cursors:
            raise sql_error(16915, statement.name)
        self._cursors[statement.name] = Cursor(statement.query, statement.scrolls)

    def _cursor(self, name: str) -> Cursor:
        found = self._cursors.get(name)
        if found is None:
            raise sql_error(16916, name)
        return found

    def _cursor_step(self, statement: st.CursorStep) -> None:
        cursor = self._cursor(statement.name)
        if statement.action == "OPEN":
            answer = self._answer(cursor.query)
            cursor.open(answer.columns, list(answer.rows))
        elif statement.action == "CLOSE":
            cursor.close()
        else:
            del self._cursors[statement.name]

    def _fetch(self, statement: st.Fetch) -> None:
        cursor = self._cursor(statement.name)
        place = None if statement.place is None else convert(self._value(statement.place), INT).value
        row = cursor.fetch(statement.direction, None if place is None else int(place))  # type: ignore[arg-type]
        self._state.fetch_status = -1 if row is None else 0
        if not statement.into:
            self._counted(self._sink.rows(cursor.columns, [] if row is None else [row]))
            return
        if len(statement.into) != len(cursor.columns):
            raise sql_error(16924)
        for name, column, raw in zip(statement.into, cursor.columns, row or (), strict=False):
            self._set(name, value_of(column, raw))

    def _new_work(self) -> SourceWork:
        name = self.database
        work = SourceWork(lambda: self._engine.sql_session(name), name, self._login)
        work.before_rollback = self._keep_tables
        return work


class _Schemas(Sequence[str]):
    """Schemas of the source, asked for when they are needed."""

    def __init__(self, work: SourceWork) -> None:
        self._work = work
        self._names: Sequence[str] | None = None

    def _known(self) -> Sequence[str]:
        if self._names is None:
            self._names = self._work.schemas()
        return self._names

    def __len__(self) -> int:
        return len(self._known())

    def __getitem__(self, index: Any) -> Any:
        return self._known()[index]


class _Collector:
    """Keeps the rows of INSERT … EXEC; messages go on."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.answers: list[tuple[tuple[ResultColumn, ...], list[Sequence[Any]]]] = []

    def rows(self, columns: Sequence[ResultColumn], rows: Any) -> int:
        """Takes a result set."""
        found = list(rows)
        self.answers.append((tuple(columns), found))
        return len(found)

    def count(self, rows: int) -> None:
        """Says nothing: the INSERT counts."""

    def message(self, message: Message) -> None:
        """Passes it on."""
        self._sink.message(message)

    def error(self, error: Message) -> None:
        """Passes it on."""
        self._sink.error(error)


def _is_scalar(query: exp.Expr) -> bool:
    """A SELECT without FROM, of values alone."""
    return (
        isinstance(query, exp.Select)
        and all(not value or name == "expressions" for name, value in query.args.items())
        and not any(each.find(exp.Star, exp.AggFunc, exp.Window) for each in query.expressions)
    )


def _is_target(table: exp.Table, tree: exp.Expr) -> bool:
    if not isinstance(tree, exp.Insert | exp.Update | exp.Delete | exp.Merge):
        return False
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    return any(table is each for each in (target, *(tree.args.get("tables") or ())))


def _labelled(query: exp.Expr, columns: Sequence[ResultColumn]) -> tuple[ResultColumn, ...]:
    """Columns without a name of their own have none, where the source makes one up."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    expressions = list(query.expressions) if isinstance(query, exp.Select) else []
    if len(expressions) != len(columns) or any(each.is_star for each in expressions):
        return tuple(columns)
    return tuple(
        ResultColumn(
            column.name if has_name(each) else "",
            "int" if is_count(each) else column.type_name,
            column.length,
            column.precision,
            column.scale,
        )
        for each, column in zip(expressions, columns, strict=True)
    )


def _closing(rows: Iterator[Sequence[Any]], close: Callable[[], None]) -> Iterator[Sequence[Any]]:
    try:
        yield from rows
    finally:
        close()


def _tuples(answer: Answer) -> Iterator[str]:
    """Rows as ``(…)`` of literals for the source."""
    for row in answer.rows:
        cells = []
        for column, raw in zip(answer.columns, row, strict=True):
            value = value_of(column, raw)
            flag = isinstance(value.value, bool)
            cells.append(("'1'" if value.value else "'0'") if flag else source_literal(value).sql("postgres"))
        yield f"({', '.join(cells)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def session(engine: Engine, database: str, sink: Sink, principal: str | None = None) -> Iterator[Interpreter]:
    """A session that is closed afterwards."""
    interpreter = Interpreter(engine, database, sink, principal)
    try:
        yield interpreter
    finally:
        interpreter.close()


_FLOW = (st.If, st.While, st.Block, st.TryCatch, st.Print)
_OWN_PROCEDURES: Mapping[str, Callable[[Interpreter, st.Execute, Sink], None]] = {
    "sp_executesql": Interpreter._execute_sql,
    "sp_configure": Interpreter._configure,
}
_RUN: Mapping[type[st.Statement], Callable[[Interpreter, Any], None]] = {
    st.Declare: Interpreter._declare,
    st.DeclareTable: Interpreter._declare_table,
    st.Assign: Interpreter._assign,
    st.SelectAssign: Interpreter._select_assign,
    st.SetOption: Interpreter._option,
    st.Query: Interpreter._query,
    st.Modify: Interpreter._modify,
    st.Define: Interpreter._define,
    st.DefineWrapper: Interpreter._define_wrapper,
    st.Execute: Interpreter._execute,
    st.ExecuteText: Interpreter._execute_text,
    st.InsertExecute: Interpreter._insert_execute,
    st.Block: Interpreter._block,
    st.If: Interpreter._if,
    st.While: Interpreter._while,
    st.Leave: Interpreter._leave,
    st.Return: Interpreter._return,
    st.TryCatch: Interpreter._try_catch,
    st.Throw: Interpreter._throw,
    st.RaiseError: Interpreter._raise_error,
    st.Print: Interpreter._print,
    st.WaitFor: Interpreter._wait,
    st.Use: Interpreter._use,
    st.Begin: Interpreter._begin,
    st.Commit: Interpreter._commit,
    st.Rollback: Interpreter._rollback,
    st.Save: Interpreter._save,
    st.DeclareCursor: Interpreter._declare_cursor,
    st.CursorStep: Interpreter._cursor_step,
    st.Fetch: Interpreter._fetch,
    st.Impersonate: Interpreter._impersonate,
    st.Nothing: Interpreter._nothing,
}
