"""The words of our own in the log: of enabling and disabling, and of event triggers (enable.sql).

They are ASCII or UTF-8 whatever the database's encoding is: the log gives them back unconverted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from engine.model.capture_instance import CapturedColumn, CaptureInstance, IndexColumn
from engine.model.lsn import Lsn
from engine.model.table_shape import ShapeColumn

PREFIX = "highwater"
"""Of a word; from version 4 of enable.sql on with a point and the word's seal behind it."""
MARK_PREFIX = "highwater.mark"
WRITE_MARK = f"SELECT pg_logical_emit_message(true, '{MARK_PREFIX}', '')::text"
"""Commits a mark, which readers skip; gives the place in the log that all committed before is below."""


_STRAY_BYTE = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class Enabled:
    """A capture instance begins."""

    instance: CaptureInstance


@dataclass(frozen=True, slots=True)
class Disabled:
    """A capture instance ends."""

    capture_instance: str
    object_id: int


@dataclass(frozen=True, slots=True)
class LoggedColumn:
    """A column as the source's catalog had it: its number, name, type oid and modifier."""

    number: int
    name: str
    type_oid: int
    typmod: int
    is_logged: bool


@dataclass(frozen=True, slots=True)
class Altered:
    """A tracked table was altered; ``columns`` is its whole shape afterwards."""

    table_id: int
    schema: str
    table: str
    columns: tuple[LoggedColumn, ...]
    ddl: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """A tracked table was dropped."""

    table_id: int
    ddl: str


Word = Enabled | Disabled | Altered | Dropped


def enabled_json(instance: CaptureInstance) -> str:
    """The message that ``instance`` begins, with its whole definition."""
    return json.dumps({"event": "enabled", "instance": _instance_fields(instance)})


def disabled_json(instance: CaptureInstance) -> str:
    """The message that ``instance`` ends."""
    word = {
        "event": "disabled",
        "capture_instance": instance.capture_instance,
        "object_id": instance.object_id,
    }
    return json.dumps(word)


def from_json(content: bytes) -> Word:
    """The message's meaning. ValueError when it is none of ours: anybody may write into a log."""
    try:
        # A database without an encoding has names and statements of any bytes: \xNN, as in relation messages.
        text = content.decode("utf-8", "surrogateescape")
        word = json.loads(_STRAY_BYTE.sub(lambda stray: f"\\\\x{ord(stray[0]) - 0xDC00:02x}", text))
        return _MEANINGS[word["event"]](word)
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"not a message of Highwater's: {error!r}") from error


_INSTANCE = TypeAdapter(CaptureInstance)
"""Says of each field whether it is of its type: what JSON holds may be anything."""


def _altered(word: dict[str, Any]) -> Altered:
    columns = tuple(
        LoggedColumn(int(number), str(name), int(type_oid), int(typmod), bool(is_logged))
        for number, name, type_oid, typmod, is_logged in word["columns"] or ()
    )
    return Altered(int(word["table_id"]), str(word["schema"]), str(word["table"]), columns, str(word["ddl"]))


def _instance_fields(instance: CaptureInstance) -> dict[str, Any]:
    values = asdict(instance)
    values["start_lsn"] = None if instance.start_lsn is None else str(instance.start_lsn)
    values["create_date"] = instance.create_date.isoformat()
    return values


def _instance(values: dict[str, Any]) -> CaptureInstance:
    known = {field.name for field in fields(CaptureInstance)}
    # A newer version may say more; what it says that we don't know is not for us.
    given = {name: value for name, value in values.items() if name in known}
    start_lsn = given["start_lsn"]
    given["start_lsn"] = None if start_lsn is None else Lsn.parse(start_lsn)
    given["create_date"] = datetime.fromisoformat(given["create_date"])
    given["columns"] = tuple(CapturedColumn(**column) for column in given["columns"])
    given["index_columns"] = tuple(IndexColumn(**column) for column in given["index_columns"])
    given["source_columns"] = tuple(ShapeColumn(**column) for column in given.get("source_columns", ()))
    return _INSTANCE.validate_python(given)


_MEANINGS: dict[str, Callable[[dict[str, Any]], Word]] = {
    "enabled": lambda word: Enabled(_instance(word["instance"])),
    "disabled": lambda word: Disabled(str(word["capture_instance"]), int(word["object_id"])),
    "altered": _altered,
    "dropped": lambda word: Dropped(int(word["table_id"]), str(word["ddl"])),
}
