"""Series out of scan sessions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import sessions
from engine.model.scan_session import ScanSession

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
EMPTY = ScanSession(
    1, NOON, NOON, 0, "Done", 0, "0", "0", "0", 0, "0", None, 0, 0, 0, "0", "0", None, 0, 0, 0
)


def scan(number: int, at: float, took: float = 0.5, trans: int = 0, empty: int = 0) -> ScanSession:
    """A session that began ``at`` seconds after noon; its last commit was 2 s before its end."""
    start = NOON + timedelta(seconds=at)
    end = start + timedelta(seconds=took)
    commit = end - timedelta(seconds=2) if trans else None
    return replace(
        EMPTY, session_id=number, start_time=start, end_time=end, tran_count=trans, command_count=3 * trans,
        last_commit_cdc_time=commit, latency=2 if trans else 0, empty_scan_count=empty,
    )  # fmt: skip


def rates(*rows: ScanSession, until: float = 60, step: int = 10) -> list[float | None]:
    buckets = sessions.throughput(rows, NOON, NOON + timedelta(seconds=until - 1), step)
    return [bucket.transactions for bucket in buckets]


def test_transactions_came_in_since_the_scan_before() -> None:
    rows = [scan(1, 0, took=1), scan(2, 10, took=1, trans=100)]
    assert rates(*rows, until=20, step=5) == [8.0, 10.0, 10.0, None]


@pytest.mark.parametrize("step", [2, 5, 10, 30])
def test_no_rhythm_of_buckets_makes_a_steady_rate_look_uneven(step: int) -> None:
    rows = [scan(n, n * 6.3, took=0.4, trans=63) for n in range(1, 20)]
    steady = rates(*rows, until=90, step=step)[-(-12 // step) :]
    assert steady == pytest.approx([10.0] * len(steady))


def test_an_empty_scan_is_a_zero_and_no_scan_is_no_data() -> None:
    assert rates(scan(1, 1, empty=1), scan(2, 41, trans=50)) == [0.0, None, None, 5.0, 5.0, None]


def test_a_polling_pause_is_no_gap() -> None:
    assert rates(scan(1, 9, took=0.1), scan(2, 21, took=0.1), until=30) == [0.0, 0.0, 0.0]


def test_a_long_run_of_empty_scans_covers_its_time() -> None:
    assert rates(scan(1, 0, took=59, empty=12)) == [0.0] * 6


def test_latency_is_of_productive_sessions_only() -> None:
    rows = [scan(1, 1, empty=3), scan(2, 11, trans=5), replace(EMPTY, session_id=0)]
    (point,) = sessions.latencies(rows, NOON, NOON + timedelta(minutes=1), 10)
    assert point.latency == pytest.approx(2.0)


def test_the_worst_latency_stands_for_its_bucket() -> None:
    slow = replace(scan(3, 12, trans=1), last_commit_cdc_time=NOON)
    points = sessions.latencies([scan(2, 11, trans=5), slow], NOON, NOON + timedelta(minutes=1), 10)
    assert [point.session.session_id for point in points] == [3]


def test_empty_runs_are_rows_with_a_count() -> None:
    runs = sessions.empty_runs([scan(1, 0, empty=4), scan(2, 30, trans=1)], NOON)
    assert [run.scans for run in runs] == [4]


def test_a_falling_session_id_is_a_restart() -> None:
    rows = [scan(5, 0), scan(6, 10), scan(1, 30)]
    assert sessions.restarts(rows) == [NOON + timedelta(seconds=30)]


def test_commands_per_second_has_no_infinity() -> None:
    assert sessions.commands_per_second(scan(1, 0, took=0, trans=5)) is None
    assert sessions.commands_per_second(scan(1, 0, took=0.5, trans=5)) == 30.0


def test_a_sparkline_leaves_out_what_has_no_data() -> None:
    assert sessions.sparkline([None, 1.0, None, 2.0]) == [1.0, 2.0]


def test_buckets_are_few_and_aligned() -> None:
    assert sessions.bucket_seconds(timedelta(hours=1)) == 10
    assert sessions.bucket_seconds(timedelta(hours=24)) == 300
    assert sessions.align(NOON + timedelta(seconds=19), 10) == NOON + timedelta(seconds=10)


def test_the_mean_of_the_last_minute() -> None:
    rows = [scan(n, n * 10 - 5, trans=100) for n in range(1, 7)]
    buckets = sessions.throughput(rows, NOON, NOON + timedelta(seconds=60), 10)
    assert sessions.recent_rate(buckets, 4) == pytest.approx(10.0)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(0, 3)), max_size=12),
    st.integers(0, 30),
)
def test_what_a_range_shows_needs_the_end_of_the_history_alone(
    scans: list[tuple[int, int, int]], first: int
) -> None:
    rows, at = [], 0
    for number, (pause, took, trans) in enumerate(scans, 1):
        rows.append(scan(number, at + pause, took, trans, empty=0 if trans else 1))
        at += pause + took
    start, end = NOON + timedelta(seconds=10 * first), NOON + timedelta(seconds=600)
    recent = sessions.reaching_into(rows, start)
    assert sessions.throughput(recent, start, end, 10) == sessions.throughput(rows, start, end, 10)
    assert sessions.latencies(recent, start, end, 10) == sessions.latencies(rows, start, end, 10)
    assert sessions.empty_runs(recent, start) == sessions.empty_runs(rows, start)


def test_a_commit_was_captured_when_the_scan_that_had_it_ended() -> None:
    first = replace(scan(1, 0, trans=2), first_begin_cdc_lsn="0:10:0", last_commit_cdc_lsn="0:20:0")
    later = replace(scan(2, 9, trans=1), first_begin_cdc_lsn="0:30:0", last_commit_cdc_lsn="0:40:0")
    told = {
        lsn: sessions.captured_at([later, first, scan(3, 20)], lsn)
        for lsn in ("0:18:0", "0:40:0", "0:25:0", "")
    }
    assert told == {"0:18:0": first.end_time, "0:40:0": later.end_time, "0:25:0": None, "": None}
