"""cdc.lsn_time_mapping read from the lake's files: what cleanup asks of it, quickly and without Spark.

The same answers as `engine.query.lsn_functions.LsnTimeMapping` gives to the same version of the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from engine.lake.range_files import RangeFile, range_of_table, rows_of_range
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA, Lake
from engine.model.lsn import Lsn

_LSN, _TIME = "start_lsn", "tran_end_time"


class MappingFiles:
    """The mapping of one database up to ``high``, in the version of this moment; with None no file is read.

    Methods raise TableNotReadable, and what the file system raises where there is no table.
    """

    def __init__(self, lake: Lake, database: str, high: Lsn | None) -> None:
        self._high = high
        self._files: tuple[RangeFile, ...] = ()
        if high is not None:
            path = lake.lsn_time_mapping(database)
            self._files = range_of_table(path, _LSN, Lsn.ZERO, high, time=_TIME).files

    def map_lsn_to_time(self, lsn: Lsn | None) -> datetime | None:
        """When the transaction with this commit LSN ended, in UTC; None without such a row."""
        return None if lsn is None else self.times_of([lsn]).get(lsn)

    def times_of(self, lsns: Collection[Lsn]) -> dict[Lsn, datetime]:
        """When the transactions with these commit LSNs ended; those without a row are missing."""
        found: dict[Lsn, datetime] = {}
        wanted = {str(lsn): lsn for lsn in lsns if self._high is not None and lsn <= self._high}
        for file in self._files:
            inside = [lsn for text, lsn in wanted.items() if _may_hold(file, text)]
            if inside:
                for lsn, time in _rows(file, min(inside), max(inside)):
                    if lsn in wanted:
                        known = found.get(wanted[lsn])
                        found[wanted[lsn]] = time if known is None else max(known, time)
        return found

    def times_upto(self, lsns: Collection[Lsn]) -> dict[Lsn, datetime]:
        """When the last transaction up to each of these ended; those that have none are missing."""
        found = self.times_of(lsns)
        high = self._high or Lsn.ZERO
        rounded = self.last_upto([lsn for lsn in lsns if lsn not in found and lsn <= high])
        times = self.times_of([last for last in rounded.values() if last is not None])
        return found | {lsn: times[last] for lsn, last in rounded.items() if last in times}

    def first_of_time(self, lsn: Lsn) -> Lsn | None:
        """The smallest commit LSN of those that ended when this one did; None where this one has no row."""
        time = self.map_lsn_to_time(lsn)
        best: str | None = None
        for file in self._files:
            if time is None or (best is not None and file.least > best):
                break
            if file.latest is None or file.latest >= time:
                same = [each for each, ended in _rows(file, Lsn.ZERO, self._high or lsn) if ended == time]
                best = min([*same, *([] if best is None else [best])], default=None)
        return None if best is None else Lsn.parse(best)

    def last_upto(self, lsns: Collection[Lsn]) -> dict[Lsn, Lsn | None]:
        """The largest commit LSN up to each of these; None without one."""
        return {lsn: self._last_upto(lsn) for lsn in lsns}

    def first_since(self, time: datetime) -> Lsn | None:
        """The smallest commit LSN of those that ended at ``time`` or later; None without one."""
        best: str | None = None
        for file in self._files:
            if best is not None and file.least > best:
                break
            if file.latest is not None and file.latest < time:
                continue
            late = [lsn for lsn, ended in _rows(file, Lsn.ZERO, self._high or Lsn.ZERO) if ended >= time]
            best = min([*late, *([] if best is None else [best])], default=None)
        return None if best is None else Lsn.parse(best)

    def _last_upto(self, lsn: Lsn) -> Lsn | None:
        if self._high is None:
            return None
        top, best = min(lsn, self._high), ""
        for file in sorted(self._files, key=lambda each: each.least, reverse=True):
            if file.least > str(top) or (file.most is not None and file.most <= best):
                continue
            if file.most is not None and file.most <= str(top):
                best = max(best, file.most)
            else:
                best = max([best, *(each for each, _ in _rows(file, Lsn.ZERO, top))])
        return Lsn.parse(best) if best else None


def _may_hold(file: RangeFile, lsn: str) -> bool:
    return file.least <= lsn and (file.most is None or lsn <= file.most)


def _rows(file: RangeFile, low: Lsn, high: Lsn) -> Iterator[tuple[str, datetime]]:
    """Commit LSN and end time of a file's rows."""
    for batch in rows_of_range(file, LSN_TIME_MAPPING_SCHEMA, _LSN, low, high, [_LSN, _TIME]):
        yield from zip(batch[_LSN].to_pylist(), batch[_TIME].to_pylist(), strict=True)
