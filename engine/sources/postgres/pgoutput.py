"""pgoutput's messages (protocol version 1): framed many at a time, read field by field with numpy.

Messages come as rows (lsn, data) of COPY BINARY over pg_logical_slot_peek_binary_changes; a `MessageBlock`
keeps the rows in one buffer and only knows where they are.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import LogRecordsNotProcessed

BEGIN, COMMIT, INSERT, UPDATE, DELETE, RELATION, MESSAGE = (ord(letter) for letter in "BCIUDRM")
BEGIN_LENGTH = 21
KINDS = np.isin(np.arange(256), list(b"BCIUDRMTOY"))
"""Whether a byte is the letter of a message."""
OLD_ROW, KEY_ROW, NEW_ROW = ord("O"), ord("K"), ord("N")

REPLICA_IDENTITY_FULL = ord("f")

_COPY_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_COPY_HEADER = 19
_COPY_TRAILER = 2
_ROW_HEADER = 18
"""int16 number of fields, int32 8, the LSN, int32 length of the message."""


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """n messages in log order.

    buffer: the bytes; start, length: where each message is in it; lsn: uint64; kind: the message's letter.
    """

    buffer: NDArray[np.uint8]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    lsn: NDArray[np.uint64]
    kind: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.start)

    def integers(self, messages: NDArray[np.intp], at: int, width: int) -> NDArray[Any]:
        """Unsigned big-endian integers ``at`` bytes behind the start of these messages, in native order."""
        overlapping = np.ndarray(
            (len(self.buffer) - width + 1,), f">u{width}", self.buffer.data, strides=(1,)
        )
        return overlapping[self.start[messages] + at].astype(f"u{width}")

    def data(self, message: int) -> bytes:
        """One whole message."""
        start = int(self.start[message])
        return bytes(self.buffer.data[start : start + int(self.length[message])])


def frame(rows: Sequence[bytes | memoryview]) -> MessageBlock:
    """The messages of COPY BINARY rows of (pg_lsn, bytea) as they came, header and trailer among them."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    buffer = np.frombuffer(b"".join([*rows, bytes(8)]), np.uint8)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    if len(rows) and bytes(rows[0][: len(_COPY_SIGNATURE)]) == _COPY_SIGNATURE:
        starts[0] += _COPY_HEADER
    whole = ends - starts >= _ROW_HEADER
    if not whole.all():
        if not np.isin((ends - starts)[~whole], [0, _COPY_TRAILER]).all():
            raise LogRecordsNotProcessed("a row of the log is too short for a message")
        starts, ends = starts[whole], ends[whole]
    start = starts + _ROW_HEADER
    lsn = np.ndarray((max(len(buffer) - 7, 0),), ">u8", buffer.data, strides=(1,))[starts + 6].astype(
        np.uint64
    )
    return MessageBlock(buffer, start, ends - start, lsn, buffer[start])


@dataclass(frozen=True, slots=True)
class RelationMessage:
    """A table's shape: oid, names, replica identity letter; name, type oid, type modifier of each column."""

    oid: int
    schema: str
    table: str
    replica_identity: int
    columns: tuple[tuple[str, int, int], ...]


def relation_message(data: bytes) -> RelationMessage:
    """Reads an R message."""
    oid = int.from_bytes(data[1:5], "big")
    schema, place = _string(data, 5)
    table, place = _string(data, place)
    replica_identity, count = struct.unpack_from(">BH", data, place)
    place += 3
    columns = []
    for _ in range(count):
        name, place = _string(data, place + 1)
        type_oid, typmod = struct.unpack_from(">Ii", data, place)
        place += 8
        columns.append((name, type_oid, typmod))
    if place != len(data):
        raise LogRecordsNotProcessed("the description of a table has another length than its columns")
    # An empty namespace is how pgoutput writes pg_catalog.
    return RelationMessage(oid, schema or "pg_catalog", table, replica_identity, tuple(columns))


@dataclass(frozen=True, slots=True)
class EmittedMessage:
    """What pg_logical_emit_message wrote."""

    transactional: bool
    prefix: str
    content: bytes


def emitted_message(data: bytes) -> EmittedMessage:
    """Reads an M message."""
    prefix, place = _string(data, 10)
    return EmittedMessage(bool(data[1] & 1), prefix, data[place + 4 :])


def _string(data: bytes, place: int) -> tuple[str, int]:
    end = data.index(0, place)
    return data[place:end].decode("utf-8", "backslashreplace"), end + 1
