"""Change rows of a capture instance out of a piece of the log (reference/tables.md, cdc.<instance>_CT).

Pure: Arrow and numpy in, Arrow and numpy out, no loop over rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.capture.lsn_text import fixed_offsets, lsn_texts
from engine.capture.update_masks import changed_columns, full_masks, mask_bytes
from engine.errors import OldRowsMissing
from engine.lake.tables import change_table_schema
from engine.model.capture_instance import CaptureInstance
from engine.model.change import LEADING_COLUMNS, Operation
from engine.sources.base import LogPiece, LogTransactions, RelationChanges


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """Rows for one change table in log order: commits ascending, commands ascending within a commit.

    ``command_count`` counts source commands: an update is one, though it has two rows.
    """

    rows: pa.Table
    commits: NDArray[np.uint64]
    commands: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.commits)

    @property
    def command_count(self) -> int:
        """Source commands that the rows come from."""
        operation = self.rows.column(LEADING_COLUMNS.index("__$operation")).to_numpy()
        return int(np.count_nonzero(operation != Operation.UPDATE_OLD))


@dataclass(frozen=True, slots=True)
class Captured:
    """An instance that captures: transactions with ``after`` < commit position <= ``upto``."""

    instance: CaptureInstance
    after: int
    upto: int | None = None

    def takes(self, commits: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of these commit positions are the instance's."""
        taken = commits > np.uint64(self.after)
        return taken if self.upto is None else taken & (commits <= np.uint64(self.upto))


def change_rows(piece: LogPiece, captured: Captured) -> ChangeRows | None:
    """The instance's rows of this piece; None when there are none.

    Inserts and deletes give one row, updates a 3 and a 4 with the mask of the captured columns that
    changed; an update that changed none gives no row, one that changed the row identifier a 1 and a 2.
    A captured column that the log does not have (dropped) is NULL, one that is not captured is left out.
    Raises CapturedColumnChanged where a captured column has another type now.
    """
    commits = LogTransactions.of(piece.transactions).commit
    instance = captured.instance
    parts = [
        part
        for changes in piece.changes
        if changes.relation.source_object_id == instance.source_object_id
        and (part := _rows(changes, commits[changes.transaction], captured))
    ]
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    return ChangeRows(
        pa.concat_tables([part.rows for part in parts]),
        np.concatenate([part.commits for part in parts]),
        np.concatenate([part.commands for part in parts]),
    )


def _rows(changes: RelationChanges, commits: NDArray[np.uint64], captured: Captured) -> ChangeRows | None:
    instance = captured.instance
    if changes.without_old and captured.takes(commits).any():
        relation = changes.relation
        raise OldRowsMissing(changes.without_old, relation.schema, relation.table, instance.capture_instance)
    columns = _captured_columns(changes, instance)
    operation = changes.operation.astype(np.int32)
    before = np.flatnonzero(operation == Operation.UPDATE_OLD)
    changed = changed_columns(columns, before)
    masks = full_masks(len(operation), len(columns))
    _fill_in_updates(masks, operation, before, changed, instance)
    keep = captured.takes(commits)
    untouched = before[~changed.any(axis=1)]
    keep[untouched] = keep[untouched + 1] = False
    if not keep.any():
        return None
    rows = pa.Table.from_arrays(
        [
            lsn_texts(commits),
            pa.nulls(len(commits), pa.string()),
            lsn_texts(changes.position, changes.counter),
            pa.array(operation),
            _binary(masks),
            *columns,
            pa.array(changes.command),
        ],
        schema=change_table_schema(instance),
    )
    if keep.all():
        return ChangeRows(rows, commits, changes.command)
    return ChangeRows(rows.filter(pa.array(keep)), commits[keep], changes.command[keep])


def _fill_in_updates(
    masks: NDArray[np.uint8],
    operation: NDArray[np.int32],
    before: NDArray[np.intp],
    changed: NDArray[np.bool_],
    instance: CaptureInstance,
) -> None:
    """Sets the masks of updates; those of the row identifier become a delete and an insert."""
    identifier = np.isin(instance.column_names, instance.index_column_names)
    moved = changed[:, identifier].any(axis=1)
    kept = before[~moved]
    masks[kept] = masks[kept + 1] = mask_bytes(changed[~moved])
    operation[before[moved]] = Operation.DELETE
    operation[before[moved] + 1] = Operation.INSERT


def _captured_columns(changes: RelationChanges, instance: CaptureInstance) -> Sequence[pa.Array]:
    schema = change_table_schema(instance)
    types = schema.types[len(LEADING_COLUMNS) : -1]
    places = {column.name: number for number, column in enumerate(changes.relation.columns)}
    columns = []
    for column, name, wanted in zip(instance.columns, instance.source_names(), types, strict=True):
        place = None if name is None else places.get(name)
        if place is None or column.is_computed:
            # Dropped at the source, or generated there: NULL, as in the original.
            columns.append(pa.nulls(len(changes), wanted))
            continue
        columns.append(changes.images.column(place))
    return columns


def _binary(rows: NDArray[np.uint8]) -> pa.BinaryArray:
    count, width = rows.shape
    data = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.Array.from_buffers(pa.binary(), count, [None, fixed_offsets(count, width), data])
