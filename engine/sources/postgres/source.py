"""PostgreSQL as a kind of source: from a registration to its log and its administration."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from engine.errors import SourceUnreachable
from engine.sources.postgres.admin import PostgresAdmin
from engine.sources.postgres.log import PostgresLog
from engine.sources.postgres.names import PUBLICATION, slot_name
from engine.sources.postgres.sql_session import PostgresSqlSession


class PostgresKind:
    """`SourceKind` for PostgreSQL."""

    def log(self, dsn: str, password: str | None, database: str) -> PostgresLog:
        """The log of the database at ``dsn``, which errors call ``database``."""
        return PostgresLog(_with_password(dsn, password), _slot_of(dsn, database), PUBLICATION, database)

    def admin(self, dsn: str, password: str | None, database: str) -> PostgresAdmin:
        """The administration of the database at ``dsn``."""
        return PostgresAdmin(_with_password(dsn, password), _slot_of(dsn, database), database)

    def sql_session(
        self, dsn: str, password: str | None, database: str, role: str | None, read_only: bool
    ) -> PostgresSqlSession:
        """A session with SQL at the database at ``dsn``; nothing is connected yet."""
        return PostgresSqlSession(_with_password(dsn, password), database, role, read_only)

    def split_dsn(self, dsn: str) -> tuple[str, str | None]:
        """The DSN as a URI without its password, and the password.

        Raises SourceUnreachable when it cannot be read, or holds a secret that is not a password.
        """
        try:
            values = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
        except psycopg.ProgrammingError as error:
            # libpq's text may quote the DSN, password and all.
            raise SourceUnreachable("", "the DSN is neither a libpq URI nor key=value pairs") from error
        if "sslpassword" in values:
            raise SourceUnreachable(
                values.get("dbname", ""), "sslpassword cannot be kept: use a key without a passphrase"
            )
        password = values.pop("password", None)
        return _uri(values), password


def _slot_of(dsn: str, database: str) -> str:
    """Named by the server's own database name: slots are shared by all databases of a server."""
    return slot_name(str(conninfo_to_dict(dsn).get("dbname") or database))


def _with_password(dsn: str, password: str | None) -> str:
    return dsn if password is None else make_conninfo(dsn, password=password)


def _uri(values: dict[str, str]) -> str:
    """A libpq URI of these connection parameters; a list of hosts and a socket folder go into the query."""
    user, host = values.pop("user", ""), values.get("host", "")
    port, database = values.get("port", ""), values.pop("dbname", "")
    plain = bool(host) and "/" not in host and "," not in host and ":" not in host and "," not in port
    place = ""
    if plain:
        place = values.pop("host") + (f":{values.pop('port')}" if port else "")
    login = f"{quote(user, safe='')}@" if user else ""
    query = f"?{urlencode(values, quote_via=quote)}" if values else ""
    return f"postgresql://{login}{place}/{quote(database, safe='')}{query}"
