"""Schemas and objects of a database by their numbers, as SQL Server's catalog has them (sys.objects).

Where the source has numbers of its own they are shown; schemas and what belongs to the product have numbers
that are made from their names, so that they stay the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.engine import Engine

_FIXED_SCHEMAS = {"dbo": 1, "guest": 2, "information_schema": 3, "sys": 4, "cdc": 5}
_FIRST_MADE = 16384
_CDC_TABLES = ("captured_columns", "change_tables", "ddl_history", "index_columns", "lsn_time_mapping")
_TABLE, _FUNCTION = ("U ", "USER_TABLE"), ("IF", "SQL_INLINE_TABLE_VALUED_FUNCTION")


@dataclass(frozen=True, slots=True)
class CatalogObject:
    """One row of sys.objects. ``kind``: two letters, and their description."""

    name: str
    object_id: int
    schema: str
    kind: tuple[str, str]
    is_shipped: bool


def schema_id(name: str) -> int:
    """A schema's number: the original's for its own schemas, made from the name for others."""
    return _FIXED_SCHEMAS.get(name.lower()) or _number(f"schema {name}")


def _number(name: str) -> int:
    return _FIRST_MADE + zlib.crc32(name.encode()) % (2**31 - _FIRST_MADE)


def schemas(engine: Engine, database: str) -> Sequence[str]:
    """Schemas by name: those of tables that could be tracked, dbo, sys, and cdc on an enabled database."""
    found = {each.schema for each in engine.source_tables(database)} | {"dbo", "sys"}
    if engine.database(database).is_cdc_enabled:
        found.add("cdc")
    return sorted(found)


def objects(engine: Engine, database: str) -> Sequence[CatalogObject]:
    """Tables of the source, then the tables and functions of schema cdc, which are shipped."""
    return [*_source_tables(engine, database), *_shipped(engine, database)]


def _source_tables(engine: Engine, database: str) -> Iterator[CatalogObject]:
    for each in engine.source_tables(database):
        yield CatalogObject(each.name, each.source_object_id, each.schema, _TABLE, False)


def _shipped(engine: Engine, database: str) -> Iterator[CatalogObject]:
    if not engine.database(database).is_cdc_enabled:
        return
    for name in _CDC_TABLES:
        yield CatalogObject(name, _number(f"cdc.{name}"), "cdc", _TABLE, True)
    for each in engine.help_change_data_capture(database):
        yield CatalogObject(each.change_table, each.object_id, "cdc", _TABLE, True)
        for kind in ("all", "net") if each.supports_net_changes else ("all",):
            name = f"fn_cdc_get_{kind}_changes_{each.capture_instance}"
            yield CatalogObject(name, _number(f"cdc.{name}"), "cdc", _FUNCTION, True)


def catalog_names(engine: Engine, database: str, function: str) -> Sequence[tuple[int, str]]:
    """What SCHEMA_NAME, OBJECT_NAME or OBJECT_SCHEMA_NAME says, by number."""
    if function == "SCHEMA_NAME":
        return [(schema_id(name), name) for name in schemas(engine, database)]
    is_schema = function == "OBJECT_SCHEMA_NAME"
    return [(each.object_id, each.schema if is_schema else each.name) for each in objects(engine, database)]
