"""The T-SQL of a command: what is written down of it, and does the same when it is run. Pure.

Secrets are ``***``: passwords of sources, and what follows the host of a webhook.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from inspect import Signature
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from engine.commands.access import Command
from engine.model.lsn import Lsn

MASK = "***"
LONGEST = 100_000
"""Characters of a statement that are kept."""
_NEVER = frozenset({"self", "principal", "stop", "stopped", "on_message"})
_ONLY_IF_TRUE = frozenset({"force"})
_SET = "collection_set"
_IN_URL = re.compile(r"(?P<head>\b[a-z][a-z0-9+.-]*://[^\s:/@']*:)(?:[^\s@'/]|'')*(?=@)", re.IGNORECASE)
_WHOLE_URL = re.compile(r"(?P<head>[a-z][a-z0-9+.-]*://[^:/@]*:)[^@]*(?=@)", re.IGNORECASE)
_NAMED = re.compile(
    r"(?P<head>\b(?:password|pwd|sslpassword)\s*=\s*N?)(?:'(?:[^']|'')*'|[^\s';&]+)", re.IGNORECASE
)


def statement_of(command: Command, signature: Signature, arguments: Mapping[str, Any]) -> str:
    """The call of a method with these arguments, defaults included, as T-SQL."""
    if "statement" in arguments:
        return masked(str(arguments["statement"]))[:LONGEST]
    database = arguments.get("database") if command.in_database else None
    used = f"USE {quoted(str(database))};\n" if database is not None else ""
    declared = _declared(command, arguments)
    given = [f"@{name} = {value}" for name, value in _values(command, signature, arguments, bool(declared))]
    call = f"EXEC {command.procedure}" + (" " if given else "") + ", ".join(given) + ";"
    return f"{used}{declared}{masked(call)}"[:LONGEST]


def _declared(command: Command, arguments: Mapping[str, Any]) -> str:
    """A collection set that was named: procedures take its id, for another parameter is called @name."""
    name = arguments.get(_SET)
    if not isinstance(name, str) or _SET not in (command.renamed or {}):
        return ""
    return (
        "DECLARE @set int = (SELECT collection_set_id FROM msdb.dbo.syscollector_collection_sets"
        f" WHERE name = {literal(name)});\n"
    )


def _values(
    command: Command, signature: Signature, arguments: Mapping[str, Any], is_declared: bool
) -> Iterator[tuple[str, str]]:
    for name, value in _flat(arguments.items()):
        if name in _NEVER or (command.in_database and name == "database"):
            continue
        if name in _ONLY_IF_TRUE and not value:
            continue
        parameter = signature.parameters.get(name)
        if value is None and (parameter is None or parameter.default is None):
            continue
        text = "@set" if name == _SET and is_declared else literal(_public(name, value))
        yield (command.renamed or {}).get(name, name), text


def _flat(arguments: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """A parameter that is an object of several values is as many parameters."""
    for name, value in arguments:
        if is_dataclass(value) and not isinstance(value, Lsn):
            yield from ((field.name, getattr(value, field.name)) for field in fields(value))
        else:
            yield name, value


def _public(name: str, value: Any) -> Any:
    """A DSN without its password; a webhook's address is its secret, but for the host."""
    if name == "dsn":
        return masked(_WHOLE_URL.sub(rf"\g<head>{MASK}", str(value)))
    if name == "webhook" and isinstance(value, str):
        parts = urlsplit(value)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}/{MASK}" if parts.path.strip("/") or parts.query else value
    return value


def literal(value: Any) -> str:
    """A T-SQL literal."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(int(value))
        case int() | float():
            return str(value)
        case Lsn():
            return str(value)
        case timedelta():
            return str(int(value.total_seconds()))
        case UUID():
            return f"N'{str(value).upper()}'"
    return "N'" + str(value).replace("'", "''") + "'"


def quoted(name: str) -> str:
    """A name in brackets."""
    return "[" + name.replace("]", "]]") + "]"


def masked(text: str) -> str:
    """Text without passwords: of URLs, and after words that announce one."""
    without = _IN_URL.sub(rf"\g<head>{MASK}", text)
    return _NAMED.sub(rf"\g<head>{MASK}", without)
