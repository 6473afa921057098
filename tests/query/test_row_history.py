"""The newest changes of a row, wherever its files begin and end."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa

from engine.lake.range_files import RangeFile
from engine.model.lsn import Lsn
from engine.query.row_history import row_history

SCHEMA = pa.schema(
    [
        ("__$start_lsn", pa.string()),
        ("__$seqval", pa.string()),
        ("__$operation", pa.int32()),
        ("__$update_mask", pa.binary()),
        ("id", pa.int32()),
        ("__$command_id", pa.int32()),
    ]
)


class File:
    """Inserts of row 1 at these positions of the log, and whether anybody has read them."""

    def __init__(self, *positions: int) -> None:
        texts = [str(Lsn.at(position)) for position in positions]
        self.file = RangeFile("", len(positions), min(texts), max(texts))
        self.was_read = False
        self._rows = [dict.fromkeys(SCHEMA.names, 1) | {"__$start_lsn": text} for text in texts]

    def rows(self):
        self.was_read = True
        rows = [row | {"__$seqval": row["__$start_lsn"], "__$update_mask": b""} for row in self._rows]
        yield pa.RecordBatch.from_pylist(rows, SCHEMA)


def history(count: int, *files: File) -> list[int]:
    asked = SimpleNamespace(
        instance=SimpleNamespace(column_names=("id",)), schema=SCHEMA, parts=lambda: list(files)
    )
    found = row_history(asked, {"id": 1}, count)
    return [Lsn.parse(text).position for text in found["__$start_lsn"].to_pylist()]


def test_a_file_that_begins_earlier_and_ends_later_is_read_too() -> None:
    assert history(2, File(1, 90), File(10, 20)) == [90, 20]


def test_files_that_are_older_than_what_is_wanted_are_left_alone() -> None:
    old, newer = File(1, 2), File(3, 4, 5)
    assert history(2, old, newer) == [5, 4]
    assert not old.was_read
    assert history(4, old, newer) == [5, 4, 3, 2]
