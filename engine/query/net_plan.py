"""Which rows of which files are net changes.

Found from the few columns that decide it, read once: whoever wants the rows then reads each file once, and
takes them out of it. A key's changes lie in any file, so shares by key would read every file for each share.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.change import OPERATION, UPDATE_MASK, Operation
from engine.query.net_in_arrow import key_shares, net_rows

ROWS_AT_ONCE = 2_000_000
"""Changes whose deciding columns are held at once, about; of more, parts by key wait in temporary files."""
_FILE, _ROW = "file", "row"
_NOTHING = pa.schema(
    {_FILE: pa.int32(), _ROW: pa.int64(), OPERATION: pa.int32(), UPDATE_MASK: pa.binary()}
).empty_table()

ReadFile = Callable[[int], Iterator[pa.RecordBatch]]
"""Reads the deciding columns of a file's rows in the range, given the file's number."""


@dataclass(frozen=True, slots=True)
class NetRows:
    """The rows of one file that are net changes. Can be pickled.

    places: their numbers among the file's rows in the range, ascending; operations: net ones, for each;
    masks: unions of the masks of a key's changes, for each, or None where they are not asked for.
    """

    file: int
    places: np.ndarray
    operations: pa.Array
    masks: pa.Array | None

    def of_batch(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Those of a batch of the file's rows in the range, which begins with row ``first``."""
        low, high = np.searchsorted(self.places, [first, first + batch.num_rows])
        found = batch.take(pa.array(self.places[low:high] - first))
        masks = pa.nulls(high - low, pa.binary()) if self.masks is None else self.masks[low:high]
        for name, values in ((OPERATION, self.operations[low:high]), (UPDATE_MASK, masks)):
            place = found.schema.get_field_index(name)
            if place >= 0:
                found = found.set_column(place, found.schema.field(place), values)
        return found


def net_plan(
    read: ReadFile,
    file_rows: Sequence[int],
    key: Sequence[str],
    width: int,
    *,
    merge: bool,
    masks: bool,
    at_once: int = ROWS_AT_ONCE,
) -> list[NetRows]:
    """The net changes of files that have so many rows, file by file; files without any are left out.

    read: gives ``__$start_lsn``, ``__$command_id``, ``__$operation``, the columns of ``key`` (called neither
    ``file`` nor ``row``) and, for ``masks``, ``__$update_mask``. width, merge, masks: as in
    `net_rows`. at_once: see ROWS_AT_ONCE.
    """
    parts = max(1, -(-sum(file_rows) // at_once))
    found = [_NOTHING] + [
        net_rows(rows, key, width, merge=merge, masks=masks).select([_FILE, _ROW, OPERATION, UPDATE_MASK])
        for rows in _by_key(_numbered(read, len(file_rows), masks), key, parts)
    ]
    rows = pa.concat_tables(found).sort_by([(_FILE, "ascending"), (_ROW, "ascending")]).combine_chunks()
    return list(_by_file(rows, masks))


def _numbered(read: ReadFile, files: int, masks: bool) -> Iterator[pa.Table]:
    """Rows without operation 3, each with its file and its number there."""
    for file in range(files):
        first = 0
        for batch in read(file):
            rows = pa.Table.from_batches([batch])
            numbers = np.arange(first, first + batch.num_rows, dtype=np.int64)
            rows = rows.append_column(_FILE, pa.array(np.full(batch.num_rows, file, np.int32)))
            rows = rows.append_column(_ROW, pa.array(numbers))
            if not masks:
                rows = rows.append_column(UPDATE_MASK, pa.nulls(batch.num_rows, pa.binary()))
            first += batch.num_rows
            yield rows.filter(pc.not_equal(rows[OPERATION], int(Operation.UPDATE_OLD)))


def _by_key(rows: Iterator[pa.Table], key: Sequence[str], parts: int) -> Iterator[pa.Table]:
    """The same rows in so many parts, all changes of a key in one."""
    if parts == 1:
        yield from _together(list(rows))
        return
    with tempfile.TemporaryDirectory(prefix="highwater-net-") as folder:
        paths = [Path(folder, str(part)) for part in range(parts)]
        with ExitStack() as stack:
            writers: list[pa.RecordBatchStreamWriter] = []
            for batch in rows:
                if not writers:
                    made = (pa.ipc.new_stream(str(path), batch.schema) for path in paths)
                    writers = [stack.enter_context(writer) for writer in made]
                owners = key_shares(batch, key, parts)
                for part, writer in enumerate(writers):
                    writer.write_table(batch.filter(pa.array(owners == part)))
        for path in paths:
            if path.exists():
                with pa.ipc.open_stream(str(path)) as stream:
                    yield from _together([stream.read_all()])


def _together(tables: list[pa.Table]) -> Iterator[pa.Table]:
    if tables:
        yield pa.concat_tables(tables)


def _by_file(rows: pa.Table, masks: bool) -> Iterator[NetRows]:
    files = rows[_FILE].to_numpy()
    ends = np.flatnonzero(np.diff(files, append=-1)) + 1
    for start, end in pairwise([0, *ends]):
        part = rows.slice(start, end - start)
        yield NetRows(
            int(files[start]),
            part[_ROW].to_numpy().astype(np.int32),
            part[OPERATION].combine_chunks(),
            part[UPDATE_MASK].combine_chunks() if masks else None,
        )
