"""Values of one column, all rows at once: from places in a message buffer to an Arrow array.

pgoutput sends a value in the type's binary form where it has one, else as text. Fixed-width forms are
gathered by numpy, texts taken by Arrow without a Python object a value. What numpy can't read (ranges,
intervals, a text where binary was hoped for) is converted by the server itself (`ServerValues`): the
exact path, at the price of one round trip a column of a piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from struct import Struct
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.errors import LogRecordsNotProcessed
from engine.sources.postgres.types import ColumnType, Form

NULL, UNCHANGED, AS_TEXT, AS_BINARY = ord("n"), ord("u"), ord("t"), ord("b")

Replaced = Callable[[str, int], None]
"""Called with (what was done, how many values) when the lake can't hold what the log says."""

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Values:
    """Rows of one column: ``kind`` as in a pgoutput tuple, and where the bytes are.

    buffer: bytes; kind: uint8; offset, length: int64, meaningless where kind is NULL.
    """

    buffer: Bytes
    kind: Bytes
    offset: Places
    length: Places

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Rows that have a value."""
        present: NDArray[np.bool_] = (self.kind == AS_BINARY) | (self.kind == AS_TEXT)
        return present


class ServerValues(Protocol):
    """The server's own conversion of values between their binary form and their text."""

    def texts(self, column: ColumnType, values: list[bytes], replaced: Replaced) -> list[bytes]:
        """The output function's text (UTF-8) of values in binary form.

        ``replaced`` is told of those that got another text, as `Decoding.replaced` is.
        """
        ...

    def binaries(self, column: ColumnType, texts: list[bytes]) -> list[bytes]:
        """The binary form of values given as text.

        Of an array whose elements the lake stores as text: that of the array of its elements' texts,
        of the same dimensions and bounds.
        """
        ...


@dataclass(frozen=True, slots=True)
class Decoding:
    """What decoding needs besides the bytes.

    valid_text: whether texts are known to be UTF-8; False for databases in SQL_ASCII.
    """

    server: ServerValues
    replaced: Replaced
    valid_text: bool = True


def column_array(column: ColumnType, values: Values, decoding: Decoding) -> pa.Array:
    """The Arrow array (``column.arrow_type``) of these values.

    They lie within ``values.buffer``. Raises LogRecordsNotProcessed, or what numpy and Arrow raise, where
    they are no values of the type.
    """
    if column.arrow_type == pa.string():
        return _strings(column, values, decoding)
    if column.form is Form.ARRAY:
        return _array(column, values, decoding)
    return _DECODERS[column.form](column, _binary_only(column, values, decoding), decoding)


# Texts


def _strings(column: ColumnType, values: Values, decoding: Decoding) -> pa.Array:
    binary = values.kind == AS_BINARY
    if column.form is Form.UUID and not np.any(values.kind == AS_TEXT):
        _check_lengths(column, values, 16)
        return _uuids(values)
    if column.form is Form.JSONB:
        if (values.length[binary] < 1).any():
            raise _no_value(column)
        values = Values(values.buffer, values.kind, values.offset + binary, values.length - binary)
    elif column.form is not Form.TEXT and binary.any():
        rows = np.flatnonzero(binary)
        texts = decoding.server.texts(column, _slices(values, rows), decoding.replaced)
        values = _replace(values, rows, AS_TEXT, texts)
    if not decoding.valid_text:
        values = _repaired(values, decoding)
        return _taken(values, pa.string())
    texts = _taken(values, pa.string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        # The server does not look at what it has: text that is none would break every reader of the lake.
        return _taken(_repaired(values, decoding), pa.string())
    return texts


def _taken(values: Values, arrow_type: pa.DataType) -> pa.Array:
    """Variable-width values copied out of the buffer by one Arrow ``take``.

    Even elements of the array over the whole buffer are our values, odd ones what lies between.
    """
    present, rows = values.present, len(values)
    bounds = np.zeros(2 * rows + 1, np.int32)
    bounds[0:-1:2] = np.where(present, values.offset, 0)
    bounds[1::2] = np.where(present, values.offset + values.length, 0)
    bounds[-1] = len(values.buffer)
    whole = pa.Array.from_buffers(
        arrow_type, 2 * rows, [None, pa.py_buffer(bounds), pa.py_buffer(values.buffer)]
    )
    indices = pa.Array.from_buffers(
        pa.int32(), rows, [_validity(present), pa.py_buffer(np.arange(0, 2 * rows, 2, dtype=np.int32))]
    )
    return whole.take(indices)


def _repaired(values: Values, decoding: Decoding) -> Values:
    """Bytes that are no UTF-8 written as ``\\xNN``: Arrow and Delta hold text only as UTF-8."""
    rows = np.flatnonzero(values.present)
    pieces = _slices(values, rows)
    texts = [piece.decode("utf-8", "backslashreplace").encode() for piece in pieces]
    changed = sum(before != after for before, after in zip(pieces, texts, strict=True))
    if not changed:
        return values
    decoding.replaced("bytes that are not UTF-8 written as \\xNN", changed)
    return _replace(values, rows, AS_TEXT, texts)


_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint8).reshape(256, 2)
_UUID_PLACES = np.array([place for place in range(36) if place not in (8, 13, 18, 23)])


def _uuids(values: Values) -> pa.Array:
    present = values.present
    places = np.where(present, values.offset, 0)[:, None] + np.arange(16)
    texts = np.full((len(values), 36), ord("-"), np.uint8)
    texts[:, _UUID_PLACES] = _HEX[values.buffer.take(places, mode="clip")].reshape(len(values), 32)
    bounds = np.arange(0, 36 * len(values) + 1, 36, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(values), [_validity(present), pa.py_buffer(bounds), pa.py_buffer(texts)]
    )


# Fixed width


def _no_value(column: ColumnType) -> LogRecordsNotProcessed:
    return LogRecordsNotProcessed(f"a value of type {column.source_type} has a length that none can have")


def _check_lengths(column: ColumnType, values: Values, width: int) -> None:
    """Raises LogRecordsNotProcessed unless every value has ``width`` bytes."""
    others = values.length != width
    if others.any() and (others & values.present).any():
        raise _no_value(column)


def _gather(values: Values, width: int, at: int = 0) -> NDArray[Any]:
    """Big-endian integers of ``width`` bytes at ``offset + at``, native int; 0 where there is no value."""
    present = values.present
    if present.all():
        return _integers(values.buffer, values.offset + at, width)
    numbers = _integers(values.buffer, np.where(present, values.offset + at, 0), width)
    numbers[~present] = 0
    return numbers


def _integers(buffer: Bytes, places: Places, width: int) -> NDArray[Any]:
    if len(buffer) < width:
        return np.zeros(len(places), f"i{width}")
    overlapping = np.ndarray((len(buffer) - width + 1,), f">i{width}", buffer.data, strides=(1,))
    return overlapping[places].astype(f"i{width}")


def _fixed(values: Values, numbers: NDArray[Any], arrow_type: pa.DataType) -> pa.Array:
    buffers = [_validity(values.present), pa.py_buffer(np.ascontiguousarray(numbers))]
    return pa.Array.from_buffers(arrow_type, len(values), buffers)


def _validity(present: NDArray[np.bool_]) -> pa.Buffer | None:
    if present.all():
        return None
    return pa.py_buffer(np.packbits(present, bitorder="little"))


def _integer(width: int) -> Callable[[ColumnType, Values, Decoding], pa.Array]:
    def decode(column: ColumnType, values: Values, decoding: Decoding) -> pa.Array:
        _check_lengths(column, values, width)
        return _fixed(values, _gather(values, width), column.arrow_type)

    return decode


def _boolean(column: ColumnType, values: Values, decoding: Decoding) -> pa.Array:
    _check_lengths(column, values, 1)
    bits = np.packbits(_gather(values, 1) != 0, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [_validity(values.present), pa.py_buffer(bits)])


# PostgreSQL counts from 2000-01-01; the lake holds the years 0001 to 9999.
_DAYS_TO_2000 = 10957
_FIRST_DAY, _LAST_DAY = -730119, 2921939
_DAY = 86_400_000_000


def _date(column: ColumnType, values: Values, decoding: Decoding) -> pa.Array:
    _check_lengths(column, values, 4)
    days = _within(_gather(values, 4), _FIRST_DAY, _LAST_DAY, decoding)
    return _fixed(values, days + np.int32(_DAYS_TO_2000), column.arrow_type)


def _timestamp(column: ColumnType, values: Values, decoding: Decoding) -> pa.Array:
    _check_lengths(column, values, 8)
    microseconds = _within(_gather(values, 8), _FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1, decoding)
    return _fixed(values, microseconds + np.int64(_DAYS_TO_2000 * _DAY), column.arrow_type)


def _within(numbers: NDArray[Any], first: int, last: int, decoding: Decoding) -> NDArray[Any]:
    outside = int(np.count_nonzero((numbers < first) | (numbers > last)))
    if not outside:
        return numbers
    decoding.replaced("infinity or a year outside 0001 to 9999 stored as the nearest the lake holds", outside)
    clipped: NDArray[Any] = np.clip(numbers, first, last)
    return clipped


def _bytes(column: ColumnType, values: Values, decoding: Decoding) -> pa.Array:
    return _taken(values, pa.binary())


# Decimals

_NEGATIVE, _NAN = 0x4000, 0xC000
_MOST_DIGITS = 16
_POWERS = 10 ** np.arange(19, dtype=np.int64)


def _decimal(column: ColumnType, values: Values, decoding: Decoding) -> pa.Array:
    """Base-10000 digits to 128-bit integers: by int64 arithmetic where that can't overflow, else exactly."""
    header = _gather(values, 8).view(np.uint64)
    digits = (header >> np.uint64(48)).astype(np.int64)
    weight = (header >> np.uint64(32)).astype(np.uint16).view(np.int16).astype(np.int64)
    sign = (header >> np.uint64(16)).astype(np.uint16)
    if ((values.length != 8 + 2 * digits) & values.present).any():
        raise _no_value(column)
    # Digits that no such column has are read one by one too: the steps below are as many as the most has.
    small = (digits == 0) | ((digits <= _MOST_DIGITS) & (4 * (weight + 1) + column.scale <= 18))
    unscaled = np.zeros((len(values), 2), np.int64)
    unscaled[:, 0] = _small_decimals(values, np.where(small, digits, 0), weight, column.scale)
    np.negative(unscaled[:, 0], out=unscaled[:, 0], where=sign == _NEGATIVE)
    unscaled[:, 1] = unscaled[:, 0] >> 63
    special = sign >= _NAN
    for row in np.flatnonzero((~small | special) & values.present):
        number = _exact_decimal(values, int(row), column)
        unscaled[row] = np.frombuffer(number.to_bytes(16, "little", signed=True), np.int64)
    if special.any():
        decoding.replaced(f"NaN stored as the largest {column.lake_type}", int(np.count_nonzero(special)))
    return _fixed(values, unscaled, column.arrow_type)


def _small_decimals(values: Values, digits: Places, weight: Places, scale: int) -> NDArray[np.int64]:
    total = np.zeros(len(values), np.int64)
    last = len(values.buffer) - 2
    for index in range(int(digits.max(initial=0))):
        places = np.minimum(values.offset + (8 + 2 * index), last)
        digit = np.where(index < digits, _integers(values.buffer, places, 2), 0).astype(np.int64)
        exponent = 4 * (weight - index) + scale
        total += digit * _POWERS[np.clip(exponent, 0, 18)] // _POWERS[np.clip(-exponent, 0, 18)]
    return total


def _exact_decimal(values: Values, row: int, column: ColumnType) -> int:
    """The unscaled integer of one value of any size; NaN is the largest of the column's precision."""
    start = int(values.offset[row])
    header = values.buffer[start : start + 8].view(">u2")
    count, weight, sign = int(header[0]), int(header[1].astype(np.int16)), int(header[2])
    if sign >= _NAN:
        return int(10**column.precision - 1)
    number = 0
    for digit in values.buffer[start + 8 : start + 8 + 2 * count].view(">u2").tolist():
        number = number * 10000 + digit
    exponent = 4 * (weight - count + 1) + column.scale
    number = number * int(10**exponent) if exponent >= 0 else number // int(10**-exponent)
    return -number if sign == _NEGATIVE else number


# Arrays


def _array(column: ColumnType, values: Values, decoding: Decoding) -> pa.Array:
    """Lists of the element's values. More dimensions than one are flattened in storage order."""
    assert column.element is not None
    # The server gives arrays always in one of both forms: an array type has a binary form whatever its
    # element has, and binary was either asked for or not.
    came_as_text = bool(np.any(values.kind == AS_TEXT))
    values = _binary_only(column, values, decoding)
    dimensions = _gather(values, 4).astype(np.int64)
    counts, first = _array_sizes(column, values, dimensions)
    if several := int(np.count_nonzero(dimensions > 1)):
        decoding.replaced("array of several dimensions stored as one list", several)
    if shifted := _shifted(values, dimensions):
        decoding.replaced("array that does not begin at 1 stored without its subscripts", shifted)
    text_elements = came_as_text and column.element.arrow_type == pa.string()
    elements, ends = _elements(values.buffer, counts, first, AS_TEXT if text_elements else AS_BINARY)
    if ((ends != values.offset + values.length) & values.present).any():
        raise _no_value(column)
    bounds = np.zeros(len(values) + 1, np.int32)
    np.cumsum(counts, out=bounds[1:])
    child = column_array(column.element, elements, decoding)
    return pa.Array.from_buffers(
        column.arrow_type,
        len(values),
        [_validity(values.present), pa.py_buffer(bounds)],
        children=[child],
    )


_MOST_DIMENSIONS = 6
_MOST_ELEMENTS = 2**31


def _array_sizes(column: ColumnType, values: Values, dimensions: Places) -> tuple[Places, Places]:
    """Elements of each array and where they begin: after the header and 8 bytes a dimension.

    Raises LogRecordsNotProcessed where an array has not room for its elements: before any is made for them.
    """
    counts = np.zeros(len(values), np.int64)
    room = values.length - 12 - 8 * dimensions
    if (((dimensions < 0) | (dimensions > _MOST_DIMENSIONS) | (room < 0)) & values.present).any():
        raise _no_value(column)
    one = np.flatnonzero(dimensions == 1)
    counts[one] = _integers(values.buffer, values.offset[one] + 12, 4)
    for row in np.flatnonzero(dimensions > 1):
        places = values.offset[row] + 12 + 8 * np.arange(dimensions[row])
        counts[row] = min(prod(_integers(values.buffer, places, 4).tolist()), _MOST_ELEMENTS)
    if (((counts < 0) | (4 * counts > room)) & values.present).any():
        raise _no_value(column)
    return counts, values.offset + 12 + 8 * dimensions


def _shifted(values: Values, dimensions: Places) -> int:
    """How many arrays have a lower bound other than 1 in any dimension."""
    shifted = np.zeros(len(values), np.bool_)
    for dimension in range(int(dimensions.max(initial=0))):
        rows = np.flatnonzero(dimensions > dimension)
        shifted[rows] |= _integers(values.buffer, values.offset[rows] + (16 + 8 * dimension), 4) != 1
    return int(np.count_nonzero(shifted))


_FEW_ARRAYS = 16
"""A step of numpy costs as much as so many elements in Python: one array of a million took 18 s."""


def _walked(buffer: Bytes, place: int, count: int) -> tuple[list[int], list[int], int]:
    """Where ``count`` elements of one array are, the first's length at ``place``, and where the last ends."""
    offsets, lengths = [0] * count, [0] * count
    data, size = buffer.data, Struct(">i")
    for index in range(count):
        (length,) = size.unpack_from(data, place)
        offsets[index], lengths[index] = place + 4, length
        place += 4 + max(length, 0)
    return offsets, lengths, place


def _elements(buffer: Bytes, counts: Places, first: Places, form: int) -> tuple[Values, Places]:
    """The elements, and where each array ends.

    Walks all arrays in step, their k-th elements together; the last few one by one.
    """
    total = int(counts.sum())
    starts = np.cumsum(counts) - counts
    offset, length = np.zeros(total, np.int64), np.zeros(total, np.int64)
    rows, places = np.flatnonzero(counts), first.copy()
    step = 0
    while len(rows) > _FEW_ARRAYS:
        size = _integers(buffer, places[rows], 4).astype(np.int64)
        offset[starts[rows] + step] = places[rows] + 4
        length[starts[rows] + step] = size
        places[rows] += 4 + np.maximum(size, 0)
        step += 1
        rows = rows[counts[rows] > step]
    for row in rows.tolist():
        run = slice(int(starts[row]) + step, int(starts[row] + counts[row]))
        offset[run], length[run], places[row] = _walked(buffer, int(places[row]), run.stop - run.start)
    kind = np.where(length < 0, NULL, form).astype(np.uint8)
    return Values(buffer, kind, offset, length), places


_DECODERS: dict[Form, Callable[[ColumnType, Values, Decoding], pa.Array]] = {
    Form.INT16: _integer(2),
    Form.INT32: _integer(4),
    Form.INT64: _integer(8),
    Form.FLOAT32: _integer(4),
    Form.FLOAT64: _integer(8),
    Form.BOOLEAN: _boolean,
    Form.DATE: _date,
    Form.TIMESTAMP: _timestamp,
    Form.DECIMAL: _decimal,
    Form.BYTES: _bytes,
}


# The exact path


def _binary_only(column: ColumnType, values: Values, decoding: Decoding) -> Values:
    """Values that came as text brought to the binary form, which the decoders read."""
    rows = np.flatnonzero(values.kind == AS_TEXT)
    if not len(rows):
        return values
    texts = _slices(values, rows)
    if column.form is Form.BYTES:
        # SESSION_SETTINGS ask for \x and hex digits.
        return _replace(values, rows, AS_BINARY, [bytes.fromhex(text[2:].decode()) for text in texts])
    return _replace(values, rows, AS_BINARY, decoding.server.binaries(column, texts))


def _slices(values: Values, rows: NDArray[np.intp]) -> list[bytes]:
    buffer, ends = values.buffer.data, values.offset + values.length
    bounds = zip(values.offset[rows].tolist(), ends[rows].tolist(), strict=True)
    return [bytes(buffer[start:end]) for start, end in bounds]


def _replace(values: Values, rows: NDArray[np.intp], kind: int, pieces: list[bytes]) -> Values:
    """The same values with other bytes in ``rows``; all bytes move when any stay where they were."""
    others = np.flatnonzero(values.present)
    others = others[~np.isin(others, rows)]
    kept = _slices(values, others)
    lengths = np.fromiter(map(len, pieces + kept), np.int64, len(pieces) + len(kept))
    offset, length, kinds = np.zeros_like(values.offset), np.zeros_like(values.length), values.kind.copy()
    order = np.concatenate([rows, others])
    offset[order] = np.cumsum(lengths) - lengths
    length[order] = lengths
    kinds[rows] = kind
    # Never empty: gathering reads place 0 for rows without a value.
    buffer = np.frombuffer(b"".join([*pieces, *kept, bytes(8)]), np.uint8)
    return Values(buffer, kinds, offset, length)
