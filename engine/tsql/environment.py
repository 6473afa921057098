"""What expressions may ask of a session: variables, errors, CDC functions, subqueries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from engine.errors import CdcError
from engine.sources.sql_session import Answer
from engine.tsql.conversion import convert, rounded_moment
from engine.tsql.evaluation import SESSION_FUNCTIONS
from engine.tsql.messages import Message, SqlError, from_engine, sql_error
from engine.tsql.names import literal
from engine.tsql.objects import catalog_names, schema_id, schemas
from engine.tsql.sink import value_of
from engine.tsql.spark_sql import instance_name, lsn_of
from engine.tsql.types import (
    BIGINT,
    BIT,
    DATETIME,
    DATETIME2,
    INT,
    LSN,
    MASK,
    NULL,
    SYSNAME,
    TEXT,
    SqlType,
    Value,
)  # fmt: skip

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.tsql.work import SourceWork

VERSION = "Highwater: Change Data Capture as SQL Server has it"
_OBJECT_TYPES = {"U": "table", "V": "view"}


@dataclass(slots=True)
class State:
    """What statements leave behind for the next ones."""

    rowcount: int = 0
    error: int = 0
    fetch_status: int = 0
    caught: list[Message] = field(default_factory=list)


class SessionEnvironment:
    """`Environment` of one session, with the variables of one scope."""

    def __init__(
        self,
        engine: Engine,
        database: str,
        work: SourceWork,
        state: State,
        variables: dict[str, Value],
        answer: Callable[[exp.Query], Answer],
        clock: Callable[[], datetime],
        object_id: Callable[[str], int | None],
        own_function: Callable[[str, Sequence[Value]], Value],
    ) -> None:
        self._engine = engine
        self._database = database
        self._work = work
        self._state = state
        self._variables = variables
        self._answer = answer
        self._clock = clock
        self._object_id = object_id
        self._own_function = own_function

    def variable(self, name: str) -> Value:
        """A variable's value; ``@name`` or ``@@name`` in lower case."""
        if name.startswith("@@"):
            return self._system(name)
        found = self._variables.get(name)
        if found is None:
            raise sql_error(137, name)
        return found

    def _system(self, name: str) -> Value:
        match name:
            case "@@rowcount":
                return Value(INT, self._state.rowcount)
            case "@@error":
                return Value(INT, self._state.error)
            case "@@trancount":
                return Value(INT, self._work.transactions)
            case "@@fetch_status":
                return Value(INT, self._state.fetch_status)
            case "@@version":
                return Value(SqlType("nvarchar", 300), VERSION)
            case "@@servername":
                return Value(SYSNAME, "highwater")
            case "@@nestlevel" | "@@spid":
                return Value(INT, 0)
        return self._last_identity()

    def function(self, name: str, arguments: Sequence[Value]) -> Value:
        """A function of `SESSION_FUNCTIONS`, by its name in upper case."""
        assert name in SESSION_FUNCTIONS
        if name.startswith("FN_CDC_"):
            try:
                return self._cdc(name, arguments)
            except CdcError as error:
                raise from_engine(error) from error
        if name.startswith("ERROR_"):
            return self._caught(name)
        if name in _CLOCKS:
            return self._now(name)
        return self._facts(name, arguments)

    def own_function(self, name: str, arguments: Sequence[Value]) -> Value:
        """A function that was made in this session, by its name in any case. Raises 4121."""
        return self._own_function(name, arguments)

    def _now(self, name: str) -> Value:
        moment = self._clock()
        if name == "SYSDATETIMEOFFSET":
            return Value(SqlType("datetimeoffset", scale=7), moment)
        plain = moment.astimezone(UTC).replace(tzinfo=None)
        if name in ("GETDATE", "GETUTCDATE"):
            return Value(DATETIME, rounded_moment(plain, DATETIME))
        return Value(DATETIME2, plain)

    def _caught(self, name: str) -> Value:
        type_ = SqlType("nvarchar", 4000) if name == "ERROR_MESSAGE" else SYSNAME if "PROC" in name else INT
        if not self._state.caught:
            return Value(type_, None)
        message = self._state.caught[-1]
        values: Mapping[str, str | int | None] = {
            "ERROR_NUMBER": message.number,
            "ERROR_MESSAGE": message.text,
            "ERROR_SEVERITY": message.severity,
            "ERROR_STATE": message.state,
            "ERROR_LINE": message.line,
            "ERROR_PROCEDURE": message.procedure,
        }
        return Value(type_, values[name])

    def _facts(self, name: str, arguments: Sequence[Value]) -> Value:
        match name:
            case "XACT_STATE":
                state = 0 if not self._work.transactions else -1 if self._work.doomed else 1
                return Value(SqlType("smallint"), state)
            case "DB_NAME":
                return Value(SYSNAME, self._database_name(arguments))
            case "DB_ID":
                return Value(SqlType("smallint"), self._database_id(arguments))
            case "OBJECT_ID":
                return self._object(arguments)
            case "SCHEMA_NAME" if not arguments:
                return Value(SYSNAME, "dbo")
            case "SCHEMA_NAME" | "OBJECT_NAME" | "OBJECT_SCHEMA_NAME":
                number = convert(arguments[0], BIGINT).value
                names = catalog_names(self._engine, self._database, name)
                return Value(SYSNAME, next((each for key, each in names if key == number), None))
            case "SCHEMA_ID":
                schema = str(convert(arguments[0], SYSNAME).value) if arguments else "dbo"
                known = {each.lower() for each in schemas(self._engine, self._database)}
                return Value(INT, schema_id(schema) if schema.lower() in known else None)
            case "IS_MEMBER" | "IS_ROLEMEMBER" | "IS_SRVROLEMEMBER":
                return Value(INT, self._membership(name, arguments))
            case "SCOPE_IDENTITY":
                return self._last_identity()
            case "HOST_NAME" | "APP_NAME":
                return Value(SYSNAME, "highwater")
            case "CURSOR_STATUS":
                return Value(SqlType("smallint"), -3)
        return Value(SYSNAME, self._work.principal or "dbo")

    def _membership(self, name: str, arguments: Sequence[Value]) -> int | None:
        """1 for a member of a role, 0 for none; NULL for a role or principal that is not there."""
        role = str(convert(arguments[0], SYSNAME).value or "")
        given = convert(arguments[1], SYSNAME).value if len(arguments) > 1 else None
        principal = self._work.principal if given is None else str(given)
        if name == "IS_SRVROLEMEMBER" and role.lower() != "sysadmin":
            return 0
        if role.lower() in ("db_owner", "sysadmin"):
            return self._ownership(role.lower(), principal)
        user = "current_user" if principal is None else literal(principal)
        answer = self._work.query(
            f"SELECT pg_has_role(u.oid, r.oid, 'MEMBER') FROM pg_roles r, pg_roles u"
            f" WHERE r.rolname = {literal(role)} AND u.rolname = {user}"
        )
        return next((int(row[0]) for row in answer.rows), None)

    def _ownership(self, role: str, principal: str | None) -> int:
        if principal is None or principal.lower() in ("dbo", "cdc"):
            return int(role == "db_owner")
        privileges = self._engine.privileges(self._database, principal)
        return int(privileges.is_sysadmin if role == "sysadmin" else privileges.is_owner)

    def _last_identity(self) -> Value:
        """The number that an identity column gave last in this session; NULL before the first."""
        number = SqlType("decimal", precision=38, scale=0)
        try:
            [[found]] = self._work.query("SELECT lastval()").rows
        except SqlError as error:
            if error.message.number != 50042:
                raise
            return Value(number, None)
        return Value(number, Decimal(int(found)))

    def _database_name(self, arguments: Sequence[Value]) -> str | None:
        if not arguments:
            return self._database
        wanted = convert(arguments[0], INT).value
        return next((each.name for each in self._engine.databases() if each.database_id == wanted), None)

    def _database_id(self, arguments: Sequence[Value]) -> int | None:
        wanted = str(convert(arguments[0], TEXT).value) if arguments else self._database
        found = (each for each in self._engine.databases() if each.name.lower() == wanted.lower())
        return next((each.database_id for each in found), None)

    def _object(self, arguments: Sequence[Value]) -> Value:
        if arguments[0].is_null:
            return Value(INT, None)
        kind = str(convert(arguments[1], TEXT).value).strip().upper() if len(arguments) > 1 else "U"
        if kind not in _OBJECT_TYPES:
            return Value(INT, None)
        return Value(INT, self._object_id(str(convert(arguments[0], TEXT).value)))

    # CDC

    def _cdc(self, name: str, arguments: Sequence[Value]) -> Value:
        engine, database, principal = self._engine, self._database, self._work.principal
        match name:
            case "FN_CDC_GET_MIN_LSN":
                return Value(LSN, engine.get_min_lsn(database, self._instance(arguments[0]), principal).raw)
            case "FN_CDC_GET_MAX_LSN":
                high = engine.get_max_lsn(database)
                return Value(LSN, None if high is None else high.raw)
            case "FN_CDC_INCREMENT_LSN" | "FN_CDC_DECREMENT_LSN":
                step = engine.increment_lsn if "INCREMENT" in name else engine.decrement_lsn
                found = step(lsn_of(arguments[0]))
                return Value(LSN, None if found is None else found.raw)
            case "FN_CDC_MAP_LSN_TO_TIME":
                moment = engine.map_lsn_to_time(database, lsn_of(arguments[0]))
                return Value(DATETIME, _datetime(moment))
            case "FN_CDC_MAP_TIME_TO_LSN":
                return self._lsn_of_time(arguments)
            case "FN_CDC_GET_COLUMN_ORDINAL":
                instance, column = self._instance(arguments[0]), self._column(arguments)
                return Value(INT, engine.get_column_ordinal(database, instance, column, principal))
            case "FN_CDC_IS_BIT_SET":
                position, mask = convert(arguments[0], INT).value, convert(arguments[1], MASK).value
                return Value(BIT, position is not None and engine.is_bit_set(position, mask))  # type: ignore[arg-type]
        mask = convert(arguments[2], MASK).value
        instance, column = self._instance(arguments[0]), self._column(arguments)
        changed = engine.has_column_changed(database, instance, column, mask, principal)  # type: ignore[arg-type]
        return Value(BIT, changed)

    def _lsn_of_time(self, arguments: Sequence[Value]) -> Value:
        operator = str(convert(arguments[0], SqlType("nvarchar", 30)).value or "")
        time = arguments[1]
        moment = convert(
            time, DATETIME2 if time.type.name in ("datetime2", "datetimeoffset") else DATETIME
        ).value
        found = self._engine.map_time_to_lsn(self._database, operator, moment)  # type: ignore[arg-type]
        return Value(LSN, None if found is None else found.raw)

    def _instance(self, value: Value) -> str:
        name = str(convert(value, SYSNAME).value or "")
        if not name or not self._engine.database(self._database).is_cdc_enabled:
            return name
        return instance_name(self._engine, self._database, name) or name

    def _column(self, arguments: Sequence[Value]) -> str:
        """A captured column's name as it was captured."""
        wanted = str(convert(arguments[1], SYSNAME).value or "")
        instance = self._instance(arguments[0])
        for each in self._engine.help_change_data_capture(self._database) if instance else ():
            if each.capture_instance == instance:
                matches = [name for name in each.column_names if name.lower() == wanted.lower()]
                return wanted if wanted in matches or len(matches) != 1 else matches[0]
        return wanted

    # Subqueries

    def first_value(self, query: exp.Query) -> Value:
        """The value of a query for one; NULL without a row. Raises 512 for several rows."""
        answer = self._answer(query)
        rows = answer.rows
        first = next(rows, None)
        if first is None:
            return Value(value_of(answer.columns[0], None).type, None) if answer.columns else NULL
        several = next(rows, None) is not None
        _close(rows)
        if several:
            raise sql_error(512)
        return value_of(answer.columns[0], first[0])

    def has_rows(self, query: exp.Query) -> bool:
        """EXISTS."""
        rows = self._answer(query).rows
        found = next(rows, None) is not None
        _close(rows)
        return found

    def column(self, query: exp.Query) -> Sequence[Value]:
        """The values of a query's one column, for IN."""
        answer = self._answer(query)
        return [value_of(answer.columns[0], row[0]) for row in answer.rows]


_CLOCKS = frozenset({"GETDATE", "GETUTCDATE", "SYSDATETIME", "SYSUTCDATETIME", "SYSDATETIMEOFFSET"})


def _datetime(moment: datetime | None) -> datetime | None:
    """A commit time with all its digits: rounded to datetime's steps, LSNs would not be found by it again."""
    return None if moment is None else moment.astimezone(UTC).replace(tzinfo=None)


def _close(rows: object) -> None:
    close = getattr(rows, "close", None)
    if close is not None:
        close()
