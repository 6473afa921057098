"""Values converted by the server itself: exact for every type it knows, at a round trip a call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from struct import Struct

import psycopg
from psycopg import pq, sql

from engine.sources.postgres.columns import Replaced
from engine.sources.postgres.connection import Connection, any_bytes, unreachable
from engine.sources.postgres.types import TEXT, ColumnType, Form, TypeCatalog

UNREADABLE = "values kept as hex digits: the server cannot read their type"

_TEXT_ARRAY = 1009
# format() calls the output function; a cast to text may differ from it (inet, char(n)).
_TEXTS = "SELECT format('%s', v) FROM unnest($1) AS v"
_TEXT = "SELECT format('%s', $1)"
_ARRAYS_OF_TEXTS = "SELECT v::text[] FROM unnest($1) AS v"
_TOO_SHORT = "08P01"
"""What the server says of a value that ends within itself; of a connection when it comes any other way."""
_UNREADABLE = (_TOO_SHORT, "0A", "22", "23", "42", "XX")
"""Classes of errors by which the server says that it can't read a value, rather than that it is unwell."""
_OF_SINGLE_VALUES = (_TOO_SHORT, "22", "23", "42804")
"""Of these, what may be wrong with some values only: a label, a check, a composite's fields."""
_FIELD_HEAD = Struct(">Ii")
_FIELD_TO_DOUBLE = re.compile(rb'(["\\])')
_FIELD_TO_QUOTE = re.compile(rb'["\\(), \t\n\r\v\f]')
_BATCH_BYTES = 16 * 1024 * 1024


class PostgresValues:
    """`ServerValues` over a connection with `SESSION_SETTINGS` that is not busy."""

    def __init__(self, connection: Connection, database: str) -> None:
        self._connection = connection
        self._database = database
        self._catalog = TypeCatalog(connection)

    def texts(self, column: ColumnType, values: list[bytes], replaced: Replaced) -> list[bytes]:
        """The output function's text (UTF-8) of values in binary form.

        A value that the server can't read (say, of a type dropped since) gives ``\\x`` and hex digits, and
        ``replaced`` is told.
        """
        texts = self._texts_known(column, values)
        if unreadable := texts.count(None):
            replaced(UNREADABLE, unreadable)
        return [
            b"\\x" + value.hex().encode() if text is None else text
            for value, text in zip(values, texts, strict=True)
        ]

    def _texts_known(self, column: ColumnType, values: list[bytes]) -> Sequence[bytes | None]:
        """Texts, None for values that the server can't read."""
        try:
            return self._converted(_TEXTS, column.array_oid, column.oid, values)
        except psycopg.Error as error:
            state = error.sqlstate or ""
            if not state.startswith(_UNREADABLE):
                raise
            if not state.startswith(_OF_SINGLE_VALUES):
                return [None] * len(values)
            if len(values) == 1:
                return [self._record(column, values[0])]
            half = len(values) // 2
            return [*self._texts_known(column, values[:half]), *self._texts_known(column, values[half:])]

    def _record(self, column: ColumnType, value: bytes) -> bytes | None:
        """A composite value's text from its fields: the type may have others now. None if it is none."""
        row = self._connection.execute("SELECT typtype = 'c' FROM pg_type WHERE oid = %s", [column.oid])
        if row.fetchone() != (True,):
            return None
        texts: list[bytes] = []
        for oid, field in _fields(value):
            text = b"" if field is None else self._field(oid, field)
            if text is None:
                return None
            texts.append(text if field is None else _quoted_field(text))
        return b"(" + b",".join(texts) + b")"

    def _field(self, oid: int, value: bytes) -> bytes | None:
        (type_,) = self._catalog.column_types([(oid, -1)])
        if type_.form is Form.TEXT:
            return value
        try:
            return self._executed(_TEXT, value, type_.oid)[0]
        except psycopg.Error as error:
            if not (error.sqlstate or "").startswith(_UNREADABLE):
                raise
            return self._record(type_, value)

    def binaries(self, column: ColumnType, texts: list[bytes]) -> list[bytes]:
        """The binary form of values given as text; see `ServerValues`."""
        element = column.element
        if element is not None and element.lake_type == "string":
            # Read as texts they need no type: it may be gone, or an enum's label have another name by now.
            delimiter = self._delimiter(column.oid)
            texts = texts if delimiter == b"," else [_with_commas(text, delimiter) for text in texts]
            return self._converted(_ARRAYS_OF_TEXTS, _TEXT_ARRAY, TEXT, texts)
        # A domain among the elements would check again what it allowed at the time.
        oid = (element and element.array_oid) or column.oid
        query = sql.SQL("SELECT v::{type} FROM unnest($1) AS v").format(type=sql.SQL(self._type_name(oid)))
        return self._converted(query.as_string(self._connection), _TEXT_ARRAY, TEXT, texts)

    def _delimiter(self, oid: int) -> bytes:
        """What stands between the elements of an array of this type, in text."""
        row = self._connection.execute("SELECT typdelim::text FROM pg_type WHERE oid = %s", [oid]).fetchone()
        return str(row[0]).encode() if row else b","

    def _type_name(self, oid: int) -> str:
        row = self._connection.execute("SELECT format_type(%s, NULL)", [oid]).fetchone()
        assert row is not None
        return str(row[0])

    def _converted(self, query: str, array_oid: int, element_oid: int, values: list[bytes]) -> list[bytes]:
        batches = _batches(values)
        return [
            value
            for batch in batches
            for value in self._executed(query, _binary_array(element_oid, batch), array_oid)
        ]

    def _executed(self, query: str, parameter: bytes, oid: int) -> list[bytes]:
        """The first column of a query of one parameter, all in binary form."""
        with unreachable(self._database), any_bytes(self._connection):
            result = self._connection.pgconn.exec_params(
                query.encode(), [parameter], [oid], [pq.Format.BINARY], pq.Format.BINARY
            )
            error = None
            if result.status != pq.ExecStatus.TUPLES_OK:
                error = psycopg.errors.error_from_result(result)
            if error is not None and error.sqlstate != _TOO_SHORT:
                raise error
        if error is not None:
            raise error
        return [result.get_value(row, 0) or b"" for row in range(result.ntuples)]


def _with_commas(text: bytes, delimiter: bytes) -> bytes:
    """An array's text with the usual delimiter: only the boxes of PostgreSQL's own types have another."""
    bounds, brace, elements = text.partition(b"{")
    token = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}]|%b|[^"{}%b]+' % (re.escape(delimiter), re.escape(delimiter)))

    def rewritten(match: re.Match[bytes]) -> bytes:
        found = match[0]
        if found == delimiter:
            return b","
        return found if found[:1] in b'"{}' or found == b"NULL" else b'"%b"' % found

    return bounds + brace + token.sub(rewritten, elements)


def _fields(record: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Type and value of each field of a composite in binary form."""
    place = 4
    for _ in range(int.from_bytes(record[:4], "big")):
        oid, length = _FIELD_HEAD.unpack_from(record, place)
        place += _FIELD_HEAD.size
        yield oid, None if length < 0 else record[place : place + length]
        place += max(length, 0)


def _quoted_field(text: bytes) -> bytes:
    """A field as record_out writes it."""
    if text and not _FIELD_TO_QUOTE.search(text):
        return text
    return b'"' + _FIELD_TO_DOUBLE.sub(rb"\1\1", text) + b'"'


def _batches(values: list[bytes]) -> list[list[bytes]]:
    """The values in runs of some megabytes: one parameter may not exceed a gigabyte."""
    batches: list[list[bytes]] = [[]]
    size = 0
    for value in values:
        if size > _BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(value)
        size += len(value) + 4
    return batches


def _binary_array(element_oid: int, values: list[bytes]) -> bytes:
    """A one-dimensional array in binary form."""
    header = b"".join(number.to_bytes(4, "big") for number in (1, 0, element_oid, len(values), 1))
    sized = [part for value in values for part in (len(value).to_bytes(4, "big"), value)]
    return b"".join([header, *sized])
