"""Scan sessions and errors of scans as rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.errors import LeaseLost
from engine.model.job import JobType
from engine.model.scan_session import ScanError
from engine.monitoring.sessions import aggregate
from tests.monitoring.sessions import START, a_session


def test_ids_count_from_one_in_each_run(control):
    assert [control.sessions.begin("hr", START) for _ in range(3)] == [1, 2, 3]
    assert control.sessions.begin("hr", START + timedelta(hours=1)) == 1


def test_only_the_present_run_is_listed(control):
    control.sessions.save("hr", a_session(control.sessions.begin("hr", START), tran_count=1))
    later = a_session(control.sessions.begin("hr", START + timedelta(hours=1)), tran_count=2)
    control.sessions.save("hr", later)
    assert control.sessions.list("hr", 10) == [later]
    assert control.sessions.aggregate("hr").tran_count == 2


def test_the_newest_of_every_database_is_of_its_present_run(control):
    control.sources.add("new", "postgres", "postgresql:///new")
    control.sources.add("shop", "postgres", "postgresql:///shop")
    for name, starts in {"hr": (0, 1), "shop": (0,)}.items():
        for hours in starts:
            for _ in range(3 - hours):
                last = a_session(control.sessions.begin(name, START + timedelta(hours=hours)))
                control.sessions.save(name, last)
    newest = control.sessions.newest()
    assert {name: each.session.session_id for name, each in newest.items()} == {"hr": 2, "shop": 3}
    assert all(each.written_at is not None for each in newest.values())


def test_the_log_s_end_is_the_last_that_was_known_then(control):
    control.sources.add("shop", "postgres", "postgresql:///shop")
    for minute in range(3):
        at = START + timedelta(minutes=minute)
        session = a_session(control.sessions.begin("hr", START))
        ended = replace(session, start_time=at, end_time=at, end_lsn=f"00000000:{10 + minute:08X}:0000")
        control.sessions.save("hr", ended)
    known = {minute: control.sessions.log_ends(START + timedelta(minutes=minute)) for minute in (-1, 1, 9)}
    assert {minute: each["hr"][0].position for minute, each in known.items()} == {-1: 10, 1: 11, 9: 12}
    assert {each["hr"][1] - START for each in known.values()} == {timedelta(minutes=n) for n in range(3)}
    assert all("shop" not in each for each in known.values())


def test_the_newest_come_in_ascending_order(control):
    sessions = [a_session(control.sessions.begin("hr", START)) for _ in range(5)]
    for session in sessions:
        control.sessions.save("hr", session)
    assert control.sessions.list("hr", 2) == sessions[3:]
    assert control.sessions.list("hr", 10, START) == sessions


def test_history_goes_across_runs(control):
    first = a_session(control.sessions.begin("hr", START))
    control.sessions.save("hr", first)
    second = replace(
        a_session(control.sessions.begin("hr", START + timedelta(hours=1))),
        start_time=START + timedelta(hours=1),
    )
    control.sessions.save("hr", second)
    assert control.sessions.since("hr", START, 10) == [first, second]
    assert control.sessions.since("hr", START + timedelta(minutes=1), 10) == [second]


def test_an_empty_scan_after_an_empty_one_is_the_same_row(control):
    session = a_session(control.sessions.begin("hr", START), empty_scan_count=1)
    for count in (1, 2, 3):
        control.sessions.save("hr", replace(session, empty_scan_count=count))
    assert [row.empty_scan_count for row in control.sessions.list("hr", 10)] == [3]
    assert control.sessions.aggregate("hr").empty_scan_count == 3


def test_the_aggregate_kept_is_the_aggregate_of_all(control):
    sessions = [
        a_session(control.sessions.begin("hr", START), tran_count=n % 3, latency=n, command_count=n)
        for n in range(1, 8)
    ]
    for session in sessions:
        control.sessions.save("hr", replace(session, end_time=None, tran_count=0, command_count=0))
        control.sessions.save("hr", session)
    assert control.sessions.aggregate("hr") == aggregate(sessions)


def an_error(session_id: int, message: str = "broken") -> ScanError:
    return ScanError(session_id, 5, START, 22863, 16, 1, message, "0", "0", "0")


def test_errors_of_the_last_32_sessions_are_kept(control):
    for number in range(1, 41):
        assert control.sessions.begin("hr", START) == number
        control.errors.add("hr", an_error(number))
        control.errors.add("hr", an_error(number, "again"))
    assert [error.session_id for error in control.errors.list("hr")] == [
        n for n in range(9, 41) for _ in "ab"
    ]


def test_a_long_message_is_cut(control):
    control.errors.add("hr", an_error(0, "x" * 5000))
    assert len(control.errors.list("hr")[0].error_message) == 1024


def test_who_has_lost_the_lease_or_its_database_records_no_error(control):
    lost = control.leases.acquire("hr", "one", 60, JobType.CLEANUP)
    control.errors.add("hr", an_error(1), lost)
    held = control.leases.acquire("hr", "one", 60, JobType.CLEANUP)
    with pytest.raises(LeaseLost):
        control.errors.add("hr", an_error(2), lost)
    control.disable_database("hr")
    with pytest.raises(LeaseLost):
        control.errors.add("hr", an_error(3), held)
    assert control.errors.list("hr") == []
