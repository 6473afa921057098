"""Whatever bytes the log has, decoding gives rows or a typed error: it neither hangs nor takes the memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import pack
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import sql

from engine.errors import CdcError, LogRecordsNotProcessed
from engine.runtime.embedded_postgres import EmbeddedPostgres
from engine.sources.base import LogPiece
from engine.sources.postgres.columns import AS_BINARY, Decoding, Values, column_array
from engine.sources.postgres.connection import Connection, connect
from engine.sources.postgres.log_messages import Altered, Disabled, Dropped, from_json
from engine.sources.postgres.pgoutput import frame
from engine.sources.postgres.pieces import PieceDecoder, ShapedBlock, Shapes, understood
from engine.sources.postgres.server_values import PostgresValues
from engine.sources.postgres.slot import log_error
from engine.sources.postgres.transactions import TransactionMarker
from engine.sources.postgres.types import TypeCatalog
from engine.sources.postgres.words import Words
from tests.conftest import databases
from tests.sources.test_value_properties import placed

ROW_HEADER = 18
HEADER = 19

SETUP = """
CREATE TYPE mood AS ENUM ('calm', 'wild');
CREATE TYPE pair AS (a int, b text);
CREATE TABLE wide (id int PRIMARY KEY, small int2, big int8, real_ float4, double_ float8, yes bool, day date,
    at timestamp, at_zone timestamptz, price numeric(12,2), any_number numeric, bytes bytea, words text,
    code char(4), document json, documents jsonb, name uuid, numbers int[], matrix int[][], texts text[],
    prices numeric(12,2)[], feeling mood, both_ pair, pairs pair[], address inet, span int4range, long text);
ALTER TABLE wide REPLICA IDENTITY FULL;
ALTER TABLE wide ALTER long SET STORAGE EXTERNAL;
CREATE TABLE keyed (id int PRIMARY KEY, v text);
CREATE PUBLICATION everything FOR ALL TABLES;
"""
CHANGES = """
INSERT INTO wide VALUES (1, 2, 3, 1.5, 2.5, true, '2026-11-22', '2026-11-22 01:02:03', '2026-11-22 01:02:03Z',
    12.34, 1e100, '\\x00ff', 'words', 'ab', '{"a": 1}', '{"a": 1}', gen_random_uuid(),
    '{1,NULL,3}', '{{1,2},{3,4}}',
    '{a,NULL}', '{1.5,2}', 'wild', '(1,x)', '{"(1,x)"}', '::1', '[1,5)', repeat('long', 1000));
INSERT INTO wide (id) VALUES (2);
UPDATE wide SET big = 4;
DELETE FROM wide WHERE id = 2;
INSERT INTO keyed VALUES (1, 'a'), (2, 'b');
UPDATE keyed SET id = 3 WHERE id = 1;
UPDATE keyed SET v = 'c' WHERE id = 2;
DELETE FROM keyed WHERE id = 3;
SELECT pg_logical_emit_message(true, 'highwater', '{"event": "dropped", "table_id": 7, "ddl": "DROP"}');
SELECT pg_logical_emit_message(false, 'another', 'word');
TRUNCATE keyed;
ALTER TABLE keyed ADD n int;
INSERT INTO keyed VALUES (9, 'z', 1);
"""


@dataclass
class Decoder:
    """All that happens to the bytes of a log until they are a piece, with the real server's types."""

    connection: Connection
    rows: tuple[bytes, ...]

    def piece(self, rows: Sequence[bytes]) -> LogPiece:
        """Raises CdcError; anything else would end the scan without a word."""
        catalog = TypeCatalog(self.connection)
        decoder = PieceDecoder(PostgresValues(self.connection, "test"), "test", True)
        try:
            with understood():
                marked = TransactionMarker().mark(frame(rows))
                shaped = ShapedBlock.of(marked, Shapes(catalog), Words(self.connection, "test"), False)
                return decoder.piece(shaped, 0, len(marked.commit))
        except psycopg.Error as error:
            raise log_error(error, "test") from error


@pytest.fixture(scope="module")
def decoder(postgres: EmbeddedPostgres) -> Iterator[Decoder]:
    with databases(postgres) as make, connect(make(), "test", "test") as connection:
        connection.execute("SET search_path = public")
        connection.execute(SETUP.encode())
        connection.execute("SELECT pg_create_logical_replication_slot('hostile_log', 'pgoutput')")
        for statement in CHANGES.split(";\n"):
            connection.execute(statement.encode())
        yield Decoder(connection, (*peeked(connection, "true"), *peeked(connection, "false")))


def peeked(connection: Connection, binary: str) -> Iterator[bytes]:
    """The rows of one peek, without the file's header and trailer."""
    query = sql.SQL(
        "COPY (SELECT lsn, data FROM pg_logical_slot_peek_binary_changes('hostile_log', NULL, NULL,"
        " 'proto_version', '1', 'publication_names', 'everything', 'binary', {}, 'messages', 'true'))"
        " TO STDOUT (FORMAT binary)"
    ).format(sql.Literal(binary))
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        for number, data in enumerate(copy):
            row = bytes(data)[HEADER if number == 0 else 0 :]
            if len(row) > ROW_HEADER:
                yield row


def whole(piece: LogPiece) -> list[Any]:
    """Everything in it, looked at as a scan does."""
    for changes in piece.changes:
        changes.images.validate(full=True)
        assert changes.transaction.max(initial=0) < len(piece.transactions)
    return [list(piece.transactions), [changes.images.to_pylist() for changes in piece.changes], piece.events]


def messages(decoder: Decoder, kind: bytes) -> list[int]:
    return [number for number, row in enumerate(decoder.rows) if row[ROW_HEADER : ROW_HEADER + 1] == kind]


def half(decoder: Decoder) -> int:
    """Where the second peek begins, whose values are texts."""
    return len(decoder.rows) // 2


def test_the_log_itself_is_decoded_the_same_from_both_forms(decoder: Decoder) -> None:
    binary, text = (
        decoder.piece(decoder.rows[: half(decoder)]),
        decoder.piece(decoder.rows[half(decoder) :]),
    )
    assert whole(binary) == whole(text)
    assert [len(changes) for changes in binary.changes] == [7, 7, 1]
    assert {row[ROW_HEADER : ROW_HEADER + 1] for row in decoder.rows} == set(
        map(bytes, zip(b"BCIUDRMTY", strict=False))
    )


def with_data(row: bytes, data: bytes) -> bytes:
    return row[: ROW_HEADER - 4] + pack(">I", len(data)) + data


HOSTILE_NUMBERS = [
    pack(">I", number) for number in (0, 1, 0x7F, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 2**32 - 1)
]


@st.composite
def edits(draw: st.DrawFn, decoder: Decoder) -> list[bytes]:
    """One of the two peeks with a few messages changed, mostly in a way that leaves them plausible."""
    from_start = draw(st.booleans())
    rows = list(decoder.rows[: half(decoder)] if from_start else decoder.rows[half(decoder) :])
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(rows) - 1))
        row = rows[number]
        place = draw(st.integers(0, max(len(row) - 1, 0)))
        inside = max(place, ROW_HEADER)
        match draw(
            st.sampled_from(["flip", "cut", "row", "length", "insert", "random", "drop", "twice", "swap"])
        ):
            case "flip" if row:
                rows[number] = (
                    row[:place] + bytes([row[place] ^ (1 << draw(st.integers(0, 7)))]) + row[place + 1 :]
                )
            case "cut":
                rows[number] = with_data(row, row[ROW_HEADER:inside])
            case "row":
                rows[number] = row[:place]
            case "length":
                rows[number] = row[:inside] + draw(st.sampled_from(HOSTILE_NUMBERS)) + row[inside + 4 :]
            case "insert":
                more = draw(st.binary(min_size=1, max_size=9))
                rows[number] = with_data(row, row[ROW_HEADER:inside] + more + row[inside:])
            case "random":
                letter = draw(
                    st.sampled_from([b"B", b"C", b"I", b"U", b"D", b"R", b"M", b"T", b"O", b"Y", b""])
                )
                rows[number] = with_data(row, letter + draw(st.binary(max_size=60)))
            case "drop":
                del rows[number]
            case "twice":
                rows.insert(draw(st.integers(0, len(rows))), row)
            case "swap":
                other = draw(st.integers(0, len(rows) - 1))
                rows[number], rows[other] = rows[other], row
    return rows


@settings(max_examples=400)
@given(data=st.data())
def test_a_log_with_hostile_messages_is_decoded_or_refused(decoder: Decoder, data: st.DataObject) -> None:
    rows = data.draw(edits(decoder))
    try:
        piece = decoder.piece(rows)
    except CdcError:
        return
    whole(piece)


@settings(max_examples=200)
@given(rows=st.lists(st.binary(max_size=80), max_size=6))
def test_random_bytes_are_decoded_or_refused(decoder: Decoder, rows: list[bytes]) -> None:
    try:
        whole(decoder.piece(rows))
    except CdcError:
        return


@pytest.mark.parametrize("kind", [b"B", b"R", b"I", b"U", b"D", b"M"])
def test_every_truncation_of_every_message_is_decoded_or_refused(decoder: Decoder, kind: bytes) -> None:
    rows = list(decoder.rows[: half(decoder)])
    number = next(each for each in messages(decoder, kind))
    row = rows[number]
    for end in range(ROW_HEADER, min(len(row), ROW_HEADER + 300)):
        rows[number] = with_data(row, row[ROW_HEADER:end])
        with pytest.raises(CdcError) if kind != b"M" else Either():
            whole(decoder.piece(rows))


class Either:
    """Nobody can tell a shorter word from another."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        return kind is None or issubclass(kind, CdcError)


INT_ARRAY, NUMERIC_ARRAY, PRICE, JSONB, TEXT, UUID, INT = 1007, 1231, 1700, 3802, 25, 2950, 23
HUGE, MOST = pack(">I", 0x7FFFFFFF), pack(">I", 0xFFFFFFFF)
LIES = {
    "an array of two thousand million": (INT_ARRAY, pack(">III", 1, 0, 23) + HUGE + pack(">I", 1)),
    "an array of less than none": (INT_ARRAY, pack(">III", 1, 0, 23) + MOST + pack(">I", 1)),
    "an array of two thousand million dimensions": (INT_ARRAY, HUGE + pack(">II", 0, 23)),
    "an array of six large dimensions": (INT_ARRAY, pack(">III", 6, 0, 23) + (HUGE + pack(">I", 1)) * 6),
    "dimensions whose product is small in 64 bits": (
        INT_ARRAY,
        pack(">III", 2, 0, 23) + (MOST + pack(">I", 1)) * 2,
    ),
    "an element of two thousand million bytes": (INT_ARRAY, pack(">IIIII", 1, 0, 23, 1, 1) + HUGE),
    "an array without its elements": (INT_ARRAY, pack(">IIIII", 1, 0, 23, 5, 1)),
    "an array cut in its header": (INT_ARRAY, pack(">II", 1, 0)),
    "a number of 65535 digits": (PRICE, pack(">HHHH", 0xFFFF, 0, 0, 2)),
    "a number without its header": (PRICE, b"\0"),
    "an empty document": (JSONB, b""),
    "an int of three bytes": (INT, b"abc"),
    "an int of eight bytes": (INT, b"abcdefgh"),
    "half a name": (UUID, bytes(8)),
}
TYPMODS = {PRICE: (12 << 16 | 2) + 4, NUMERIC_ARRAY: (12 << 16 | 2) + 4}


def decoded(
    decoder: Decoder, oid: int, values: list[bytes | None], told: list[str] | None = None
) -> pa.Array:
    (column,) = TypeCatalog(decoder.connection).column_types([(oid, TYPMODS.get(oid, -1))])
    server = PostgresValues(decoder.connection, "test")
    given_: Values = placed(values, AS_BINARY)
    words = [] if told is None else told
    with understood():
        return column_array(column, given_, Decoding(server, lambda what, count: words.append(what)))


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_a_length_takes_no_memory(decoder: Decoder, lie: str) -> None:
    oid, value = LIES[lie]
    decoded(decoder, oid, [None])
    tracemalloc.start()
    arrow_before = pa.total_allocated_bytes()
    try:
        with pytest.raises(LogRecordsNotProcessed):
            decoded(decoder, oid, [value, None])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    assert pa.total_allocated_bytes() - arrow_before < 1_000_000


def test_a_table_of_65535_columns_takes_no_memory_for_rows_that_have_none(decoder: Decoder) -> None:
    rows = list(decoder.rows[: half(decoder)])
    number = messages(decoder, b"R")[0]
    data = rows[number][ROW_HEADER:]
    head = data[:5] + b"public\0wide\0f"
    assert data.startswith(head)
    rows[number] = with_data(
        rows[number], head + pack(">H", 65535) + b"\0c\0\0\0\0\x17\xff\xff\xff\xff" * 65535
    )
    inserted = messages(decoder, b"I")[1]
    copies = [rows[inserted]] * 2000
    tracemalloc.start()
    try:
        with pytest.raises(LogRecordsNotProcessed):
            decoder.piece(rows[:inserted] + copies + rows[inserted:])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000_000


def test_a_number_of_very_many_digits_is_read_one_by_one(decoder: Decoder) -> None:
    """Digits behind the column's scale: cut off, and no step of all rows for each."""
    digits = pack(">HhHH", 2000, 0, 0, 2) + pack(">H", 1234) * 2000
    few = pack(">HhHHH", 1, 0, 0, 2, 7)
    assert [str(value) for value in decoded(decoder, PRICE, [digits, few]).to_pylist()] == ["1234.12", "7.00"]


def test_text_that_is_none_is_written_by_its_bytes(decoder: Decoder) -> None:
    told: list[str] = []
    array = decoded(decoder, TEXT, [b"fine \xc3\xa9", b"not \xff\xfe", None], told)
    assert (array.to_pylist(), told) == (
        ["fine é", "not \\xff\\xfe", None],
        ["bytes that are not UTF-8 written as \\xNN"],
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["table_id", "object_id", "capture_instance", "schema", "table", "columns", "ddl", "instance"]


@settings(max_examples=300)
@given(
    event=st.sampled_from(["enabled", "disabled", "altered", "dropped"]) | JSON,
    values=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=len(FIELDS)),
)
def test_a_word_that_anybody_may_write_is_ours_or_refused(event: Any, values: dict[str, Any]) -> None:
    import json

    try:
        word = from_json(json.dumps({"event": event, **values}).encode())
    except ValueError:
        return
    assert isinstance(word, Altered | Disabled | Dropped)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"event": "enabled", "instance": ' + b"[" * 100_000,
        b'{"event": "enabled", "instance": []}',
        b'{"event": "dropped", "table_id": 1e999, "ddl": ""}',
        b'{"event": "dropped", "table_id": ' + b"9" * 5000 + b', "ddl": ""}',
        b'{"event": ["dropped"]}',
    ],
    ids=["deep", "deep within", "no instance", "infinite", "long number", "a list"],
)
def test_a_word_that_is_none_of_ours_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="Highwater's"):
        from_json(content)
