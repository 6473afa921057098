"""Entries of the Delta log of a table in a local folder, read and made without Spark."""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.lake.parquet_files import flush

Action = Mapping[str, Any]
"""An action of Delta's log, as JSON."""


_WITHOUT_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)

EntryIdentity = tuple[int, int]
"""What tells an entry from that of another table of the same name: its inode, and when it was written."""


def entry_file(folder: Path, version: int) -> Path:
    """The file of a version's entry; folder: the table's."""
    return folder / "_delta_log" / f"{version:020d}.json"


def actions_of(folder: Path, version: int) -> list[Action]:
    """What a version did. Raises FileNotFoundError where its entry is not there, or not any more."""
    text = entry_file(folder, version).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line]


class NoLinksError(OSError):
    """The file system has no hard links, by which an entry is made by one of many at most."""


def make_entry(folder: Path, version: int, text: str, fsync: bool) -> bool:
    """Makes the entry of a version, whole or not at all; False, and nothing is done, where there is one.

    Whichever process is faster has it: a link never takes the place of another file, as a rename does. fsync:
    it survives a power cut. Raises NoLinksError, and what else the file system raises.
    """
    entry = entry_file(folder, version)
    new = entry.with_name(f".{entry.name}.{uuid.uuid4()}.tmp")
    try:
        with new.open("x", encoding="utf-8") as file:
            file.write(f"{text}\n")
            file.flush()
            if fsync:
                os.fsync(file.fileno())
        os.link(new, entry)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in _WITHOUT_LINKS:
            raise NoLinksError(*error.args) from error
        raise
    finally:
        new.unlink(missing_ok=True)
    if fsync:
        flush(entry.parent)
    return True


def entry_identity(folder: Path, version: int) -> EntryIdentity | None:
    """None where the entry is gone."""
    try:
        facts = entry_file(folder, version).stat()
    except FileNotFoundError:
        return None
    return facts.st_ino, facts.st_mtime_ns


def alters(action: Action) -> bool:
    """Whether an action changes what the table is, not what it has."""
    return "metaData" in action or "protocol" in action
