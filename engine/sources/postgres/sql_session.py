"""Sessions with SQL at a PostgreSQL source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.pq.abc import PGresult
from psycopg.sql import SQL, Identifier
from psycopg.types.datetime import DateLoader, TimeLoader, TimestampLoader, TimestamptzLoader

from engine.sources.postgres.connection import Connection, configure, connect, text_of, unreachable
from engine.sources.sql_session import Answer, ResultColumn, SourceRelation, StatementRefused

APPLICATION = "highwater sql"
_BATCH = 1000
"""Rows that the driver holds at a time."""
_NO_LENGTH = -1
_MODIFIER_BASE = 4
"""PostgreSQL counts lengths and precisions from here."""

# Whose statement runs may be told what PostgreSQL keeps for its own: this search path is a user's.
_SETTINGS = {"search_path": "pg_catalog", "standard_conforming_strings": "on", "lock_timeout": "0"}

_RELATIONS = """
SELECT n.nspname, c.relname, c.relpersistence = 't', a.attname,
       format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, a.atttypmod),
       coalesce(a.attnum = ANY(i.indkey), false)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND lower(c.relname) = ANY(%s)
  AND (c.relpersistence <> 't' OR n.oid = pg_my_temp_schema())
ORDER BY c.relpersistence <> 't', n.nspname, c.relname, a.attnum
"""

_PRINCIPALS = "SELECT rolname, oid, rolcanlogin FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY rolname"

_MEMBER = """
SELECT pg_has_role(u.oid, r.oid, 'MEMBER') FROM pg_roles u, pg_roles r
WHERE u.rolname = %s AND r.rolname = %s
"""

_TYPE_NAMES = {
    "bool": "bit",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "oid": "bigint",
    "float4": "real",
    "float8": "float",
    "numeric": "decimal",
    "bpchar": "nchar",
    "varchar": "nvarchar",
    "text": "nvarchar",
    "name": "nvarchar",
    "bytea": "varbinary",
    "date": "date",
    "time": "time",
    "timestamp": "datetime2",
    "timestamptz": "datetimeoffset",
    "uuid": "uniqueidentifier",
    "xml": "xml",
}
_LONGEST_DECIMAL = 38


class PostgresSqlSession:
    """`SqlSession` for PostgreSQL."""

    dialect = "postgres"

    def __init__(self, dsn: str, database: str, role: str | None = None, read_only: bool = False) -> None:
        """``database``: what errors call it. Nothing is connected yet.

        ``role``: whose rights statements have from the beginning; None: the login's. ``read_only``: they
        change nothing.
        """
        self._dsn = dsn
        self._database = database
        self._role = role
        self._read_only = read_only
        self._open: Connection | None = None

    def run(self, statement: str) -> int | None:
        """Runs one statement without a result, given whole; the rows it touched.

        Raises StatementRefused, SourceUnreachable.
        """
        connection = self._connection()
        with self._refused():
            cursor = connection.execute(statement.encode())
        return cursor.rowcount if cursor.rowcount >= 0 else None

    def query(self, statement: str) -> Answer:
        """Runs one statement with a result, given whole. Raises StatementRefused, SourceUnreachable."""
        connection = self._connection()
        cursor = connection.cursor()
        with self._refused():
            rows = cursor.stream(statement.encode(), size=_BATCH)
            first = list(islice(rows, 1))
        if not first:
            return Answer(self._described(connection, statement))
        assert cursor.pgresult is not None
        return Answer(_columns(connection, cursor.pgresult), self._rows(chain(first, rows)))

    def _described(self, connection: Connection, statement: str) -> tuple[ResultColumn, ...]:
        """The columns of a statement that gave no rows: the driver forgets them."""
        connection.pgconn.prepare(b"", statement.encode())
        return _columns(connection, connection.pgconn.describe_prepared(b""))

    def _rows(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        with self._refused():
            yield from rows

    def load(self, table: str, rows: Iterable[Sequence[Any]]) -> int:
        """Rows into a table, its name given as the source reads it, in one statement; how many they were.

        Values as an `Answer` has them, one for each column. Raises StatementRefused, SourceUnreachable.
        """
        count = 0
        statement = f"COPY {table} FROM STDIN".encode()
        with self._refused(), self._connection().cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
                count += 1
        return count

    def relations(self, names: Sequence[str]) -> Sequence[SourceRelation]:
        """Tables and views with one of these names, whatever their case and schema; temporary ones first."""
        connection = self._connection()
        with self._refused():
            rows = connection.execute(_RELATIONS, [[name.lower() for name in names]]).fetchall()
        found: dict[tuple[str, str, bool], dict[str, str]] = {}
        keys: dict[tuple[str, str, bool], list[str]] = {}
        for schema, name, temporary, column, type_, is_key in rows:
            columns = found.setdefault((schema, name, temporary), {})
            if column is not None:
                columns[column] = type_
            if is_key:
                keys.setdefault((schema, name, temporary), []).append(column)
        return [
            SourceRelation(schema, name, columns, temporary, tuple(keys.get((schema, name, temporary), ())))
            for (schema, name, temporary), columns in found.items()
        ]

    def schemas(self) -> Sequence[str]:
        """Names of schemas."""
        with self._refused():
            rows = self._connection().execute("SELECT nspname FROM pg_namespace ORDER BY nspname").fetchall()
        return [str(row[0]) for row in rows]

    def principals(self) -> Sequence[tuple[str, int, bool]]:
        """Roles: name, number, and whether somebody can log in as it. PostgreSQL's own are left out."""
        with self._refused():
            rows = self._connection().execute(_PRINCIPALS).fetchall()
        return [(str(name), int(number), bool(can_login)) for name, number, can_login in rows]

    def impersonate(self, role: str | None) -> None:
        """Statements run with the rights of this role; None: the session's own. Raises StatementRefused."""
        connection = self._connection()
        with self._refused():
            self._assume(connection, role)

    def _assume(self, connection: Connection, role: str | None) -> None:
        """The login may be a superuser's: whoever works as ``role`` gets no rights that it has not."""
        wanted = self._role if role is None else role
        if wanted is None:
            connection.execute("RESET ROLE")
            return
        if self._role is not None and wanted != self._role:
            found = connection.execute(_MEMBER, [self._role, wanted]).fetchone()
            if found != (True,):
                raise StatementRefused("42501", f'permission denied to set role "{wanted}"')
        connection.execute(SQL("SET ROLE {}").format(Identifier(wanted)))

    def cancel(self) -> None:
        """Stops what runs now, from another thread."""
        if self._open is not None and not self._open.closed:
            self._open.cancel_safe()

    def close(self) -> None:
        """Ends the session; a transaction that is open is rolled back."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _connection(self) -> Connection:
        if self._open is None:
            self._open = self._connected()
        return self._open

    def _connected(self) -> Connection:
        connection = connect(self._dsn, self._database, APPLICATION)
        configure(
            connection, _SETTINGS | ({"default_transaction_read_only": "on"} if self._read_only else {})
        )
        for name in ("date", "time", "timestamp", "timestamptz"):
            connection.adapters.register_loader(name, _LOADERS[name])
        for name in ("json", "jsonb", "interval", "timetz"):
            connection.adapters.register_loader(name, _TextLoader)
        if self._role is not None:
            try:
                with self._refused():
                    self._assume(connection, self._role)
            except BaseException:
                connection.close()
                raise
        return connection

    @contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            with unreachable(self._database):
                yield
        except psycopg.Error as error:
            diagnostic = error.diag
            raise StatementRefused(
                error.sqlstate or "",
                diagnostic.message_primary or text_of(error),
                diagnostic.message_detail or "",
                diagnostic.table_name or "",
                diagnostic.column_name or "",
                diagnostic.schema_name or "",
                diagnostic.constraint_name or "",
            ) from error


def _columns(connection: Connection, result: PGresult) -> tuple[ResultColumn, ...]:
    return tuple(_column(connection, result, index) for index in range(result.nfields))


def _column(connection: Connection, result: PGresult, index: int) -> ResultColumn:
    label = (result.fname(index) or b"").decode()
    oid, modifier = result.ftype(index), result.fmod(index) - _MODIFIER_BASE
    info = connection.adapters.types.get(oid)
    name = None if info is None or oid == info.array_oid else _TYPE_NAMES.get(info.name)
    if name is None or name == "varbinary":
        return ResultColumn(label, name or "nvarchar", _NO_LENGTH)
    if name in ("nvarchar", "nchar"):
        return ResultColumn(label, name, modifier if modifier > 0 else _NO_LENGTH)
    if name == "decimal" and modifier > 0 and modifier >> 16 <= _LONGEST_DECIMAL:
        return ResultColumn(label, name, None, modifier >> 16, modifier & 0x7FF)
    if name in ("time", "datetime2", "datetimeoffset"):
        return ResultColumn(label, name, scale=6)
    return ResultColumn(label, name)


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        return bytes(data).decode()


def _lenient(loader: type[Loader]) -> type[Loader]:
    """What Python's calendar has no place for comes as the server's text."""

    class Lenient(loader):  # type: ignore[valid-type, misc]
        def load(self, data: Buffer) -> Any:
            try:
                return super().load(data)
            except psycopg.DataError:
                return bytes(data).decode()

    return Lenient


_LOADERS = {
    "date": _lenient(DateLoader),
    "time": _lenient(TimeLoader),
    "timestamp": _lenient(TimestampLoader),
    "timestamptz": _lenient(TimestamptzLoader),
}
