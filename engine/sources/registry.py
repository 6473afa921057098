"""Which kinds of source there are. A new kind is a folder beside this module and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from engine.errors import SourceUnreachable
from engine.model.source_database import SourceDatabase
from engine.sources.base import LogSource, SourceAdmin
from engine.sources.postgres.source import PostgresKind
from engine.sources.sql_session import SqlSession


class SourceKind(Protocol):
    """One kind of source: how to reach its log and its administration."""

    def log(self, dsn: str, password: str | None, database: str) -> LogSource:
        """The log of the database at ``dsn``, which errors call ``database``."""
        ...

    def admin(self, dsn: str, password: str | None, database: str) -> SourceAdmin:
        """The administration of the database at ``dsn``."""
        ...

    def sql_session(
        self, dsn: str, password: str | None, database: str, role: str | None, read_only: bool
    ) -> SqlSession:
        """A session with SQL at the database at ``dsn``."""
        ...

    def split_dsn(self, dsn: str) -> tuple[str, str | None]:
        """The DSN without its password, and the password."""
        ...


_KINDS: Mapping[str, SourceKind] = {"postgresql": PostgresKind()}


class Sources:
    """Opens sources by their registration. ``secret`` gives the password kept under a database's name."""

    def __init__(self, secret: Callable[[str], str | None]) -> None:
        self._secret = secret

    def log(self, database: SourceDatabase) -> LogSource:
        """The database's log; nothing is connected yet."""
        return _kind(database).log(database.dsn, self._secret(database.name), database.name)

    def admin(self, database: SourceDatabase) -> SourceAdmin:
        """The database's administration; nothing is connected yet."""
        return _kind(database).admin(database.dsn, self._secret(database.name), database.name)

    def sql_session(
        self, database: SourceDatabase, role: str | None = None, *, read_only: bool = False
    ) -> SqlSession:
        """A session with SQL at the database; nothing is connected yet.

        ``role``: whose rights it has; it may take on those of roles that this one is a member of alone.
        ``read_only``: its statements change nothing.
        """
        password = self._secret(database.name)
        return _kind(database).sql_session(database.dsn, password, database.name, role, read_only)

    def split_dsn(self, dsn: str) -> tuple[str, str | None]:
        """The DSN as a URI without its password, and the password; key=value form is understood too.

        Raises SourceUnreachable when it cannot be read.
        """
        return _KINDS["postgresql"].split_dsn(dsn)


def _kind(database: SourceDatabase) -> SourceKind:
    kind = _KINDS.get(database.kind)
    if kind is None:
        known = ", ".join(sorted(_KINDS))
        raise SourceUnreachable(database.name, f"'{database.kind}' is no kind of source; known are {known}")
    return kind
