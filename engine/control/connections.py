"""Connections to the control database: any PostgreSQL that a libpq URI reaches, by Unix socket too."""

from __future__ import annotations

import psycopg
from sqlalchemy import Connection, Engine, create_engine, select

from engine.control.schema import databases
from engine.errors import ControlUnreachable, UnknownDatabase

CONNECT_TIMEOUT = 5


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
        self.begin = self.engine.begin
        self.read = self.engine.execution_options(isolation_level="AUTOCOMMIT").connect
        self.snapshot = self.engine.execution_options(isolation_level="REPEATABLE READ").connect

    def connect(self, autocommit: bool = False) -> psycopg.Connection:
        """A new connection whose session speaks UTC. Raises ControlUnreachable."""
        try:
            connection = psycopg.connect(
                self._dsn, autocommit=True, connect_timeout=CONNECT_TIMEOUT, application_name="highwater"
            )
            connection.execute("SET TIME ZONE 'UTC'")
        except psycopg.OperationalError as error:
            raise ControlUnreachable(" ".join(str(error).split())) from error
        connection.autocommit = autocommit
        return connection

    def close(self) -> None:
        """Closes idle connections of the pool."""
        self.engine.dispose()


def database_id(connection: Connection, name: str, *, lock: bool = False) -> int:
    """The id of a registered database. Raises UnknownDatabase.

    ``lock`` keeps others that lock it waiting until this transaction ends, but not rows that refer to it.
    """
    query = select(databases.c.database_id).where(databases.c.name == name)
    found = connection.scalar(query.with_for_update(key_share=True) if lock else query)
    if found is None:
        raise UnknownDatabase(name, "Register it: highwater connect NAME DSN")
    return int(found)
