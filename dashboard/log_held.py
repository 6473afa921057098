"""Log that a source keeps for capture: samples over time, the limit, the forecast in words. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard import format as fmt
from dashboard.history import Asked
from dashboard.sessions import align
from engine.monitoring.forecast import LogForecast
from engine.sources.base import SlotState

UNLIMITED = "no limit (max_slot_wal_keep_size = -1)"
LOST = "lost"


@dataclass(frozen=True, slots=True)
class LogSample:
    """Bytes that were held at a moment, and how many could be before any is lost.

    limit: None where the source has none, or does not say so any more since log is lost (``is_lost``).
    """

    at: datetime
    held: int
    limit: int | None
    is_lost: bool = False

    @property
    def is_unlimited(self) -> bool:
        """Whether a slot may keep as much as there is."""
        return self.limit is None and not self.is_lost


def sample(at: datetime, held: int, safe: int | None, wal_status: str | None) -> LogSample:
    """From a row of pg_replication_slots: what is safe yet comes on top of what is held."""
    return LogSample(at, held, None if safe is None else held + safe, wal_status == LOST)


def collected_samples(rows: Iterable[Mapping[str, object]]) -> list[LogSample]:
    """From rows of the collected slots, in order of time; where a source did not answer there is none."""
    found = []
    for row in rows:
        at, held, safe = row["snapshot_time"], row["retained_bytes"], row["safe_wal_size"]
        if isinstance(at, datetime) and isinstance(held, int):
            is_known = safe if isinstance(safe, int) else None
            found.append(sample(at, held, is_known, str(row["wal_status"])))
    return sorted(found, key=lambda each: each.at)


def most_of_each(samples: Iterable[LogSample], step: int) -> list[LogSample]:
    """The sample that holds most of each stretch of so many seconds: no more points than a chart shows."""
    most: dict[datetime, LogSample] = {}
    for each in samples:
        stretch = align(each.at, step)
        if stretch not in most or most[stretch].held < each.held:
            most[stretch] = each
    return [most[stretch] for stretch in sorted(most)]


def least_limits(samples: Iterable[LogSample], asked: Asked) -> list[float | None]:
    """The least limit that the samples of each stretch tell; None without one."""
    starts = asked.starts
    found: list[float | None] = [None] * len(starts)
    for each in samples:
        if each.limit is not None and asked.start <= each.at < asked.end:
            index = bisect_right(starts, each.at) - 1
            known = found[index]
            found[index] = each.limit if known is None else min(known, each.limit)
    return found


def is_unlimited(samples: Sequence[LogSample]) -> bool:
    """Whether no sample knows a limit though it would be told."""
    return bool(samples) and all(each.is_unlimited for each in samples)


def log_held_words(slot: SlotState | None, forecast: LogForecast | None) -> str:
    """How much is held of how much, and when that is used up as the log grows now."""
    if slot is None:
        return "The source does not say what it keeps now."
    now = sample(datetime.min, slot.retained_bytes, slot.safe_wal_size, slot.wal_status)
    held = f"Now {fmt.size(now.held)}"
    if now.is_lost:
        return f"{held}: log that capture needs is lost."
    text = f"{held}, {UNLIMITED}" if now.limit is None else f"{held} of {_share(now.held, now.limit)}"
    return f"{text}. {_forecast_words(forecast)}".rstrip()


def _share(held: int, limit: int) -> str:
    return (
        f"at most {fmt.size(limit)} ({fmt.share(held / limit)})"
        if limit > 0
        else f"at most {fmt.size(limit)}"
    )


def _forecast_words(found: LogForecast | None) -> str:
    if found is None or found.pace is None:
        return "How fast the log grows is not known yet."
    pace = f"The log grows by {fmt.size(round(found.pace))}/s"
    ends = [("the limit is reached", found.slot_limit), ("the source's disk is full", found.disk)]
    known = [f"{what} in {fmt.duration(left.total_seconds())}" for what, left in ends if left is not None]
    if not known:
        return f"{pace}."
    return f"{pace}: {'' if found.is_growing else 'if capture stopped now, '}{' and '.join(known)}."
