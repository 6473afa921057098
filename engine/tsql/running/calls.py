"""Calls of procedures and of texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.sources.sql_session import Answer, ResultColumn
from engine.tsql import statements as st
from engine.tsql.calling import REQUIRED, Call, Parameter, Procedure, bound, reported
from engine.tsql.collector_procedures import collector_procedure
from engine.tsql.conversion import as_text, convert
from engine.tsql.messages import Message, SqlError, sql_error
from engine.tsql.parser import Scope, parse
from engine.tsql.procedures import procedure_of
from engine.tsql.rehearsal import rehearse
from engine.tsql.running.changes import Changes, tuples
from engine.tsql.running.flow import Returned, ReturnedValue
from engine.tsql.running.principals import Principals
from engine.tsql.running.queries import Queries
from engine.tsql.running.session import OPTIONS, VariableScope
from engine.tsql.running.variables import Variables
from engine.tsql.sink import Sink, column_of
from engine.tsql.types import INT, SYSNAME, TEXT, Value

_NESTING = 32


class Calls:
    """EXEC of procedures and texts, INSERT … EXEC, sp_executesql, sp_configure."""

    def __init__(
        self,
        queries: Queries,
        changes: Changes,
        tables: Variables,
        principals: Principals,
        run: Callable[[Sequence[st.Statement]], None],
    ) -> None:
        """``run`` runs the statements of a text."""
        self._queries = queries
        self._session = queries.session
        self._changes = changes
        self._tables = tables
        self._principals = principals
        self._run = run
        self._session.call_function = self._function

    def execute(self, statement: st.Execute) -> None:
        """EXEC of a procedure."""
        self._call(statement, self._session.sink)

    def _call(self, statement: st.Execute, sink: Sink) -> None:
        name = statement.procedure[-1].lower()
        if name in _OWN_PROCEDURES and len(statement.procedure) <= 3:
            _OWN_PROCEDURES[name](self, statement, sink)
            if statement.result is not None:
                self._queries.assign(statement.result, Value(INT, 0))
            return
        procedure = procedure_of(statement.procedure) or collector_procedure(statement.procedure)
        if procedure is None:
            raise sql_error(2812, ".".join(part for part in statement.procedure if part))
        given = [
            (each.name, None if each.value is None else self._queries.value(each.value))
            for each in statement.arguments
        ]
        values = bound(procedure, given)
        allowed = [each.name for each in procedure.parameters if each.is_output]
        outputs = self._outputs(statement, allowed, [each.name for each in procedure.parameters])
        if procedure.changes and self._session.work.transactions:
            raise sql_error(226, procedure.name)
        session = self._session
        call = Call(
            session.engine, session.database, session.work.principal, sink, values, stopped=session.stopped
        )
        try:
            with reported(call, procedure.name):
                procedure.run(call)
        except SqlError:
            if statement.result is not None:
                self._queries.assign(statement.result, Value(INT, 1))
            raise
        for parameter, target in outputs.items():
            self._queries.assign(
                target,
                Value(self._session.variables[target].type, call.outputs.get(parameter, values[parameter])),
            )
        if statement.result is not None:
            self._queries.assign(statement.result, Value(INT, 0))

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

    def execute_text(self, statement: st.ExecuteText) -> None:
        """EXEC ('…')."""
        value = self._queries.value(statement.text)
        self._nested("" if value.is_null else as_text(value), VariableScope())

    def _nested(self, text: str, scope: VariableScope) -> None:
        """Runs text in a scope of its own. A text that can't be parsed is an error of the statement."""
        if len(self._session.scopes) > _NESTING:
            raise sql_error(217)
        try:
            statements = parse(text, Scope(frozenset(scope.variables)))
            rehearse(statements)
        except SqlError as error:
            raise SqlError(error.message, False) from error
        self._session.scopes.append(scope)
        try:
            self._run(statements)
        except Returned:
            pass
        finally:
            self._tables.drop_tables(scope)
            self._session.scopes.pop()

    def _execute_sql(self, statement: st.Execute, sink: Sink) -> None:
        """sp_executesql."""
        arguments = list(statement.arguments)
        if not arguments or arguments[0].value is None:
            raise sql_error(201, "sp_executesql", "@statement")
        text = self._queries.value(arguments[0].value)
        scope = VariableScope()
        declared: list[str] = []
        outputs: set[str] = set()
        if len(arguments) > 1 and arguments[1].value is not None:
            definition = self._queries.value(arguments[1].value)
            declared, outputs = self._declared("" if definition.is_null else as_text(definition), scope)
        back: dict[str, str] = {}
        for place, argument in enumerate(arguments[2:]):
            if argument.name is None and place >= len(declared):
                raise sql_error(8144, "sp_executesql")
            name = argument.name or declared[place]
            if name not in declared:
                raise sql_error(8145, "sp_executesql", name)
            if argument.value is not None:
                scope.variables[name] = convert(
                    self._queries.value(argument.value), scope.variables[name].type
                )
            if argument.output is not None:
                if name not in outputs:
                    raise sql_error(8162, name)
                back[name] = argument.output
        given = {argument.name or declared[place] for place, argument in enumerate(arguments[2:])}
        for name in declared:
            if name not in given:
                raise sql_error(8178, name)
        outer, self._session.sink = self._session.sink, sink
        try:
            self._nested("" if text.is_null else as_text(text), scope)
        finally:
            self._session.sink = outer
        for name, target in back.items():
            self._queries.assign(target, scope.variables[name])

    def _declared(self, definition: str, scope: VariableScope) -> tuple[list[str], set[str]]:
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

    def _function(self, name: str, arguments: Sequence[Value]) -> Value:
        """A function that was made in this session. Raises 313, 4121, 8144."""
        function = self._session.functions.get(name.lower())
        if function is None:
            raise sql_error(4121, name.lower())
        if len(arguments) != len(function.parameters):
            number = 313 if len(arguments) < len(function.parameters) else 8144
            raise sql_error(number, f"dbo.{name.lower()}")
        if len(self._session.scopes) > _NESTING:
            raise sql_error(217)
        variables = {
            parameter.name: convert(value, parameter.type)
            for parameter, value in zip(function.parameters, arguments, strict=True)
        }
        self._session.scopes.append(VariableScope(variables))
        try:
            self._run(function.body)
        except ReturnedValue as returned:
            return convert(returned.value, function.returns)
        finally:
            self._session.scopes.pop()
        return Value(function.returns, None)

    def _configure(self, statement: st.Execute, sink: Sink) -> None:
        """sp_configure: options that mean something only in the original are taken and kept."""
        values = [self._queries.value(each.value) for each in statement.arguments if each.value is not None]
        if not values:
            columns = (column_of("name", TEXT), column_of("config_value", INT), column_of("run_value", INT))
            sink.rows(columns, [(name, value, value) for name, value in self._session.configured.items()])
            return
        wanted = as_text(values[0])
        known = OPTIONS.get(wanted.lower())
        if known is None:
            raise sql_error(15123, wanted)
        name = known[0]
        if len(values) > 1:
            new = convert(values[1], INT).value
            old, self._session.configured[name] = self._session.configured[name], int(new or 0)  # type: ignore[arg-type]
            text = (
                f"Configuration option '{name}' changed from {old} to {new}. "
                "Run the RECONFIGURE statement to install."
            )
            sink.message(Message(15457, 0, 1, text, self._session.line))

    def _add_member(self, statement: st.Execute, sink: Sink) -> None:
        """sp_addrolemember."""
        self._principals.add_member(*self._role_and_member(statement))

    def _drop_member(self, statement: st.Execute, sink: Sink) -> None:
        """sp_droprolemember."""
        self._principals.drop_member(*self._role_and_member(statement))

    def _role_and_member(self, statement: st.Execute) -> tuple[str, str]:
        given = [
            (each.name, None if each.value is None else self._queries.value(each.value))
            for each in statement.arguments
        ]
        procedure = Procedure(statement.procedure[-1], _MEMBERSHIP, lambda call: None)
        values = bound(procedure, given)
        return str(values["@rolename"]), str(values["@membername"])

    def insert_execute(self, statement: st.InsertExecute) -> None:
        """INSERT … EXEC: result sets become rows. Raises 213."""
        head, width = self._changes.insert_head(statement.target, statement.columns)
        collector = _Collector(self._session.sink)
        outer, self._session.sink = self._session.sink, collector
        try:
            if isinstance(statement.execute, st.Execute):
                self._call(statement.execute, collector)
            else:
                self.execute_text(statement.execute)
        finally:
            self._session.sink = outer
        if any(len(answer[0]) != width for answer in collector.answers):
            raise sql_error(213)
        count = 0
        for columns, rows in collector.answers:
            count += self._session.work.insert(head, tuples(Answer(columns, iter(rows))))
        self._session.counted(count)


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


_MEMBERSHIP = (Parameter("@rolename", SYSNAME, REQUIRED), Parameter("@membername", SYSNAME, REQUIRED))
_OWN_PROCEDURES: Mapping[str, Callable[[Calls, st.Execute, Sink], None]] = {
    "sp_executesql": Calls._execute_sql,
    "sp_configure": Calls._configure,
    "sp_addrolemember": Calls._add_member,
    "sp_droprolemember": Calls._drop_member,
}
