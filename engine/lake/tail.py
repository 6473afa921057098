"""The newest rows of a Delta table, straight from its log and files: milliseconds, no Spark job.

For what a page shows at every tick. Understood are our own appends, log entries that add files whose rows are
in log order, and commits that put others in the place of such files, as cleanup and compaction do. Where
that does not hold, callers ask Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.lake.log_entries import actions_of, entry_file
from engine.lake.parquet_files import local_folder
from engine.model.lsn import Lsn

MOST_ENTRIES = 5000
"""Log entries looked through at most, some hundred milliseconds; beyond them Spark is faster."""


class _LogIsCutError(Exception):
    """Entries that would be needed are no longer in the log, only in its checkpoint, or say too little."""


class TableTail:
    """Reads the ends of local tables. Remembers where each log ended, so its folder is listed once."""

    def __init__(self) -> None:
        self._versions: dict[str, int] = {}

    def newest(
        self, path: str, schema: pa.Schema, position: str, upto: Lsn, count: int, since: Lsn = Lsn.ZERO
    ) -> pa.Table | None:
        """The last ``count`` rows (or a few more) from ``since`` to ``upto``, both included, in log order.

        schema: the table's columns; position: the one with the rows' LSN. None where the table is not in
        a local folder, not there, or its log does not reach back far enough.
        """
        folder = local_folder(path)
        version = None if folder is None else self._version(folder)
        if folder is None or version is None:
            return None
        parts: list[pa.Table] = []
        try:
            for file in _files(folder, version, position, str(since), str(upto)):
                for rows in _row_groups(folder / file, schema, position, str(since), str(upto)):
                    parts.insert(0, rows)
                    if sum(len(part) for part in parts) >= count:
                        return pa.concat_tables(parts)
        except (_LogIsCutError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            # Also: a column gets another type right now, and files are ahead of what is published.
            return None
        return pa.concat_tables(parts) if parts else schema.empty_table()

    def version(self, path: str) -> int | None:
        """The newest version of the table; None where it is not in a local folder, or not there."""
        folder = local_folder(path)
        return None if folder is None else self._version(folder)

    def _version(self, folder: Path) -> int | None:
        """The newest version of the table; None without one."""
        version = self._versions.get(str(folder))
        if version is None or not entry_file(folder, version).exists():
            entries = (folder / "_delta_log").glob("*.json")
            version = max((int(p.stem) for p in entries if p.stem.isdecimal()), default=None)
        if version is None:
            return None
        while entry_file(folder, version + 1).exists():
            version += 1
        self._versions[str(folder)] = version
        return version


def _files(folder: Path, version: int, position: str, since: str, upto: str) -> Iterator[str]:
    """Data files, newest rows first, that are still in the table and may hold rows of the range."""
    rewritten: list[dict[str, Any]] = []  # by the lowest LSN, ascending
    for appended in _appended(folder, version, position, since, rewritten):
        # Rewriting moves no row past a row of another file: what lies above comes first.
        while rewritten and (
            appended is None or _order(rewritten[-1], position) > _order(appended, position)
        ):
            yield from _within(rewritten.pop(), position, since, upto)
        if appended is not None:
            yield from _within(appended, position, since, upto)


def _appended(
    folder: Path, version: int, position: str, since: str, rewritten: list[dict[str, Any]]
) -> Iterator[dict[str, Any] | None]:
    """Files that capture appended and that are still there, the newest first; None at the end.

    Files of commits that took the place of others, by compaction or cleanup, are put into ``rewritten``.
    """
    removed: set[str] = set()
    for number in range(version, -1, -1):
        if version - number >= MOST_ENTRIES:
            raise _LogIsCutError
        try:
            actions = actions_of(folder, number)
        except FileNotFoundError:
            raise _LogIsCutError from None
        gone = {action["remove"]["path"] for action in actions if "remove" in action}
        added = [action["add"] for action in actions if "add" in action]
        there = [file for file in added if file["path"] not in removed]
        removed |= gone
        if gone:
            if not all(_bound(file, "minValues", position, "") for file in there):
                raise _LogIsCutError  # nobody knows where such a file belongs
            rewritten += there
            rewritten.sort(key=lambda file: _order(file, position))
            continue
        yield from sorted(there, key=lambda file: _order(file, position), reverse=True)
        if added and max(_bound(file, "maxValues", position, since) for file in added) < since:
            break  # appends are in log order: what is older, rewritten or not, lies below the range too
    yield None


def _within(file: dict[str, Any], position: str, since: str, upto: str) -> Iterator[str]:
    if (
        _bound(file, "maxValues", position, since) >= since
        and _bound(file, "minValues", position, "") <= upto
    ):
        yield unquote(file["path"])


def _order(file: dict[str, Any], position: str) -> tuple[str, str]:
    return _bound(file, "minValues", position, ""), _bound(file, "maxValues", position, "")


def _bound(add: dict[str, Any], kind: str, position: str, unknown: str) -> str:
    """The least or greatest LSN of a file. With column mapping the one column that has bounds is the LSN."""
    bounds = json.loads(add.get("stats") or "{}").get(kind, {})
    if position not in bounds and len(bounds) == 1:
        return str(next(iter(bounds.values())))
    return str(bounds.get(position, unknown))


def _row_groups(file: Path, schema: pa.Schema, position: str, since: str, upto: str) -> Iterator[pa.Table]:
    """Rows of one file within the range, its last row group first.

    Columns are renamed by place: with column mapping their names in Parquet are not the table's.
    """
    with pq.ParquetFile(file) as parquet:
        for group in range(parquet.num_row_groups - 1, -1, -1):
            rows = parquet.read_row_group(group).rename_columns(schema.names)
            inside = pc.and_(pc.greater_equal(rows[position], since), pc.less_equal(rows[position], upto))
            yield rows.filter(inside).cast(schema)
