"""What a version of a local Delta table has, followed through its log from entry to entry.

To open a table is to list its log's folder and to replay what came after the last checkpoint: tens of
milliseconds, more the more entries the log keeps. Whoever asks again pays for what has come since alone.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from engine.lake.log_entries import (
    Action,
    EntryIdentity,
    EntryNotWholeError,
    actions_of,
    alters,
    entry_identity,
)
from engine.lake.parquet_files import local_folder
from engine.lake.table_head import MOST_ENTRIES
from engine.lake.table_name import readable_name

MOST_FILES = 20_000
"""Files that are remembered of all tables together, about: some 20 MB. The last table is, whatever it has."""


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file as the log's ``add`` action tells of it.

    path: relative, as a URL has it. rows: None without statistics. least, most: bounds of columns by their
    names in the file; a time as text or as datetime, cut to milliseconds.
    """

    path: str
    rows: int | None
    size: int
    least: Mapping[str, Any]
    most: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of a table: its files by path, its columns as Delta's log describes them.

    features: that a reader has to know.
    """

    version: int
    files: Mapping[str, LiveFile]
    fields: tuple[Mapping[str, Any], ...]
    features: frozenset[str]


class LiveFiles:
    """Remembers versions of local tables. Thread-safe.

    most_files: as `MOST_FILES`.
    """

    def __init__(self, most_files: int = MOST_FILES) -> None:
        self._most_files = most_files
        self._known: OrderedDict[str, tuple[EntryIdentity, TableVersion]] = OrderedDict()
        self._lock = Lock()

    def of(self, path: str, version: int | None = None) -> TableVersion:
        """A version of a table, the newest by default. Raises what deltalake does, or the file system."""
        folder = local_folder(path)
        if folder is None:
            return _opened(path, version)
        with self._lock:
            known = self._known.get(path)
            if known is not None:
                self._known.move_to_end(path)
        followed = None if known is None else _followed(folder, *known, version)
        if followed is None:
            followed = _opened(path, version)
        if known is None or followed is not known[1]:
            self._remember(path, folder, followed)
        return followed

    def _remember(self, path: str, folder: Path, found: TableVersion) -> None:
        """Keeps the newer of what is known and what was found, and forgets tables not asked for lately."""
        identity = entry_identity(folder, found.version)
        with self._lock:
            known = self._known.get(path)
            if identity is not None and (
                known is None
                or known[1].version <= found.version
                or known[0] != entry_identity(folder, known[1].version)
            ):
                self._known[path] = identity, found
                self._known.move_to_end(path)
            count = sum(len(table.files) for _, table in self._known.values())
            while count > self._most_files and len(self._known) > 1:
                _, (_, oldest) = self._known.popitem(last=False)
                count -= len(oldest.files)


_OF_THIS_PROCESS = LiveFiles()


def live_files(path: str, version: int | None = None) -> TableVersion:
    """A version of the table at ``path``, the newest by default; only local ones are remembered.

    Raises what deltalake does where there is no such version, or one that only Spark can read; what the
    file system raises.
    """
    return _OF_THIS_PROCESS.of(path, version)


def _followed(
    folder: Path, identity: EntryIdentity, known: TableVersion, upto: int | None
) -> TableVersion | None:
    """The version ``upto``, or the newest, from one that is known; None where the log has to be opened."""
    if upto is not None and not 0 <= upto - known.version <= MOST_ENTRIES:
        return None
    files, number = dict(known.files), known.version
    while number != upto:
        try:
            actions = actions_of(folder, number + 1)
        except FileNotFoundError:
            break
        except EntryNotWholeError:  # deltalake has the words for it
            return None
        number += 1
        if number - known.version > MOST_ENTRIES or any(map(alters, actions)):
            return None
        _apply(actions, files)
    # Entries go oldest first: while this one is there, the one after the last was not yet, not no more. And
    # a table that was dropped and made anew has another.
    if entry_identity(folder, known.version) != identity or (upto is not None and number < upto):
        return None
    return TableVersion(number, files, known.fields, known.features) if number != known.version else known


def _apply(actions: list[Action], files: dict[str, LiveFile]) -> None:
    for action in actions:
        if "remove" in action:
            files.pop(action["remove"]["path"], None)
    for action in actions:
        if "add" in action:
            added = action["add"]
            told = json.loads(added.get("stats") or "{}")
            files[added["path"]] = LiveFile(
                added["path"],
                told.get("numRecords"),
                added["size"],
                told.get("minValues", {}),
                told.get("maxValues", {}),
            )


def _opened(path: str, version: int | None) -> TableVersion:
    with readable_name(path) as name:
        table = DeltaTable(name, version)
        fields = tuple(json.loads(table.schema().to_json())["fields"])
        features = frozenset(table.protocol().reader_features or ())
        added = pa.table(table.get_add_actions(flatten=True))
    least, most = (
        {name.removeprefix(kind): name for name in added.column_names if name.startswith(kind)}
        for kind in ("min.", "max.")
    )
    files = {
        file["path"]: LiveFile(
            file["path"],
            file["num_records"],
            file["size_bytes"],
            _told(file, least),
            _told(file, most),
        )
        for file in added.to_pylist()
    }
    return TableVersion(table.version(), files, fields, features)


def _told(file: Mapping[str, Any], columns: Mapping[str, str]) -> Mapping[str, Any]:
    return {column: file[name] for column, name in columns.items() if file[name] is not None}
