"""The files of a table of custom_snapshots by the day they were taken, and their rows, without Spark."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import repeat
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from engine.collector.ranges import HistoryRange
from engine.collector.versions import BEGUN, Part
from engine.collector.views import CollectedView
from engine.errors import QueryFailed
from engine.lake.parquet_files import local_folder
from engine.lake.table_name import readable_name

_READERS = 2
"""Days that are read at the same time; as many again may wait to be looked through."""
_PLAIN = 1
"""The version of Delta's protocol in which a file holds what its Parquet says."""


@dataclass(frozen=True, slots=True)
class Day:
    """Files of the snapshots of one day, of all sets.

    latest_before: the latest begin of a session that days before it have; None where nobody knows.
    """

    date: date
    files: tuple[str, ...]
    latest_before: datetime | None


def days_of(path: str, asked: HistoryRange) -> Sequence[Day] | None:
    """Days that may have sessions of a range, the newest first.

    None where only Spark will do: the table is in no folder of this machine, not there, or has features.
    """
    found = _added(path)
    return None if found is None else _by_day(*found, asked)


def files_by_day(path: str, collection_set_id: int) -> Mapping[date, Sequence[str]] | None:
    """The files that a set has of each day; None where only Spark will do."""
    if (found := _added(path)) is None:
        return None
    added, folder = found
    files: defaultdict[date, list[str]] = defaultdict(list)
    columns = ("path", "partition.snapshot_date", "partition.collection_set_id")
    for file, day, number in zip(*(added[name].to_pylist() for name in columns), strict=True):
        if number == collection_set_id:
            files[day].append(str(folder / unquote(file)))
    return files


def _added(path: str) -> tuple[pa.Table, Path] | None:
    """The ``add`` actions of the newest version, and the table's folder."""
    folder = local_folder(path)
    if folder is None:
        return None
    try:
        with readable_name(path) as name:
            table = DeltaTable(name)
            if table.protocol().min_reader_version > _PLAIN:
                return None
            return pa.table(table.get_add_actions(flatten=True)), folder
    except DeltaError:
        return None


def _by_day(added: pa.Table, folder: Path, asked: HistoryRange) -> Sequence[Day]:
    files: defaultdict[date, list[str]] = defaultdict(list)
    latest: dict[date, datetime | None] = {}
    columns = ("path", "partition.snapshot_date", f"max.{BEGUN}")
    values = (added[name].to_pylist() if name in added.column_names else repeat(None) for name in columns)
    for file, day, begun in zip(*values, strict=False):
        if asked.first_day <= day <= (asked.last_day or date.max):
            files[day].append(str(folder / unquote(file)))
            known = latest.setdefault(day, begun)
            latest[day] = None if known is None or begun is None else max(known, begun)
    found: list[Day] = []
    before: datetime | None = datetime.min.replace(tzinfo=UTC)
    for day in sorted(files):
        found.insert(0, Day(day, tuple(files[day]), before))
        begun = latest[day]
        # Delta's log has bounds cut to milliseconds.
        before = None if before is None or begun is None else max(before, begun + timedelta(milliseconds=1))
    return found


def rows_of_days(
    days: Sequence[Day], view: CollectedView, columns: Sequence[str], asked: HistoryRange
) -> Iterator[Part]:
    """Rows that count, of the range's database or all, a day at a time; ``database_name`` is a dictionary.

    Days are read ahead of whoever looks through them. Raises QueryFailed.
    """
    ahead: deque[tuple[Day, Future[pa.Table]]] = deque()
    with ThreadPoolExecutor(_READERS, thread_name_prefix="history") as readers:
        for day in days:
            ahead.append((day, readers.submit(_rows, day, view, columns, asked)))
            if len(ahead) > _READERS:
                first, rows = ahead.popleft()
                yield Part(rows.result(), first.latest_before)
        for left, rows in ahead:
            yield Part(rows.result(), left.latest_before)


def _rows(day: Day, view: CollectedView, columns: Sequence[str], asked: HistoryRange) -> pa.Table:
    needed = list(dict.fromkeys([*columns, "database_name", "snapshot_id"]))
    schema = _schema(view, needed)
    parts = []
    for file in day.files:
        try:
            rows = _read(file, needed)
        except (OSError, pa.ArrowException) as error:
            raise QueryFailed(f"{file} cannot be read: {error}") from error
        parts.append(_that_count(rows, asked).cast(schema))
    return pa.concat_tables(parts).select(list(columns))


def _read(file: str, columns: list[str]) -> pa.Table:
    # Spark's files have times in twelve bytes, of which Arrow would make nanoseconds.
    unit = "us"
    with pq.ParquetFile(file, read_dictionary=["database_name"], coerce_int96_timestamp_unit=unit) as parquet:
        return parquet.read(columns).select(columns)


def _schema(view: CollectedView, columns: Sequence[str]) -> pa.Schema:
    known = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [(name, known if name == "database_name" else view.schema.field(name).type) for name in columns]
    )


def _that_count(rows: pa.Table, asked: HistoryRange) -> pa.Table:
    if asked.database is not None:
        rows = rows.filter(pc.equal(rows["database_name"], asked.database))
    if asked.not_counted:
        not_whole = pa.array(asked.not_counted, rows["snapshot_id"].type)
        rows = rows.filter(pc.invert(pc.is_in(rows["snapshot_id"], not_whole)))
    return rows
