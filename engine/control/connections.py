"""Connections to the control database: any PostgreSQL that a libpq URI reaches, by Unix socket too."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event, select

from engine.control.schema import databases
from engine.errors import ControlNotWritable, ControlUnreachable, UnknownDatabase
from engine.keepalive import KEEPALIVE

CONNECT_TIMEOUT = 5
_NO_TABLES = ("42P01", "3F000")
"""SQLSTATE of an undefined table and an undefined schema."""
_NO_SERVER = ("08", "57")
"""SQLSTATE classes of connection failure and of an operator's intervention (shutdown, crash)."""
_NO_ROOM = ("53", "58")
"""SQLSTATE classes of a server that is short of disk or memory, and of one whose disk fails."""
_READ_ONLY = "25006"
"""SQLSTATE of a write that a standby refuses, or a database that was made read-only."""


class Connections:
    """A pool of SQLAlchemy connections, shared by threads, and single psycopg connections to listen on.

    ``begin()`` opens a transaction; ``read()`` a connection whose statements stand alone, which
    saves two round trips; ``snapshot()`` one whose statements see the same moment.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.engine: Engine = create_engine(
            "postgresql+psycopg://", creator=self.connect, pool_size=4, max_overflow=12, pool_pre_ping=True
        )
        event.listen(self.engine, "handle_error", _as_unreachable)
        self.begin = self.engine.begin
        self.read = self.engine.execution_options(isolation_level="AUTOCOMMIT").connect
        self.snapshot = self.engine.execution_options(isolation_level="REPEATABLE READ").connect

    def connect(self, autocommit: bool = False) -> psycopg.Connection:
        """A new connection whose session speaks UTC. Raises ControlUnreachable."""
        try:
            connection = psycopg.connect(
                make_conninfo("", **{**KEEPALIVE, **conninfo_to_dict(self._dsn)}),
                autocommit=True,
                connect_timeout=CONNECT_TIMEOUT,
                application_name="highwater",
            )
            connection.execute("SET TIME ZONE 'UTC'")
        except psycopg.OperationalError as error:
            raise ControlUnreachable(words_of(error)) from error
        connection.autocommit = autocommit
        return connection

    def close(self) -> None:
        """Closes idle connections of the pool."""
        self.engine.dispose()


def _as_unreachable(context: ExceptionContext) -> None:
    """Raises ControlUnreachable in the place of an error that means: none that serves, or no tables yet."""
    error = context.original_exception
    state = getattr(error, "sqlstate", None) or ""
    if context.is_pre_ping:
        return  # the pool opens another connection
    if state in _NO_TABLES:
        raise ControlUnreachable("it has no tables yet.") from error
    if context.is_disconnect or state[:2] in _NO_SERVER:
        raise ControlUnreachable(words_of(error)) from error
    if state[:2] in _NO_ROOM or state == _READ_ONLY:
        raise ControlNotWritable(words_of(error)) from error


def words_of(error: BaseException) -> str:
    """The server's words as one sentence."""
    words = " ".join(str(error).split())
    return words if words.endswith((".", "?")) else f"{words}."


def database_id(connection: Connection, name: str, *, lock: bool = False) -> int:
    """The id of a registered database. Raises UnknownDatabase.

    ``lock`` keeps others that lock it waiting until this transaction ends, but not rows that refer to it.
    """
    query = select(databases.c.database_id).where(databases.c.name == name)
    found = connection.scalar(query.with_for_update(key_share=True) if lock else query)
    if found is None:
        raise UnknownDatabase(name, "Register it: highwater connect NAME DSN")
    return int(found)
