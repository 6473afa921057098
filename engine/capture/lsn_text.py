"""LSN texts of many rows at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_WIDTH = 22
_PAIRS = np.frombuffer("".join(f"{byte:02X}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)


def lsn_texts(positions: NDArray[np.uint64], counters: NDArray[np.uint16] | None = None) -> pa.StringArray:
    """``str(Lsn.at(position, counter))`` of each row; counters are 0 where none are given."""
    count = len(positions)
    raw = np.zeros((count, 10), np.uint8)
    raw[:, :8] = positions.astype(">u8").view(np.uint8).reshape(count, 8)
    if counters is not None:
        raw[:, 8:] = counters.astype(">u2").view(np.uint8).reshape(count, 2)
    text = np.empty((count, _WIDTH), np.uint8)
    text[:, 0], text[:, 1] = ord("0"), ord("x")
    text[:, 2:] = _PAIRS[raw].reshape(count, 20)
    return pa.Array.from_buffers(pa.string(), count, [None, fixed_offsets(count, _WIDTH), pa.py_buffer(text)])


def fixed_offsets(count: int, width: int) -> pa.Buffer:
    """Offsets of ``count`` values that all have ``width`` bytes. OverflowError past 2 GiB."""
    if count * width > np.iinfo(np.int32).max:
        raise OverflowError(f"{count} values of {width} bytes do not fit one Arrow array")
    return pa.py_buffer(np.arange(0, (count + 1) * width, width, dtype=np.int32))
