"""Rows of one relation shape out of insert, update and delete messages, column by column.

An update's message has two tuples; the second begins where the first ends, so the tuples are walked in
two rounds, each column of all messages at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import LogRecordsNotProcessed
from engine.model.change import Operation
from engine.sources.postgres.columns import AS_BINARY, AS_TEXT, NULL, UNCHANGED, Values
from engine.sources.postgres.pgoutput import DELETE, KEY_ROW, NEW_ROW, OLD_ROW, UPDATE, MessageBlock

_TUPLE = 6
"""Letter, relation oid, and the letter that says which tuple follows."""

_COUNT = 2
"""Before the values of a tuple: how many they are."""


@dataclass(frozen=True, slots=True)
class Images:
    """m row images of n messages, m >= n: an update gives its old row, then its new row.

    message: for each image the index into the messages given; operation: uint8 as in RelationChanges.
    columns: for each column its m values. without_old: updates and deletes whose old row was not logged
    whole.
    """

    message: NDArray[np.intp]
    operation: NDArray[np.uint8]
    columns: list[Values]
    without_old: int


def images(block: MessageBlock, messages: NDArray[np.intp], column_count: int) -> Images:
    """Images of these I, U and D messages, all of one relation shape of ``column_count`` columns.

    An update without an old row (the table lacks REPLICA IDENTITY FULL) has NULL in its whole image 3.
    An old row of key columns only has NULL in the others. Values that an update left out because they
    are unchanged and TOASTed are taken from the old row; NULL where that doesn't know them either.
    Raises LogRecordsNotProcessed or IndexError where tuples do not fill their messages: then every value
    lies within its own.
    """
    # Before room is made for the values: each takes a byte of its message at least.
    whole = block.length[messages]
    if len(whole) and whole.min() < _TUPLE + _COUNT + column_count:
        raise _not_of_this_shape(column_count)
    kind = block.kind[messages]
    update = kind == UPDATE
    message = np.repeat(np.arange(len(messages)), 1 + update)
    last = np.cumsum(1 + update) - 1
    first = last - update
    operation = np.empty(len(message), np.uint8)
    operation[first] = np.where(kind == DELETE, Operation.DELETE, Operation.INSERT)
    operation[first[update]] = Operation.UPDATE_OLD
    operation[last[update]] = Operation.UPDATE_NEW

    start = block.start[messages]
    letter = block.buffer[start + _TUPLE - 1]
    if not ((letter == NEW_ROW) | (letter == OLD_ROW) | (letter == KEY_ROW)).all():
        raise LogRecordsNotProcessed("a change has neither an old row nor a new one")
    has_old = update & (letter != NEW_ROW)
    lone = update & ~has_old
    places = _Places(block.buffer, len(message), column_count)
    # First tuples: of inserts and deletes their only one, of updates the old row where there is one.
    leading = np.flatnonzero(~lone)
    ends = places.walk(first[leading], start[leading] + _TUPLE)
    end = np.zeros(len(messages), np.int64)
    end[leading] = ends
    second = np.where(has_old, end + 1, start + _TUPLE)
    if (block.buffer[end[has_old]] != NEW_ROW).any():
        raise _not_of_this_shape(column_count)
    end[update] = places.walk(last[update], second[update])
    if (end - start != whole).any():
        raise _not_of_this_shape(column_count)
    columns = [places.values(column) for column in range(column_count)]
    if update.any():
        columns = [_filled(values, last[update]) for values in columns]
    keys_only = letter == KEY_ROW
    return Images(message, operation, columns, int(np.count_nonzero(lone | keys_only)))


def _not_of_this_shape(column_count: int) -> LogRecordsNotProcessed:
    return LogRecordsNotProcessed(f"a change is no row of {column_count} columns")


class _Places:
    """Where the value of each column of each image is."""

    def __init__(self, buffer: NDArray[np.uint8], rows: int, columns: int) -> None:
        self._buffer = buffer
        self._heads = np.ndarray((len(buffer) - 7,), ">u8", buffer.data, strides=(1,))
        self._kind = np.full((columns, rows), NULL, np.uint8)
        self._offset = np.zeros((columns, rows), np.int64)
        self._length = np.zeros((columns, rows), np.int64)

    def walk(self, rows: NDArray[np.intp], place: NDArray[np.int64]) -> NDArray[np.int64]:
        """Notes the values of the tuples at ``place`` as ``rows``; returns where the tuples end."""
        # One gather for the number of values, the first one's letter and the length behind it.
        head = self._heads[place].astype(np.int64)
        if (head >> 48 != len(self._kind)).any():
            raise _not_of_this_shape(len(self._kind))
        head <<= 16
        position = place + _COUNT
        for column in range(len(self._kind)):
            if column:
                head = self._heads[position].astype(np.int64)
            kind = (head >> 56).astype(np.uint8)
            length = (head >> 24) & 0xFFFFFFFF
            offset = position + 5
            valued = (kind == AS_BINARY) | (kind == AS_TEXT)
            end = offset + length
            if valued.all():
                position = end
            elif (valued | (kind == NULL) | (kind == UNCHANGED)).all():
                position = np.where(valued, end, position + 1)
            else:
                raise LogRecordsNotProcessed("a value is of a kind that nobody knows")
            self._kind[column, rows] = kind
            self._offset[column, rows] = offset
            self._length[column, rows] = length
        return position

    def values(self, column: int) -> Values:
        return Values(self._buffer, self._kind[column], self._offset[column], self._length[column])


def _filled(values: Values, new_rows: NDArray[np.intp]) -> Values:
    """New rows' unchanged TOASTed values from the old rows, which stand right before them."""
    rows = new_rows[values.kind[new_rows] == UNCHANGED]
    if len(rows):
        for array in (values.kind, values.offset, values.length):
            array[rows] = array[rows - 1]
    return values
