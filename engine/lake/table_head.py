"""What the newest version of a local Delta table is, followed through its log without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql.types import StructType

from engine.lake.log_entries import (
    Action,
    EntryIdentity,
    EntryNotWholeError,
    LogFolder,
    actions_of,
    alters,
    entry_file,
    entry_identity,
)
from engine.lake.table_name import readable_name

MOST_ENTRIES = 500
"""Log entries that are followed at most: from there on the last checkpoint is nearer."""

_BY_VERSION = 5
"""Up to here a writer's version stands for the features below; later ones are listed by name."""
_FEATURES = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "generatedColumns",
        "invariants",
        "timestampNtz",
    }
)
"""Features that ask nothing of whoever adds and removes whole files, unless a property puts them to use."""
_USES = ("delta.constraints.", "delta.enableChangeDataFeed")
"""Properties, or how their names begin, that put such a feature to use."""
_COLUMN_USES = ("delta.invariants", "delta.generationExpression", "delta.identity.")
"""What is said of a column, or of one within it, whose values a writer has to check or to make."""


@dataclass(frozen=True, slots=True)
class TableHead:
    """A version of a table, and what the table is there.

    identity: of the version's log entry. configuration: the table's properties. by_files: whether a log entry
    that adds and removes files is a whole commit; some features of Delta ask for more.
    """

    version: int
    identity: EntryIdentity
    schema: StructType
    configuration: Mapping[str, str]
    by_files: bool


def opened(path: str, folder: Path) -> TableHead | None:
    """The newest version; None where there is no table, or one that only Spark can open."""
    try:
        with readable_name(path) as name:
            table = DeltaTable(name)
            protocol, metadata = table.protocol(), table.metadata()
            schema = StructType.fromJson(json.loads(table.schema().to_json()))
    except DeltaError:
        return None
    features, configuration = protocol.writer_features or (), metadata.configuration
    by_files = _is_by_files(protocol.min_writer_version, features, configuration, schema)
    return _head(folder, table.version(), schema, configuration, by_files)


def created(folder: Path) -> TableHead | None:
    """The version that made the table, which has just been written."""
    actions = actions_of(folder, 0)
    [metadata] = [action["metaData"] for action in actions if "metaData" in action]
    [protocol] = [action["protocol"] for action in actions if "protocol" in action]
    schema = StructType.fromJson(json.loads(metadata["schemaString"]))
    features, configuration = protocol.get("writerFeatures", ()), metadata["configuration"]
    by_files = _is_by_files(protocol["minWriterVersion"], features, configuration, schema)
    return _head(folder, 0, schema, configuration, by_files)


def _is_by_files(
    writer: int, features: Sequence[str], configuration: Mapping[str, str], schema: StructType
) -> bool:
    if any(name.startswith(_USES) and value != "false" for name, value in configuration.items()):
        return False
    if any(not field.nullable or any(use in field.json() for use in _COLUMN_USES) for field in schema):
        return False
    return writer <= _BY_VERSION or (bool(features) and _FEATURES.issuperset(features))


def _head(
    folder: Path, version: int, schema: StructType, configuration: Mapping[str, str], by_files: bool
) -> TableHead | None:
    identity = entry_identity(folder, version)
    return None if identity is None else TableHead(version, identity, schema, configuration, by_files)


def followed(folder: Path, head: TableHead) -> TableHead | None:
    """The newest version, from one that was known; None where the log has to be opened.

    So it has where the table was altered, or dropped and made anew.
    """
    version = head.version
    try:
        while entry_file(folder, version + 1).exists():
            version += 1
            if version - head.version > MOST_ENTRIES or any(map(alters, actions_of(folder, version))):
                return None
    except (FileNotFoundError, EntryNotWholeError):  # gone meanwhile; deltalake has the words for the other
        return None
    # Entries go oldest first: while this one is there, the one after the last was not yet, not no more.
    if entry_identity(folder, head.version) != head.identity:
        return None
    if version == head.version:
        return head
    identity = entry_identity(folder, version)
    return None if identity is None else replace(head, version=version, identity=identity)


def add_entry(
    folder: Path,
    head: TableHead,
    put: Callable[[LogFolder, int], bool],
    matters: Callable[[Action], bool],
) -> int | None:
    """Adds an entry to the log after all that have come since ``head``; its version.

    put: makes the entry of a version, False where there is one. None where one of the actions that came since
    ``matters``, or where the table is gone or another by now: then nothing was added. Raises
    EntryNotWholeError.
    """
    version = head.version + 1
    with suppress(FileNotFoundError), LogFolder(folder) as log:
        while log.identity(head.version) == head.identity:
            if log.identity(version) is None:
                if put(log, version):
                    return version
            elif any(map(matters, actions_of(folder, version))):
                return None
            else:
                version += 1
    return None
