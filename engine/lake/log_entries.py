"""Entries of the Delta log of a table in a local folder, read and made without Spark."""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

from engine.lake.failures import LakeFailed

Action = Mapping[str, Any]
"""An action of Delta's log, as JSON."""


_WITHOUT_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)

EntryIdentity = tuple[int, int]
"""What tells an entry from that of another table of the same name: its inode, and when it was written."""


def entry_file(folder: Path, version: int) -> Path:
    """The file of a version's entry; folder: the table's."""
    return folder / "_delta_log" / _entry_name(version)


def _entry_name(version: int) -> str:
    return f"{version:020d}.json"


class EntryNotWholeError(LakeFailed):
    """A power cut has left a part of an entry, or nothing in it: none of ours, which is flushed before."""


def actions_of(folder: Path, version: int) -> list[Action]:
    """What a version did. Raises EntryNotWholeError.

    FileNotFoundError where its entry is not there, or not any more.
    """
    entry = entry_file(folder, version)
    try:
        actions = [json.loads(line) for line in entry.read_text(encoding="utf-8").splitlines() if line]
    except ValueError as error:
        raise EntryNotWholeError(f"The log entry '{entry}' is not whole: {error}.") from error
    if not actions:
        raise EntryNotWholeError(f"The log entry '{entry}' is empty.")
    return actions


class NoLinksError(OSError):
    """The file system has no hard links, by which an entry is made by one of many at most."""


class LogFolder:
    """The log of the table that is at a place now, whatever is made there later: for a ``with`` statement.

    Raises FileNotFoundError where there is none, and from any call once it is gone.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "_delta_log"

    def __enter__(self) -> Self:
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def identity(self, version: int) -> EntryIdentity | None:
        """As `entry_identity`."""
        return _identity(_entry_name(version), self._descriptor)

    def make(self, version: int, text: str, fsync: bool) -> bool:
        """Makes the entry of a version, whole or not at all; False, and nothing is done, where there is one.

        Whichever process is faster has it: a link never takes the place of another file, as a rename does.
        fsync: it survives a power cut. Raises NoLinksError, and what else the file system raises.
        """
        log, name = self._descriptor, _entry_name(version)
        new = f".{name}.{uuid.uuid4()}.tmp"
        with open(new, "x", encoding="utf-8", opener=partial(os.open, dir_fd=log)) as file:
            try:
                file.write(f"{text}\n")
                file.flush()
                if fsync:
                    os.fsync(file.fileno())
                os.link(new, name, src_dir_fd=log, dst_dir_fd=log)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno in _WITHOUT_LINKS:
                    raise NoLinksError(*error.args) from error
                raise
            finally:
                os.unlink(new, dir_fd=log)
        if fsync:
            os.fsync(log)
        return True


def entry_identity(folder: Path, version: int) -> EntryIdentity | None:
    """None where the entry is gone."""
    return _identity(entry_file(folder, version))


def _identity(entry: Path | str, folder: int | None = None) -> EntryIdentity | None:
    try:
        facts = os.stat(entry, dir_fd=folder)
    except FileNotFoundError:
        return None
    return facts.st_ino, facts.st_mtime_ns


def alters(action: Action) -> bool:
    """Whether an action changes what the table is, not what it has."""
    return "metaData" in action or "protocol" in action
