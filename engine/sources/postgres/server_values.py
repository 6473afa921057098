"""Values converted by the server itself: exact for every type it knows, at a round trip a call."""

from __future__ import annotations

import psycopg
import structlog
from psycopg import pq, sql
from psycopg.pq.abc import PGresult

from engine.sources.postgres.connection import Connection, unreachable
from engine.sources.postgres.types import TEXT, ColumnType

_log = structlog.get_logger(__name__)

_TEXT_ARRAY = 1009
_TEXTS_OF_ELEMENTS = """
SELECT coalesce((SELECT array_agg(CASE WHEN e IS NOT NULL THEN format('%s', e) END ORDER BY n)
                 FROM unnest(v::{type}) WITH ORDINALITY AS u(e, n)), ARRAY[]::text[])
FROM unnest($1) AS v
"""
_BATCH_BYTES = 16 * 1024 * 1024


class PostgresValues:
    """`ServerValues` over a connection with `SESSION_SETTINGS` that is not busy."""

    def __init__(self, connection: Connection, database: str) -> None:
        self._connection = connection
        self._database = database

    def texts(self, column: ColumnType, values: list[bytes]) -> list[bytes]:
        """The output function's text (UTF-8) of values in binary form.

        A type that the server no longer knows (dropped since) gives ``\\x`` and hex digits, with a warning.
        """
        try:
            # format() calls the output function; a cast to text may differ from it (inet, char(n)).
            return self._converted(
                "SELECT format('%s', v) FROM unnest($1) AS v", column.array_oid, column.oid, values
            )
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise
            _log.warning(
                "values kept as hex digits: the server cannot read their type",
                database=self._database,
                type=column.source_type,
                values=len(values),
                error=error.sqlstate,
            )
            return [b"\\x" + value.hex().encode() for value in values]

    def binaries(self, column: ColumnType, texts: list[bytes]) -> list[bytes]:
        """The binary form of values given as text; see `ServerValues`."""
        as_texts = column.element is not None and column.element.lake_type == "string"
        query = sql.SQL(_TEXTS_OF_ELEMENTS if as_texts else "SELECT v::{type} FROM unnest($1) AS v").format(
            type=sql.SQL(self._type_name(column.oid))
        )
        return self._converted(query.as_string(self._connection), _TEXT_ARRAY, TEXT, texts)

    def _type_name(self, oid: int) -> str:
        row = self._connection.execute("SELECT format_type(%s, NULL)", [oid]).fetchone()
        assert row is not None
        return str(row[0])

    def _converted(self, query: str, array_oid: int, element_oid: int, values: list[bytes]) -> list[bytes]:
        converted: list[bytes] = []
        for batch in _batches(values):
            parameter = _binary_array(element_oid, batch)
            with unreachable(self._database):
                result = self._connection.pgconn.exec_params(
                    query.encode(), [parameter], [array_oid], [pq.Format.BINARY], pq.Format.BINARY
                )
                if result.status != pq.ExecStatus.TUPLES_OK:
                    raise psycopg.errors.error_from_result(result)
            converted.extend(_column(result))
        return converted


def _column(result: PGresult) -> list[bytes]:
    return [result.get_value(row, 0) or b"" for row in range(result.ntuples)]


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
