"""The merge rules of net changes over an Arrow table: `net_changes` for readers without Spark. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.change import COMMAND_ID, OPERATION, START_LSN, UPDATE_MASK, Operation

_ORDER = [(START_LSN, "ascending"), (COMMAND_ID, "ascending"), (OPERATION, "ascending")]


def net_rows(changes: pa.Table, key: Sequence[str], width: int, merge: bool, masks: bool) -> pa.Table:
    """One row for each key, its last one, with the net operation; keys that came and went are left out.

    changes: rows of a change table, all that there are of each key, in any order. key: columns that
    identify a row. width: bytes of a mask. merge: insert and update are one operation (5). masks: the
    union of a key's masks, else NULL. No order.
    """
    without_old = changes.filter(pc.not_equal(changes[OPERATION], int(Operation.UPDATE_OLD)))
    rows = without_old.sort_by(_ORDER)
    if not rows.num_rows:
        return rows
    number = key_numbers(rows, key)
    # Sorted by key, stable: each key's rows are neighbours and in log order.
    by_key = np.argsort(number, kind="stable")
    first = np.flatnonzero(np.diff(number[by_key], prepend=-1))
    last = np.append(first[1:], len(by_key)) - 1
    operations = rows[OPERATION].to_numpy()[by_key]
    existed, exists = operations[first] != Operation.INSERT, operations[last] != Operation.DELETE
    written = int(Operation.MERGE) if merge else np.where(existed, Operation.UPDATE_NEW, Operation.INSERT)
    net = np.where(exists, written, Operation.DELETE).astype(np.int32)
    found = rows.take(by_key[last])
    found = _replaced(found, OPERATION, pa.array(net))
    unions = _unions(rows[UPDATE_MASK], by_key, first, width) if masks else pa.nulls(len(last), pa.binary())
    return _replaced(found, UPDATE_MASK, unions).filter(pa.array(existed | exists))


def key_numbers(rows: pa.Table, key: Sequence[str]) -> np.ndarray:
    """For each row the number of its key: the same number means the same key."""
    frame = _key_frame(rows, key)
    numbers: np.ndarray = frame.groupby(list(frame.columns), sort=False, dropna=False).ngroup().to_numpy()
    return numbers


def key_shares(rows: pa.Table, key: Sequence[str], shares: int) -> np.ndarray:
    """For each row which of ``shares`` parts its key belongs to: the same in every process."""
    hashes = pd.util.hash_pandas_object(_key_frame(rows, key), index=False)
    owners: np.ndarray = (hashes % shares).to_numpy()
    return owners


def _key_frame(rows: pa.Table, key: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame({str(place): _comparable(rows[name]) for place, name in enumerate(key)})


def _comparable(column: pa.ChunkedArray) -> pd.Series:
    """The column's values such that equal ones, and no others, are equal in pandas, whatever their range."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64()).to_pandas()
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()).to_pandas()
    plain = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_binary,
        pa.types.is_string,
    )
    if any(is_of(kind) for is_of in plain):
        return column.to_pandas()
    return pd.Series([None if value is None else str(value) for value in column.to_pylist()], dtype=object)


def _unions(masks: pa.ChunkedArray, by_key: np.ndarray, first: np.ndarray, width: int) -> pa.Array:
    padded = b"".join((mask or b"").rjust(width, b"\0") for mask in masks.to_pylist())
    bits = np.frombuffer(padded, np.uint8).reshape(-1, width)[by_key]
    return pa.array([bytes(row) for row in np.bitwise_or.reduceat(bits, first, axis=0)], pa.binary())


def _replaced(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(name), values.cast(rows.schema.field(name).type))
