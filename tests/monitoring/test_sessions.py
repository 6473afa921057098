"""Session 0 (reference/monitoring.md)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.monitoring.sessions import aggregate, fold
from tests.monitoring.sessions import START, a_session


def test_no_session_no_aggregate():
    assert aggregate([]) is None


def test_constants_of_row_0():
    total = aggregate([a_session(1), a_session(2)])
    assert (total.session_id, total.scan_phase, total.current_lsn) == (0, "Aggregate", "0")


def test_it_spans_from_the_first_start_to_the_last_end():
    total = aggregate([a_session(1), a_session(2), a_session(3, end_time=None)])
    assert total.start_time == a_session(1).start_time
    assert total.end_time == a_session(2).end_time


def test_durations_count_over_sessions_with_transactions_only():
    sessions = [a_session(1, duration=7), a_session(2, duration=5, tran_count=1), a_session(3, duration=9)]
    assert aggregate(sessions).duration == 5


def test_latency_is_the_last_one_that_is_not_zero():
    sessions = [
        a_session(1, tran_count=1, latency=4),
        a_session(2, tran_count=1, latency=6),
        a_session(3, tran_count=1, latency=0),
        a_session(4, empty_scan_count=3),
    ]
    assert aggregate(sessions).latency == 6


def test_positions_are_the_last_ones_known_and_the_first_cdc_one_stays():
    sessions = [
        a_session(1),
        a_session(2, first_begin_cdc_lsn="0:2:0", last_commit_cdc_lsn="0:2:9", last_commit_lsn="0:2:9"),
        a_session(3, first_begin_cdc_lsn="0:3:0", last_commit_cdc_lsn="0:3:9", last_commit_lsn="0:3:9"),
        a_session(4, last_commit_lsn="00000000:00000000:0000"),
    ]
    total = aggregate(sessions)
    assert (total.first_begin_cdc_lsn, total.last_commit_cdc_lsn, total.last_commit_lsn) == (
        "0:2:0",
        "0:3:9",
        "0:3:9",
    )


def test_empty_scans_in_one_row_count_each():
    assert aggregate([a_session(1, tran_count=1), a_session(2, empty_scan_count=5)]).empty_scan_count == 5


def test_ten_productive_scans_and_five_empty_ones():
    rows = [a_session(n, tran_count=1, command_count=2) for n in range(1, 11)]
    rows.append(a_session(11, empty_scan_count=5))
    total = aggregate(rows)
    assert (total.tran_count, total.command_count, total.empty_scan_count) == (10, 20, 5)


counts = st.integers(0, 10**6)
sessions = st.lists(
    st.builds(
        lambda tran, command, latency, duration, error, empty: {
            "tran_count": tran,
            "command_count": command,
            "latency": latency,
            "duration": duration,
            "error_count": error,
            "empty_scan_count": empty,
        },
        *[st.integers(0, 3), counts, st.integers(0, 9), st.integers(0, 99), st.integers(0, 2), counts],
    ),
    min_size=1,
    max_size=8,
)


@given(sessions)
def test_taking_in_a_session_again_replaces_it(values):
    """A session is saved when it begins, when it ends, and when an empty scan is added to it."""
    done = [a_session(number, **each) for number, each in enumerate(values, 1)]
    total = None
    for session in done:
        begun = replace(session, end_time=None, tran_count=0, command_count=0, latency=0, empty_scan_count=0)
        total = fold(total, begun)
        total = fold(total, session, begun)
    assert total == aggregate(done)


@given(sessions)
def test_sums_are_sums(values):
    done = [a_session(number, **each) for number, each in enumerate(values, 1)]
    total = aggregate(done)
    for name in ("tran_count", "command_count", "error_count", "empty_scan_count"):
        assert getattr(total, name) == sum(getattr(session, name) for session in done)
    assert total.duration == sum(session.duration for session in done if session.tran_count)
    assert total.end_time == START + timedelta(seconds=len(done) + 1)
