"""What was collected, as series over a range: what is not known is None, never zero. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise

from dashboard import format as fmt
from dashboard.sessions import align, align_up, bucket_seconds
from engine.model.collection import BreakKind, HistoryBreak, HistoryPoint

SPANS = {
    "24h": timedelta(hours=24),
    "3d": timedelta(days=3),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
COMPARED: Mapping[str, timedelta | None] = {
    "": None,
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "4 weeks": timedelta(days=28),
}
"""How far back the compared period lies; with `PERIOD` it is the range's own length."""
PERIOD = "period"


@dataclass(frozen=True, slots=True)
class Asked:
    """A range in whole stretches of ``step`` seconds, and how far back it is compared with."""

    database: str
    start: datetime
    end: datetime
    step: int
    back: timedelta | None = None

    @property
    def starts(self) -> list[datetime]:
        """Where its stretches begin."""
        count = int((self.end - self.start).total_seconds()) // self.step
        return [self.start + timedelta(seconds=self.step * number) for number in range(count)]


def asked_range(database: str, start: datetime, end: datetime, compared: str | None) -> Asked:
    """The range in whole stretches, of at most some hundred; ValueError where it ends before it begins."""
    if end <= start:
        raise ValueError("it ends before it begins")
    step = bucket_seconds(end - start)
    first, last = align(start, step), align_up(end - timedelta(microseconds=1), step)
    back = end - start if compared == PERIOD else COMPARED.get(compared or "")
    if back is not None:  # in whole stretches, so that both periods have the same ones
        back = timedelta(seconds=max(1, round(back.total_seconds() / step)) * step)
    return Asked(database, first, last, step, back)


def parse_range(text: str, now: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Both ends of a range that was typed: two times, or one and now; the second may leave out its date.

    ValueError says the forms.
    """
    start, *end = _BETWEEN.split(text.strip(), maxsplit=1)
    first = fmt.parse_moment(start, now, zone)
    if not end or not end[0]:
        last = now
    elif _TIME_OF_DAY.match(end[0]):
        last = fmt.parse_moment(f"{start.strip()[:10]} {end[0]}", now, zone)
    else:
        last = fmt.parse_moment(end[0], now, zone)
    if last <= first:
        raise ValueError("The range ends before it begins")
    return first, last


_BETWEEN = re.compile(r"\s*(?:…|\.{2,3}|\sto\s)\s*")
_TIME_OF_DAY = re.compile(r"\d{1,2}:\d")


def range_text(start: datetime, end: datetime) -> str:
    """A range (UTC) as it is typed: ``2026-11-21 09:14:03Z … 10:20:00Z``; a short one to the millisecond."""
    precision = "seconds" if end - start >= timedelta(seconds=20) else "milliseconds"
    first, last = (each.replace(tzinfo=None).isoformat(" ", precision) for each in (start, end))
    return f"{first}Z … {last.removeprefix(f'{start:%Y-%m-%d} ')}Z"


@dataclass(frozen=True, slots=True)
class Measure:
    """One small chart: how it is called, its unit, and its value of a stretch.

    idle: the value of a stretch that is known and has no session; None where there is none to have.
    """

    name: str
    title: str
    unit: str
    take: Callable[[HistoryPoint, int], float | None]
    idle: float | None = None


MEASURES = (
    Measure("latency", "Latency, worst", "s", lambda point, _: point.latency_max),
    Measure("tran", "Transactions", "tran/s", lambda point, step: point.tran_count / step, 0.0),
    Measure("cmd", "Commands", "cmd/s", lambda point, step: point.command_count / step, 0.0),
    Measure("empty", "Empty scans in a row, longest", "scans", lambda point, _: point.empty_scan_count),
    Measure("errors", "Errors", "errors", lambda point, _: point.error_count, 0.0),
)


def series(
    measure: Measure, points: Iterable[HistoryPoint], asked: Asked, unknown: Sequence[HistoryBreak]
) -> list[float | None]:
    """A value for each stretch: what sessions say, else the idle one where snapshots tell of that time."""
    by_start = {point.start: point for point in points if point.database == asked.database}
    known = sorted(by_start)
    values: list[float | None] = []
    for start in asked.starts:
        point = by_start.get(start)
        if point is not None:
            values.append(measure.take(point, asked.step))
        elif measure.idle is None or not known or start < known[0] or _is_unknown(start, asked.step, unknown):
            values.append(None)
        else:
            values.append(measure.idle)
    return values


def _is_unknown(start: datetime, step: int, unknown: Iterable[HistoryBreak]) -> bool:
    """Whether a stretch lies, in part, where nothing was collected."""
    end = start + timedelta(seconds=step)
    return any(
        each.kind is BreakKind.GAP and each.start < end and (each.end is None or each.end > start)
        for each in unknown
    )


def restarts(breaks: Iterable[HistoryBreak]) -> list[datetime]:
    """When capture or its agent began anew, in order of time; an agent that brings runs of capture is one."""
    moments = (each.began or each.end for each in breaks if each.kind is not BreakKind.GAP)
    return sorted({moment for moment in moments if moment is not None})


def not_yet(asked: Asked, newest: datetime) -> HistoryBreak | None:
    """The end of the range that no snapshot has reached: unknown too, though nobody is late with it."""
    since = max(asked.start, newest)
    return HistoryBreak(BreakKind.GAP, since, None) if since < asked.end else None


def greatest(rows: Iterable[Mapping[str, object]], name: str, asked: Asked) -> list[float | None]:
    """The greatest value of each stretch's snapshots; None without one."""
    found: list[float | None] = [None] * len(asked.starts)
    for row in rows:
        index, value = _index(row["snapshot_time"], asked), row[name]
        if index is not None and isinstance(value, (int, float)):
            known = found[index]
            found[index] = value if known is None else max(known, value)
    return found


def _index(moment: object, asked: Asked) -> int | None:
    if not isinstance(moment, datetime) or not asked.start <= moment < asked.end:
        return None
    return bisect_right(asked.starts, moment) - 1


def changes_by_table(
    rows: Iterable[Mapping[str, object]], asked: Asked, most: int, unknown: Sequence[HistoryBreak] = ()
) -> dict[str, list[float | None]]:
    """Rows that each instance gained between snapshots, by stretch; the ``most`` with the most rows.

    What came between two snapshots is spread evenly over the time between, but not over gaps. What cleanup
    took meanwhile is not known, so a table that shrank counts as unchanged.
    """
    sizes: dict[str, list[tuple[datetime, int]]] = {}
    for row in rows:
        name, moment, count = row["capture_instance"], row["snapshot_time"], row["row_count"]
        if isinstance(name, str) and isinstance(moment, datetime) and isinstance(count, int):
            sizes.setdefault(name, []).append((moment, count))
    starts = asked.starts
    is_known = [not _is_unknown(start, asked.step, unknown) for start in starts]
    found: dict[str, list[float | None]] = {}
    for name, taken in sizes.items():
        values: list[float | None] = [None] * len(starts)
        found[name] = values
        for (before, had), (moment, has) in pairwise(sorted(taken)):
            last = bisect_right(starts, moment) - 1
            first = min(last, bisect_right(starts, before))
            inside = [index for index in range(max(0, first), min(last + 1, len(starts))) if is_known[index]]
            for index in inside:
                values[index] = (values[index] or 0) + max(0, has - had) / len(inside)
    ranked = sorted(found, key=lambda name: (-sum(value or 0 for value in found[name]), name))
    return {name: found[name] for name in ranked[:most]}
