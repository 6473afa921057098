"""Connections to a source: one session shape for every reader, and its errors as the engine's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from engine.errors import SourceUnreachable
from engine.keepalive import KEEPALIVE
from engine.model.lsn import Lsn

Connection = psycopg.Connection[tuple[Any, ...]]

SESSION_SETTINGS = {
    # Text of values must not depend on who set what on the role or the database.
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "xmloption": "content",
    # A log read may wait for WAL to be flushed, a scan between pieces for a Delta commit.
    "statement_timeout": "0",
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": "0",
    # A role may have another one set for itself, which need not have the rights.
    "role": "none",
    "default_transaction_read_only": "off",
    "jit": "off",
    # Names are written with their schema everywhere; nobody's function may stand in for pg_catalog's.
    "search_path": "pg_catalog",
}


TRANSACTION_TIMEOUT_VERSION = 170000

_CONNECTING: dict[str, int] = {"connect_timeout": 10, **KEEPALIVE}


def connect(dsn: str, database: str, application_name: str) -> Connection:
    """An autocommit connection with `SESSION_SETTINGS`. ``database`` is the name errors speak of.

    Raises SourceUnreachable.
    """
    try:
        whole = make_conninfo(
            "", **{**_CONNECTING, **conninfo_to_dict(dsn), "application_name": application_name}
        )
        connection = psycopg.connect(whole, autocommit=True)
    except psycopg.Error as error:
        raise SourceUnreachable(database, text_of(error)) from error
    with unreachable(database):
        configure(connection, SESSION_SETTINGS)
        if connection.info.server_version >= TRANSACTION_TIMEOUT_VERSION:
            configure(connection, {"transaction_timeout": "0"})
    if is_unencoded(connection):
        for type_ in _TEXT_TYPES:
            connection.adapters.register_loader(type_, _AnyText)
    return connection


def is_unencoded(connection: Connection) -> bool:
    """Whether the database is in SQL_ASCII: its texts are bytes of any encoding, which nobody checked."""
    return connection.info.parameter_status("server_encoding") == "SQL_ASCII"


class NotUtf8(str):
    """A text of an unencoded database that is no UTF-8, with \\xNN in the place of what is none."""

    __slots__ = ()


class _AnyText(Loader):
    def load(self, data: Buffer) -> str:
        content = bytes(data)
        try:
            return content.decode()
        except UnicodeDecodeError:
            return NotUtf8(content.decode("utf-8", "backslashreplace"))


_TEXT_TYPES = (0, "text", "name", "varchar")


@contextmanager
def any_bytes(connection: Connection) -> Iterator[None]:
    """Within, texts of an unencoded database come whatever they are; as UTF-8 the server would refuse them.

    Those that are no UTF-8 are `NotUtf8`, as the log's names are read.
    """
    if not is_unencoded(connection) or connection.info.parameter_status("client_encoding") == "SQL_ASCII":
        yield
        return
    configure(connection, {"client_encoding": "SQL_ASCII"})
    try:
        yield
    finally:
        # A transaction that failed takes the setting back by itself.
        if not connection.closed and connection.info.transaction_status is not TransactionStatus.INERROR:
            configure(connection, {"client_encoding": "UTF8"})


def configure(connection: Connection, settings: Mapping[str, str]) -> None:
    """Sets these for the session, in one round trip."""
    connection.execute(
        "SELECT pg_catalog.set_config(name, value, false)"
        " FROM unnest(%s::text[], %s::text[]) AS s(name, value)",
        [list(settings), list(settings.values())],
    )


def text_of(error: psycopg.Error) -> str:
    """The server's own words in one line, with its detail and hint where it gives them."""
    diagnostic = error.diag
    parts = [diagnostic.message_primary, diagnostic.message_detail, diagnostic.message_hint]
    words = [part for part in parts if part]
    return " ".join(words) if words else " ".join(str(error).split())


@contextmanager
def unreachable(database: str) -> Iterator[None]:
    """Turns a lost connection into SourceUnreachable; other errors pass."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        if error.sqlstate is None or error.sqlstate[:2] in ("08", "57"):
            raise SourceUnreachable(database, text_of(error)) from error
        raise


def position_text(position: int) -> str:
    """A log position as PostgreSQL writes it: ``1A/2B3C4D5E``."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> Lsn:
    """From PostgreSQL's form of a log position."""
    high, low = text.split("/")
    return Lsn.at(int(high, 16) << 32 | int(low, 16))
