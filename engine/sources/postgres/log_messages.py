"""The words of our own that enabling and disabling write into the log.

They are ASCII: the log holds them in the database's encoding, and gives them back unconverted.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from engine.model.capture_instance import CapturedColumn, CaptureInstance, IndexColumn
from engine.model.lsn import Lsn

PREFIX = "highwater"
MARK_PREFIX = "highwater.mark"


@dataclass(frozen=True, slots=True)
class Enabled:
    """A capture instance begins."""

    instance: CaptureInstance


@dataclass(frozen=True, slots=True)
class Disabled:
    """A capture instance ends."""

    capture_instance: str
    object_id: int


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


def from_json(content: bytes) -> Enabled | Disabled:
    """The message's meaning. ValueError when it is none of ours: anybody may write into a log."""
    try:
        word = json.loads(content)
        if word["event"] == "enabled":
            return Enabled(_instance(word["instance"]))
        if word["event"] == "disabled":
            return Disabled(str(word["capture_instance"]), int(word["object_id"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a message of Highwater's: {error!r}") from error
    raise ValueError(f"unknown event {word['event']!r}")


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
    return CaptureInstance(**given)
