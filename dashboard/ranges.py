"""The range of a change query: what was typed, whether it is valid, where to clamp. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from dashboard import format as fmt
from engine.model.lsn import Lsn

End = Lsn | datetime | None
"""An end of a range: an LSN, a commit time (UTC), or None for the validity interval's."""


def parse_end(text: str, now: datetime, zone: tzinfo = UTC) -> End:
    """What was typed: nothing, ``0x…`` or ``8:8:4``, a time or ``now-15m``. ValueError says the forms."""
    stripped = text.strip()
    if not stripped:
        return None
    if stripped.lower().startswith("0x") or (stripped.count(":") == 2 and "-" not in stripped):
        return Lsn.parse(stripped)
    return fmt.parse_moment(stripped, now, zone)


@dataclass(frozen=True, slots=True)
class Validity:
    """The validity interval: its ends as LSNs and commit times (a time may be unknown)."""

    low: Lsn
    high: Lsn
    low_time: datetime | None
    high_time: datetime | None


@dataclass(frozen=True, slots=True)
class RangeCheck:
    """Whether a range lies within the validity interval; ``problem`` is empty then. Ends are clamped.

    ``would_fail``: the functions would raise 313; otherwise they would only return nothing.
    """

    problem: str
    start: End
    end: End
    would_fail: bool = True

    @property
    def is_valid(self) -> bool:
        """Whether the query may run."""
        return not self.problem


def check(start: End, end: End, validity: Validity) -> RangeCheck:
    """What the functions would say of the closed interval from ``start`` to ``end`` (functions.md, 1.3)."""
    problems: list[str] = []
    clamped_start, clamped_end = start, end
    if _below(start, validity):
        problems.append(f"it begins before the low watermark ({_both(validity.low, validity.low_time)})")
        clamped_start = None
    if _above(end, validity):
        problems.append(f"it ends after the high watermark ({_both(validity.high, validity.high_time)})")
        clamped_end = None
    if _above(start, validity):
        problems.append("it begins after the high watermark: nothing is captured there yet")
        clamped_start = None
    if _below(end, validity):
        problems.append("it ends before the low watermark: what was there is no longer kept")
        clamped_end = None
    if not problems and _reversed(start, end):
        return RangeCheck("it ends before it begins", end, start, would_fail=False)
    return RangeCheck("; ".join(problems), clamped_start, clamped_end)


def _below(end: End, validity: Validity) -> bool:
    if isinstance(end, Lsn):
        return end < validity.low
    return isinstance(end, datetime) and validity.low_time is not None and end < validity.low_time


def _above(end: End, validity: Validity) -> bool:
    if isinstance(end, Lsn):
        return end > validity.high
    return isinstance(end, datetime) and validity.high_time is not None and end > validity.high_time


def _reversed(start: End, end: End) -> bool:
    if isinstance(start, Lsn) and isinstance(end, Lsn):
        return start > end
    return isinstance(start, datetime) and isinstance(end, datetime) and start > end


def _both(lsn: Lsn, time: datetime | None) -> str:
    return fmt.lsn_short(lsn) if time is None else f"{fmt.moment(time)}, {fmt.lsn_short(lsn)}"


def position(end: End, validity: Validity, fallback: float) -> float:
    """Where an end lies on an axis of seconds (when times are known) or log positions."""
    if end is None:
        return fallback
    if isinstance(end, datetime):
        return end.timestamp()
    if validity.low_time is None or validity.high_time is None:
        return float(end.position)
    low, high = validity.low.position, validity.high.position
    share = (end.position - low) / max(1, high - low)
    return validity.low_time.timestamp() + share * (validity.high_time - validity.low_time).total_seconds()


def text_of(end: End) -> str:
    """An end as the URL and the fields write it."""
    if end is None:
        return ""
    return str(end) if isinstance(end, Lsn) else fmt.moment(end).removesuffix(" UTC") + "+00:00"
