"""A call of a stored procedure: its parameters, its results, its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.errors import CdcError
from engine.sources.base import SourceTable
from engine.tsql.conversion import convert
from engine.tsql.messages import INFORMATION, Message, SqlError, from_engine, sql_error
from engine.tsql.sink import Sink, column_of
from engine.tsql.spark_sql import instance_name
from engine.tsql.types import SqlType, Value

if TYPE_CHECKING:
    from engine.engine import Engine

REQUIRED = object()
"""Default of a parameter that must be given."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter in the order of the procedure; ``name`` in lower case with its @."""

    name: str
    type: SqlType
    default: object = None
    is_output: bool = False


@dataclass(slots=True)
class Call:
    """A call: where, for whom, with which values; ``outputs`` is what it gives back."""

    engine: Engine
    database: str
    principal: str | None
    sink: Sink
    arguments: Mapping[str, Any]
    outputs: dict[str, Any] = field(default_factory=dict)
    stopped: Callable[[], bool] | None = None
    """Whether the user wants no more of it, for calls that last."""

    def __getitem__(self, name: str) -> Any:
        return self.arguments[f"@{name}"]

    def rows(self, columns: Sequence[tuple[str, SqlType]], rows: Sequence[Sequence[Any]]) -> None:
        """A result set."""
        self.sink.rows([column_of(name, type_) for name, type_ in columns], rows)

    def message(self, error: CdcError) -> None:
        """A message of the engine that is no failure."""
        self.sink.message(Message(error.number, error.severity, error.state, str(error), 0))

    def instance(self, name: str | None) -> str | None:
        """A capture instance's name as it was created; the one that was given where there is none."""
        if not name or not self.engine.database(self.database).is_cdc_enabled:
            return name
        return instance_name(self.engine, self.database, name) or name

    def table(self) -> tuple[str | None, str | None, SourceTable | None]:
        """@source_schema and @source_name as they were created, and the table, where it is there."""
        schema, name = self["source_schema"], self["source_name"]
        if not schema or not name:
            return schema, name, None
        tables = [
            each
            for each in self.engine.source_tables(self.database)
            if (each.schema.lower(), each.name.lower()) == (schema.lower(), name.lower())
        ]
        exact = [each for each in tables if (each.schema, each.name) == (schema, name)]
        if found := exact or (tables if len(tables) == 1 else []):
            return found[0].schema, found[0].name, found[0]
        return schema, name, None


@dataclass(frozen=True, slots=True)
class Procedure:
    """What a name in T-SQL stands for.

    changes: it works at the source on a connection of its own, which would wait for locks of an open
    transaction for ever, so it is refused (226) within one.
    """

    name: str
    parameters: tuple[Parameter, ...]
    run: Callable[[Call], None]
    changes: bool = False


def bound(procedure: Procedure, given: Sequence[tuple[str | None, Value | None]]) -> dict[str, Any]:
    """Arguments by parameter, converted to their types. Value None: DEFAULT.

    Raises 119, 201, 8143, 8144, 8145, and what a conversion raises (8114).
    """
    values: dict[str, Any] = {}
    by_name = {parameter.name: parameter for parameter in procedure.parameters}
    named = False
    for place, (name, value) in enumerate(given):
        if name is None:
            if named:
                raise sql_error(119, place + 1)
            if place >= len(procedure.parameters):
                raise sql_error(8144, procedure.name)
            name = procedure.parameters[place].name
        else:
            named = True
        if name not in by_name:
            raise sql_error(8145, procedure.name, name)
        if name in values:
            raise sql_error(8143, name)
        if value is not None:
            values[name] = _converted(value, by_name[name].type)
    for parameter in procedure.parameters:
        if parameter.name not in values:
            if parameter.default is REQUIRED:
                raise sql_error(201, procedure.name, parameter.name)
            values[parameter.name] = parameter.default
    return values


def _converted(value: Value, to: SqlType) -> Any:
    try:
        return convert(value, to).value
    except SqlError as error:
        if error.message.number in (245, 529):
            raise sql_error(8114, value.type.name, to.name) from error
        raise


@contextmanager
def reported(call: Call, procedure: str) -> Iterator[None]:
    """Engine errors as a statement's; those of severity 10 are messages, and the call goes on as done."""
    try:
        yield
    except CdcError as error:
        if error.severity > INFORMATION:
            raise from_engine(error, procedure) from error
        call.message(error)
