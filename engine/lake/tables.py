"""Where the lake's tables are, and what columns they have (reference/tables.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

import pyarrow as pa

from engine.model.capture_instance import CaptureInstance
from engine.model.change import (
    COMMAND_ID,
    END_LSN,
    LEADING_COLUMNS,
    OPERATION,
    SEQVAL,
    START_LSN,
    UPDATE_MASK,
)

LSN_TIME_MAPPING_SCHEMA = pa.schema(
    [
        ("start_lsn", pa.string()),
        ("tran_begin_time", pa.timestamp("us", "UTC")),
        ("tran_end_time", pa.timestamp("us", "UTC")),
        ("tran_id", pa.binary()),
        ("tran_begin_lsn", pa.string()),
    ]
)
"""Columns of cdc.lsn_time_mapping."""

_PLAIN_TYPES: Mapping[str, pa.DataType] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_ARRAY = re.compile(r"array<(.+)>")


class Lake:
    """The places of the lake's tables below one root: a folder, or a URI of any Hadoop file system."""

    def __init__(self, root: str) -> None:
        local = urlsplit(root).scheme == ""
        self.root = str(Path(root).resolve()) if local else root.rstrip("/")

    def change_table(self, database: str, capture_instance: str) -> str:
        """The path of ``cdc.<capture_instance>_CT``."""
        return f"{self._schema(database)}/{_segment(capture_instance)}_CT"

    def lsn_time_mapping(self, database: str) -> str:
        """The path of ``cdc.lsn_time_mapping``."""
        return f"{self._schema(database)}/lsn_time_mapping"

    def folders(self, database: str) -> tuple[str, str]:
        """Where the tables of a database are: their folder, then the one around it."""
        return self._schema(database), f"{self.root}/{_segment(database)}"

    def custom_snapshots(self, output_table: str) -> str:
        """The path of ``custom_snapshots.<output_table>``, which has all databases' rows."""
        return f"{self.root}/custom_snapshots/{_segment(output_table)}"

    @property
    def results(self) -> str:
        """The folder through which large results pass on their way to whoever asked."""
        return f"{self.root}/_results"

    def _schema(self, database: str) -> str:
        return f"{self.root}/{_segment(database)}/cdc"


def arrow_type(lake_type: str) -> pa.DataType:
    """The Arrow type that a Spark SQL type text stands for. ValueError for one the lake has no column for."""
    if plain := _PLAIN_TYPES.get(lake_type):
        return plain
    if decimal := _DECIMAL.fullmatch(lake_type):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if array := _ARRAY.fullmatch(lake_type):
        return pa.list_(pa.field("element", arrow_type(array[1])))
    raise ValueError(f"'{lake_type}' is not a type of the lake")


def lake_columns(instance: CaptureInstance) -> tuple[str, ...]:
    """Names of the captured columns in the change table, in ordinal order.

    They are the source's, but for names that Delta would take for one: it knows no difference of
    case, so of ``Id`` and ``id`` the second becomes ``id (2)``. `all_changes` gives back the source's.
    """
    taken = {name.lower() for name in (*LEADING_COLUMNS, COMMAND_ID)}
    names = []
    for name in instance.column_names:
        chosen, number = name, 1
        while chosen.lower() in taken:
            number += 1
            chosen = f"{name} ({number})"
        taken.add(chosen.lower())
        names.append(chosen)
    return tuple(names)


def change_table_schema(instance: CaptureInstance) -> pa.Schema:
    """Columns of the instance's change table: metadata, captured columns, ``__$command_id``."""
    captured = [
        (name, arrow_type(column.lake_type))
        for name, column in zip(lake_columns(instance), instance.columns, strict=True)
    ]
    return pa.schema(
        [
            (START_LSN, pa.string()),
            (END_LSN, pa.string()),
            (SEQVAL, pa.string()),
            (OPERATION, pa.int32()),
            (UPDATE_MASK, pa.binary()),
            *captured,
            (COMMAND_ID, pa.int32()),
        ]
    )


def _segment(name: str) -> str:
    """A name as one path segment; no two names share one, and none is ``.`` or ``..``."""
    encoded = quote(name, safe="").replace("~", "%7E")
    return encoded.replace(".", "%2E") if set(encoded) == {"."} else encoded
