"""A captured table read in one snapshot of a PostgreSQL source, and which transactions the snapshot has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import numpy as np
import psycopg
import pyarrow as pa
import structlog
from psycopg import sql

from engine.errors import LogRecordsNotProcessed, RowsNotTold
from engine.model.capture_instance import CapturedColumn, CaptureInstance
from engine.model.lsn import Lsn
from engine.sources.base import UnseenTransactions
from engine.sources.postgres.columns import AS_BINARY, AS_TEXT, NULL, Decoding, Values, column_array
from engine.sources.postgres.connection import (
    Connection,
    any_bytes,
    configure,
    connect,
    is_unencoded,
    lsn_of,
    text_of,
    unreachable,
)
from engine.sources.postgres.server_values import PostgresValues
from engine.sources.postgres.types import ColumnType, Form, TypeCatalog

_log = structlog.get_logger(__name__)

APPLICATION = "highwater table as of"
LOCK_TIMEOUT = "5s"
"""How long reading waits behind DDL on the table, and holds up those who come after."""
BATCH_BYTES = 16 * 1024 * 1024
"""About how many bytes of rows a batch is made from."""

# In the order of the clauses: the position is read when the snapshot has been taken.
_SNAPSHOT = "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text"

_TABLE = """
SELECT n.nspname, c.relname, c.relkind = 'p', c.relrowsecurity
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s
"""

_COLUMNS = """
SELECT attnum, attname, atttypid, atttypmod FROM pg_attribute
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
"""

# Of an array without such a function for its elements the server learns too late that it can't send it.
_WITHOUT_BINARY_FORM = "SELECT oid FROM pg_type WHERE oid = ANY(%s::oid[]) AND typsend = 0"

_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEADER = len(_SIGNATURE) + 8
_TRAILER = b"\xff\xff"

_XIDS = 2**32
_IN_FLIGHT = 2**28
"""More transactions, with their subtransactions, than run at a time; few enough that no number comes again.

A captured transaction's number counts to 2**32 and begins anew: one of so many transactions ago, less
these, could be taken for one that runs.
"""


def unseen_transactions(snapshot: str) -> UnseenTransactions:
    """From PostgreSQL's text of a snapshot, ``xmin:xmax:xip,…``: those running, and all from ``xmax`` on."""
    _, last, running = snapshot.split(":")
    low = int(last) % _XIDS
    high = (low + _IN_FLIGHT) % _XIDS
    later = [(low, high)] if low <= high else [(low, _XIDS - 1), (0, high)]
    numbers = [int(number) % _XIDS for number in running.split(",") if number]
    ranges = [*((number, number) for number in numbers), *later]
    return UnseenTransactions(tuple((_tran_id(first), _tran_id(end)) for first, end in ranges))


def _tran_id(number: int) -> bytes:
    return number.to_bytes(4, "big")


@dataclass(frozen=True, slots=True)
class _Column:
    """A column to be read: its place among the captured ones, its type, and whether it comes as text."""

    place: int
    name: str
    type: ColumnType
    as_text: bool


@dataclass(slots=True)
class PostgresSnapshot:
    """`TableSnapshot` over a connection in whose transaction the snapshot was taken."""

    end: Lsn
    unseen: UnseenTransactions
    has_row_security: bool
    _instance: CaptureInstance
    _connection: Connection
    _decoding: Decoding
    _table: sql.Composable
    _columns: Sequence[_Column]

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows in no order, once. Raises RowsNotTold, SourceUnreachable."""
        with _told(self._instance), self._connection.cursor() as cursor, cursor.copy(self._query()) as copy:
            rows: list[bytes] = []
            size = 0
            for number, data in enumerate(copy):
                row = bytes(data)[_HEADER:] if number == 0 else bytes(data)
                if row not in (b"", _TRAILER):
                    rows.append(row)
                    size += len(row)
                if size >= BATCH_BYTES:
                    yield self._batch(rows)
                    rows, size = [], 0
        if rows:
            yield self._batch(rows)

    def _query(self) -> sql.Composed:
        selected = sql.SQL(", ").join(_expression(column) for column in self._columns)
        return sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT binary)").format(selected, self._table)

    def _batch(self, rows: Sequence[bytes]) -> pa.RecordBatch:
        arrays = [
            column_array(column.type, values, self._decoding)
            for column, values in zip(self._columns, _values(rows, self._columns), strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, [str(column.place) for column in self._columns])


@contextmanager
def open_snapshot(dsn: str, database: str, instance: CaptureInstance) -> Iterator[PostgresSnapshot]:
    """The source table of ``instance`` in a snapshot of now, open within. See `SourceAdmin.snapshot`."""
    reader, server = (connect(dsn, database, APPLICATION) for _ in range(2))
    with closing(reader), closing(server), unreachable(database), _told(instance):
        # A policy that kept rows from us would do so silently.
        configure(reader, {"row_security": "off", "lock_timeout": LOCK_TIMEOUT})
        if is_unencoded(reader):
            configure(reader, {"client_encoding": "SQL_ASCII"})
        name, has_row_security = _named(reader, instance)
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        # Before the snapshot: what a rewrite left would look empty to an older one.
        reader.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(name))
        found = reader.execute(_SNAPSHOT.encode()).fetchone()
        assert found is not None
        if _named(reader, instance)[0] != name:
            raise RowsNotTold(instance.capture_instance, "its table was renamed at this moment. Ask again")
        decoding = Decoding(
            PostgresValues(server, database),
            lambda what, count: _log.warning(
                what, database=database, capture_instance=instance.capture_instance, values=count
            ),
            not is_unencoded(reader),
        )
        yield PostgresSnapshot(
            lsn_of(found[1]),
            unseen_transactions(found[0]),
            has_row_security,
            instance,
            reader,
            decoding,
            name,
            _columns(reader, instance),
        )


@contextmanager
def _told(instance: CaptureInstance) -> Iterator[None]:
    """Turns the server's refusal into RowsNotTold; a connection that is lost passes."""
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate is None or error.sqlstate[:2] in ("08", "57"):
            raise
        raise RowsNotTold(instance.capture_instance, text_of(error).rstrip(".")) from error
    except LogRecordsNotProcessed as error:
        raise RowsNotTold(instance.capture_instance, str(error).rstrip(".")) from error


def _named(connection: Connection, instance: CaptureInstance) -> tuple[sql.Composed, bool]:
    """The table as a statement names it, and whether it has row-level security. Raises RowsNotTold."""
    with any_bytes(connection):
        found = connection.execute(_TABLE, [instance.source_object_id]).fetchone()
    if found is None:
        raise RowsNotTold(instance.capture_instance, "its table is gone at the source")
    schema, name, is_partitioned, has_row_security = found
    # Partitions are captured through their root, heirs are tables of their own.
    only = sql.SQL("" if is_partitioned else "ONLY ")
    return only + sql.Identifier(str(schema), str(name)), bool(has_row_security)


def _columns(connection: Connection, instance: CaptureInstance) -> list[_Column]:
    """Captured columns that the table has, as it stands in the snapshot. Raises RowsNotTold."""
    found = connection.execute(_COLUMNS, [instance.source_object_id]).fetchall()
    there = {number: (name, oid, typmod) for number, name, oid, typmod in found}
    columns = []
    for place, (column, known) in enumerate(zip(instance.columns, instance.source_names(), strict=True)):
        if column.is_computed or known is None:
            continue
        if column.column_id not in there:
            raise RowsNotTold(instance.capture_instance, f"column '{column.column_name}' was dropped since")
        name, oid, typmod = there[column.column_id]
        columns.append((place, str(name), _type(connection, instance, column, oid, typmod)))
    lacking = _without_binary_form(connection, [type_ for _, _, type_ in columns])
    return [_Column(place, name, type_, _comes_as_text(type_, lacking)) for place, name, type_ in columns]


def _type(
    connection: Connection, instance: CaptureInstance, column: CapturedColumn, oid: int, typmod: int
) -> ColumnType:
    (type_,) = TypeCatalog(connection).column_types([(oid, typmod)])
    if type_.lake_type != column.lake_type:
        reason = f"column '{column.column_name}' has another type since, {type_.source_type}"
        raise RowsNotTold(instance.capture_instance, reason)
    return type_


def _without_binary_form(connection: Connection, types: Sequence[ColumnType]) -> frozenset[int]:
    oids = [each.oid for type_ in types for each in (type_, type_.element) if each is not None]
    return frozenset(row[0] for row in connection.execute(_WITHOUT_BINARY_FORM, [oids]).fetchall())


def _comes_as_text(type_: ColumnType, lacking: frozenset[int]) -> bool:
    """Whether the output function's text is asked for: where only the server could read the binary form."""
    element = type_.element
    return (
        type_.form is Form.SERVER or type_.oid in lacking or (element is not None and element.oid in lacking)
    )


def _expression(column: _Column) -> sql.Composable:
    name = sql.Identifier(column.name)
    if not column.as_text:
        return name
    # Of a composite with NULLs in it, IS NOT NULL would not hold.
    return sql.SQL("CASE WHEN num_nulls({0}) = 0 THEN format('%s', {0}) END").format(name)


def _values(rows: Sequence[bytes], columns: Sequence[_Column]) -> Iterator[Values]:
    """Each column of these rows of COPY BINARY: after the number of fields length and bytes of each."""
    buffer = np.frombuffer(b"".join([*rows, bytes(8)]), np.uint8)
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    ends = np.cumsum(lengths)
    heads = np.ndarray((len(buffer) - 3,), ">i4", buffer.data, strides=(1,))
    place = ends - lengths + 2
    for column in columns:
        length = heads[place].astype(np.int64)
        form = AS_TEXT if column.as_text else AS_BINARY
        kind = np.where(length < 0, NULL, form).astype(np.uint8)
        length = np.maximum(length, 0)
        yield Values(buffer, kind, place + 4, length)
        place = place + 4 + length
    if (place != ends).any():
        raise LogRecordsNotProcessed(
            f"a row of the source has other columns than the {len(columns)} asked for"
        )
