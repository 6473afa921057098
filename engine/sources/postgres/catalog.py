"""Tables of a source database as its catalog describes them: one query each for tables, columns, indexes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from engine.sources.base import SourceColumn, SourceIndex, SourceTable
from engine.sources.postgres.connection import Connection, NotUtf8, any_bytes
from engine.sources.postgres.types import TypeCatalog, type_id

# Partitions are captured through their root; temporary and unlogged tables are not in the log.
_TABLES = """
SELECT c.oid, n.nspname, c.relname, greatest(c.reltuples, -1)::bigint, c.relkind = 'p'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'cdc') AND n.nspname !~ '^pg_'
  AND (%(schema)s::text IS NULL OR (n.nspname = %(schema)s AND c.relname = %(name)s))
ORDER BY n.nspname, c.relname
"""

# From 18 on a NOT NULL that is not valid holds for new rows alone.
_COLUMNS = """
SELECT a.attrelid, a.attname, a.attnum, a.atttypid, a.atttypmod,
       a.attnotnull AND NOT EXISTS (
           SELECT FROM pg_constraint c WHERE c.conrelid = a.attrelid AND c.contype = 'n'
             AND c.conkey = ARRAY[a.attnum] AND NOT c.convalidated),
       a.attgenerated <> '',
       a.attgenerated = '' OR (a.attgenerated = 's' AND current_setting('server_version_num')::int >= 180000)
FROM pg_attribute a
WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""

# A partial index, or one over an expression, identifies no row; nor does one that is checked at the end of
# a statement or later: until then two rows may have one key, and the log may insert it before it is free.
# Generated columns are captured as NULL: with one in its key, all rows would be the same.
_INDEXES = """
SELECT i.indrelid, c.relname, i.indisprimary AND i.indimmediate AND NOT has.generated,
       i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indimmediate AND NOT has.generated,
       i.indisvalid,
       ARRAY(SELECT a.attname::text
             FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
             WHERE k.place <= i.indnkeyatts ORDER BY k.place)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
CROSS JOIN LATERAL (SELECT EXISTS (
    SELECT FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    WHERE k.place <= i.indnkeyatts AND a.attgenerated <> '') AS generated) has
WHERE i.indrelid = ANY(%s)
ORDER BY i.indrelid, NOT i.indisprimary, c.relname
"""


def source_tables(
    connection: Connection, schema: str | None = None, name: str | None = None
) -> list[SourceTable]:
    """Every table that could be tracked, or the one of that schema and name, by schema and name.

    Names may be `NotUtf8`: `unreadable_name` tells.
    """
    with any_bytes(connection):
        rows = connection.execute(_TABLES, {"schema": schema, "name": name}).fetchall()
        oids = [row[0] for row in rows]
        columns, indexes = _columns(connection, oids), _indexes(connection, oids)
    return [
        SourceTable(
            source_object_id=oid,
            schema=schema_name,
            name=table,
            columns=tuple(columns[oid]),
            indexes=tuple(indexes[oid]),
            row_estimate=estimate,
            is_partitioned=partitioned,
        )
        for oid, schema_name, table, estimate, partitioned in rows
    ]


def unreadable_name(table: SourceTable) -> str | None:
    """A name of the table or its columns that is no UTF-8, so that nobody could name it; None without."""
    names = (table.schema, table.name, *(column.name for column in table.columns))
    return next((name for name in names if isinstance(name, NotUtf8)), None)


def _columns(connection: Connection, oids: list[int]) -> dict[int, list[SourceColumn]]:
    rows: list[Any] = connection.execute(_COLUMNS, [oids]).fetchall()
    types = TypeCatalog(connection).column_types((row[3], row[4]) for row in rows)
    columns: dict[int, list[SourceColumn]] = defaultdict(list)
    for row, type_ in zip(rows, types, strict=True):
        oid, name, number, type_oid, typmod, not_null, generated, logged = row
        columns[oid].append(
            SourceColumn(
                name=name,
                column_id=number,
                source_type=type_.source_type,
                lake_type=type_.lake_type,
                nullable=not not_null,
                is_computed=generated,
                is_logged=logged,
                type_id=type_id(type_oid, typmod),
            )
        )
    return columns


def _indexes(connection: Connection, oids: list[int]) -> dict[int, list[SourceIndex]]:
    indexes: dict[int, list[SourceIndex]] = defaultdict(list)
    for oid, name, primary, unique, valid, columns in connection.execute(_INDEXES, [oids]).fetchall():
        if isinstance(name, NotUtf8):
            continue
        indexes[oid].append(
            SourceIndex(
                name=name, columns=tuple(columns), is_primary_key=primary, is_unique=unique, is_valid=valid
            )
        )
    return indexes
