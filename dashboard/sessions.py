"""Scan sessions as series and figures of merit; pure. Times are UTC, rates per second.

Buckets are aligned to multiples of their width since the epoch, so a figure built twice without
a new scan between is identical and keeps its zoom.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from engine.model.lsn import Lsn
from engine.model.scan_session import ScanSession

MAX_POINTS = 360
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


def bucket_seconds(span: timedelta) -> int:
    """The smallest round step that cuts ``span`` into at most MAX_POINTS buckets."""
    wanted = span.total_seconds() / MAX_POINTS
    return next((step for step in _STEPS if step >= wanted), _STEPS[-1])


def align(moment: datetime, step: int) -> datetime:
    """The start of the bucket that holds ``moment``."""
    return datetime.fromtimestamp(moment.timestamp() // step * step, UTC)


def align_up(moment: datetime, step: int) -> datetime:
    """The end of the bucket that holds ``moment``."""
    return align(moment, step) + timedelta(seconds=step)


def without_aggregate(sessions: Iterable[ScanSession]) -> list[ScanSession]:
    """Sessions proper, oldest first: session 0 feeds figures of merit, never a series."""
    return sorted((s for s in sessions if s.session_id != 0), key=lambda s: (s.start_time, s.session_id))


def reaching_into(history: Sequence[ScanSession], start: datetime) -> Sequence[ScanSession]:
    """The end of a history in order of time that a range from ``start`` on shows, and the session before.

    Sessions follow one another: what ended before the range has only such before it.
    """
    first = len(history)
    while first and ((end := history[first - 1].end_time) is None or end >= start):
        first -= 1
    return history[max(0, first - 1) :]


def aggregate(sessions: Iterable[ScanSession]) -> ScanSession | None:
    """Session 0, where there is one."""
    return next((s for s in sessions if s.session_id == 0), None)


def is_productive(session: ScanSession) -> bool:
    """Whether the session captured transactions (its latency then means something)."""
    return session.tran_count > 0


def seconds_of(session: ScanSession) -> float | None:
    """How long a session took, to the microsecond; None while it is active."""
    if session.end_time is None:
        return None
    return (session.end_time - session.start_time).total_seconds()


def commands_per_second(session: ScanSession) -> float | None:
    """``command_count / duration``; None where it took no measurable time or captured nothing."""
    seconds = seconds_of(session)
    if not session.command_count or not seconds:
        return None
    return session.command_count / seconds


@dataclass(frozen=True, slots=True)
class Bucket:
    """One step of a series; its rates are None where no scan ran (no data, not zero)."""

    start: datetime
    transactions: float | None
    commands: float | None


PAUSE = 15.0
"""Seconds between two scans that still count as polling; after a longer pause nothing is known of it."""

LONGEST_REST = timedelta(minutes=1)
"""The least time without a scan that counts as a pause of capture, however often it polls."""


def longest_rest(pollinginterval: int) -> timedelta:
    """How long no scan may read the log before capture has paused: it polls, and a poll may be late."""
    return max(LONGEST_REST, timedelta(seconds=3 * pollinginterval))


def throughput(sessions: Sequence[ScanSession], start: datetime, end: datetime, step: int) -> list[Bucket]:
    """Transactions and commands per second for each bucket from ``start`` to ``end``.

    What a scan captured came in since the scan before ended: it is spread over that time, whatever
    the rhythm of buckets and polls. A bucket that no such time covers has no value; a covered one
    without transactions is a real zero.
    """
    first = int(align(start, step).timestamp()) // step
    count = max(1, int(align_up(end, step).timestamp()) // step - first)
    covered, transactions, commands = [0.0] * count, [0.0] * count, [0.0] * count
    for session, begin, finish in _intervals(sessions, end, step):
        length = max(finish - begin, 0.001)
        low, high = int(begin // step) - first, int(finish // step) - first
        for index in range(max(0, low), min(count - 1, high) + 1):
            left = (first + index) * step
            share = max(0.001, min(finish, left + step) - max(begin, left))
            covered[index] += share
            transactions[index] += session.tran_count * share / length
            commands[index] += session.command_count * share / length
    return [
        Bucket(
            datetime.fromtimestamp((first + index) * step, UTC),
            transactions[index] / covered[index] if covered[index] else None,
            commands[index] / covered[index] if covered[index] else None,
        )
        for index in range(count)
    ]


def _intervals(
    sessions: Iterable[ScanSession], now: datetime, step: int
) -> Iterator[tuple[ScanSession, float, float]]:
    """Each session with the time (seconds since 1970) in which its transactions came in.

    The first after a pause tells no such time: it gets a bucket's width, not its own short duration.
    """
    before: float | None = None
    for session in without_aggregate(sessions):
        start, end = session.start_time.timestamp(), (session.end_time or now).timestamp()
        if before is not None and 0 <= start - before <= PAUSE:
            yield session, before, end
        else:
            yield session, min(start, end - step), end
        before = end


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """The worst latency (seconds) of productive sessions that ended in one bucket, and that session."""

    end_time: datetime
    latency: float
    session: ScanSession


def latency_of(session: ScanSession) -> float | None:
    """Seconds between the last captured commit at the source and the end of its scan.

    The view's ``latency`` is whole seconds; the times it comes from are finer.
    """
    if not is_productive(session) or session.end_time is None or session.last_commit_cdc_time is None:
        return None
    return max(0.0, (session.end_time - session.last_commit_cdc_time).total_seconds())


def latencies(
    sessions: Sequence[ScanSession], start: datetime, end: datetime, step: int
) -> list[LatencyPoint]:
    """The worst productive session of each bucket, oldest first."""
    worst: dict[datetime, LatencyPoint] = {}
    for session in without_aggregate(sessions):
        latency = latency_of(session)
        if latency is None or session.end_time is None or not start <= session.end_time <= end:
            continue
        bucket = align(session.end_time, step)
        if bucket not in worst or worst[bucket].latency < latency:
            worst[bucket] = LatencyPoint(session.end_time, latency, session)
    return [worst[bucket] for bucket in sorted(worst)]


@dataclass(frozen=True, slots=True)
class EmptyRun:
    """A run of scans without CDC transactions: when it began and ended (None: goes on), how many scans."""

    start: datetime
    end: datetime | None
    scans: int


def empty_runs(sessions: Sequence[ScanSession], start: datetime) -> list[EmptyRun]:
    """Rows with ``empty_scan_count`` that reach into the range, oldest first."""
    return [
        EmptyRun(session.start_time, session.end_time, session.empty_scan_count)
        for session in without_aggregate(sessions)
        if session.empty_scan_count and (session.end_time is None or session.end_time >= start)
    ]


def captured_at(sessions: Iterable[ScanSession], lsn: str) -> datetime | None:
    """When the scan ended that captured this commit (as text); None where no session that is kept did."""
    commit = Lsn.parse(lsn) if lsn else None
    for session in without_aggregate(sessions):
        if commit is None or not session.command_count or session.end_time is None:
            continue
        if Lsn.parse(session.first_begin_cdc_lsn) <= commit <= Lsn.parse(session.last_commit_cdc_lsn):
            return session.end_time
    return None


def restarts(sessions: Sequence[ScanSession]) -> list[datetime]:
    """When the agent began anew: the views restart with it, so ``session_id`` falls."""
    ordered = without_aggregate(sessions)
    return [
        later.start_time for earlier, later in pairwise(ordered) if later.session_id <= earlier.session_id
    ]


def recent_rate(buckets: Sequence[Bucket], count: int = 6) -> float | None:
    """Mean transactions a second over the last full buckets that have data; None without any."""
    values = [bucket.transactions for bucket in buckets[:-1][-count:] if bucket.transactions is not None]
    return sum(values) / len(values) if values else None


def sparkline(values: Sequence[float | None], points: int = 40) -> list[float]:
    """The last values of a series for a KPI; what has no data is left out, never drawn as zero."""
    return [round(value, 3) for value in values if value is not None][-points:]
