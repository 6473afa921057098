"""Which captured columns an update changed, as masks, for many updates at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.model.mask import full_mask, mask_width

_BITS_OF = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


def changed_columns(columns: Sequence[pa.Array], before: NDArray[np.intp]) -> NDArray[np.bool_]:
    """For each update (row ``i`` before, row ``i + 1`` after) and column: does the value differ.

    Shape (updates, columns). NULL differs from every value but NULL; floats are compared by their
    bits, so NaN equals NaN and -0.0 differs from 0.0, as what is stored does.
    """
    changed = np.zeros((len(before), len(columns)), bool)
    if len(before):
        for number, column in enumerate(columns):
            changed[:, number] = _changed(column, before)
    return changed


def mask_bytes(changed: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """One mask a row; shape (updates, mask width). Ordinal 1 is the lowest bit of the last byte."""
    updates, columns = changed.shape
    bits = np.zeros((updates, mask_width(columns) * 8), bool)
    bits[:, bits.shape[1] - columns :] = changed[:, ::-1]
    return np.packbits(bits, axis=1)


def full_masks(rows: int, columns: int) -> NDArray[np.uint8]:
    """The mask of inserts and deletes for each row; shape (rows, mask width)."""
    return np.tile(np.frombuffer(full_mask(columns), np.uint8), (rows, 1))


def _changed(column: pa.Array, before: NDArray[np.intp]) -> NDArray[np.bool_]:
    if pa.types.is_nested(column.type):
        return _changed_nested(column, before)
    if bits := _BITS_OF.get(column.type):
        column = column.view(bits)
    # Every row against its next one: two slices cost nothing, gathering the updates' rows would.
    first, second = column.slice(0, len(column) - 1), column.slice(1)
    differs = _numpy(pc.fill_null(pc.not_equal(first, second), False))[before]
    if column.null_count:
        valid = _numpy(column.is_valid())
        differs |= valid[before] != valid[before + 1]
    return differs


def _changed_nested(column: pa.Array, before: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Arrow compares no lists: the texts of both values tell them apart, NaN and -0.0 included."""
    pairs = ((repr(column[row].as_py()), repr(column[row + 1].as_py())) for row in before.tolist())
    return np.fromiter((old != new for old, new in pairs), bool, len(before))


def _numpy(values: pa.BooleanArray) -> NDArray[np.bool_]:
    array: NDArray[np.bool_] = values.to_numpy(zero_copy_only=False)
    return array
