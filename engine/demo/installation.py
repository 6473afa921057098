"""Puts the demo company into a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from engine.demo.company import TableRows, company
from engine.errors import DemoNamesTaken, SourceUnreachable

MARK = "Highwater demo company"
"""The comment by which a database's schemas are known to be ours."""
SCHEMAS = ("HumanResources", "Production", "Sales")
_LOCK = 7_407_166_001
"""Advisory lock: two programs that install at once must not meet half a company."""

Connection = psycopg.Connection[tuple[Any, ...]]


def install(dsn: str) -> bool:
    """Creates the company's tables and rows; False when they are there already. All or nothing.

    Raises DemoNamesTaken when the database has one of `SCHEMAS` that is not ours, SourceUnreachable.
    """
    with connected(dsn) as connection, connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if is_installed(connection):
            return False
        connection.execute(files(__package__).joinpath("schema.sql").read_bytes())
        for table in company():
            _fill(connection, table)
        for schema in SCHEMAS:
            connection.execute(
                sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(schema), sql.Literal(MARK))
            )
    return True


def has_company(dsn: str) -> bool:
    """Whether the company is in a database. Raises SourceUnreachable."""
    with connected(dsn) as connection:
        return set(_comments(connection).values()) == {MARK}


def is_installed(connection: Connection) -> bool:
    """Whether the company is in this database. Raises DemoNamesTaken when others have its names."""
    found = _comments(connection)
    foreign = [name for name, comment in found.items() if comment != MARK]
    if foreign:
        raise DemoNamesTaken(connection.info.dbname, ", ".join(foreign))
    return len(found) == len(SCHEMAS)


def _comments(connection: Connection) -> dict[str, str | None]:
    """Those of `SCHEMAS` that are there, with what they say of themselves."""
    return dict(
        connection.execute(
            "SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace"
            " WHERE nspname = ANY(%s) ORDER BY nspname",
            [list(SCHEMAS)],
        ).fetchall()
    )


@contextmanager
def connected(dsn: str) -> Iterator[Connection]:
    """An autocommit connection. Raises SourceUnreachable, also when the server goes away later."""
    try:
        with psycopg.connect(dsn, autocommit=True, application_name="highwater demo") as connection:
            yield connection
    except psycopg.OperationalError as error:
        name = conninfo_to_dict(dsn).get("dbname") or "demo"
        raise SourceUnreachable(name, " ".join(str(error).split())) from error


def _fill(connection: Connection, table: TableRows) -> None:
    name = sql.Identifier(table.schema, table.table)
    columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
    copy = sql.SQL("COPY {} ({}) FROM STDIN").format(name, columns)
    with connection.cursor() as cursor, cursor.copy(copy) as rows:
        for row in table.rows:
            rows.write_row(row)
    if table.identity:
        sequence = sql.SQL("SELECT setval(pg_get_serial_sequence({}, {}), {})").format(
            sql.Literal(name.as_string(connection)), sql.Literal(table.identity), sql.Literal(len(table.rows))
        )
        connection.execute(sequence)
