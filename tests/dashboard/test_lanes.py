"""Lanes of the validity timeline: what cleanup would do, by the times of a picture alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from dashboard.charts.lane import Lane
from dashboard.lanes import lanes
from dashboard.snapshot import DatabaseView
from engine.control.low_endpoints import low_endpoint_after, slowest_of
from engine.model.client import Client
from engine.model.job import CleanupParameters, Job, JobState, JobType
from engine.model.lsn import Lsn
from engine.model.source_database import SourceDatabase
from engine.model.watermark import Watermarks
from tests.control.conftest import an_instance

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HIGH = 60
TIMES = {Lsn.at(n): NOON + timedelta(minutes=n) for n in range(HIGH + 1)}
"""A commit each minute."""
NOW = TIMES[Lsn.at(HIGH)] + timedelta(minutes=1)
WEEK = timedelta(days=7)


def cleanup_job(retention: int) -> Job[CleanupParameters]:
    parameters, state = CleanupParameters(retention), JobState.STOPPED
    return Job(UUID(int=2), "hr", JobType.CLEANUP, parameters, None, False, state, NOON, "")


def a_client(name: str, acknowledged: int | None, expires_after: timedelta | None = WEEK) -> Client:
    lsn = None if acknowledged is None else Lsn.at(acknowledged)
    return Client("hr", "hr_department", name, lsn, NOON, NOON, expires_after, None, NOON)


def a_view(low: int | None, retention: int | None, *clients: Client) -> DatabaseView:
    start = None if low is None else Lsn.at(low)
    marks = Watermarks("hr", Lsn.at(HIGH), Lsn.at(HIGH), Lsn.at(HIGH), TIMES[Lsn.at(HIGH)], NOW)
    return DatabaseView(
        database=SourceDatabase(1, "hr", "postgresql", "postgresql:///hr", True, NOON),
        watermarks=marks,
        instances=(replace(an_instance(), start_lsn=start),),
        jobs=() if retention is None else (cleanup_job(retention),),
        errors=(),
        slot=None,
        clients=clients,
        commit_times=TIMES,
    )


def a_lane(low: int | None, retention: int | None, *clients: Client) -> Lane:
    [lane] = lanes(a_view(low, retention, *clients), NOW)
    return lane


def minute(time: datetime | None) -> int | None:
    return None if time is None else int((time - NOON).total_seconds()) // 60


positions = st.integers(0, HIGH)


@given(positions, st.integers(0, HIGH - 1), st.lists(st.none() | positions, max_size=3))
def test_the_dotted_line_is_where_a_run_moves_the_low_endpoint(
    low: int, retention: int, acknowledged: list[int | None]
) -> None:
    clients = [a_client(f"c{n}", lsn) for n, lsn in enumerate(acknowledged)]
    lane = a_lane(low, retention, *clients)
    slowest = slowest_of(("hr", client) for client in clients).get("hr")
    first_kept = Lsn.at(HIGH - retention)
    after, held = low_endpoint_after(Lsn.at(low), first_kept, slowest, {lsn: lsn for lsn in TIMES})
    assert lane.horizon == TIMES[first_kept]
    assert lane.low_after == TIMES[after]
    assert (lane.waits_for is not None) is (held is not None)


def test_without_a_cleanup_job_or_a_low_watermark_nothing_of_cleanup_is_drawn() -> None:
    assert (a_lane(10, None).horizon, a_lane(10, None).low_after) == (None, None)
    assert (a_lane(None, 20).horizon, a_lane(None, 20).low_after) == (None, None)


def test_one_that_was_silent_for_too_long_keeps_nothing_back_but_is_marked() -> None:
    lane = a_lane(10, 20, a_client("etl", 15, timedelta(minutes=1)), a_client("reader", 30))
    assert (minute(lane.low_after), lane.waits_for) == (30, "reader")
    assert [(mark.client, mark.is_silent) for mark in lane.bookmarks] == [("etl", True), ("reader", False)]


def test_clients_of_other_instances_have_no_part_in_it() -> None:
    other = replace(a_client("etl", 15), capture_instance="hr_employee")
    lane = a_lane(10, 20, other)
    assert (minute(lane.low_after), lane.bookmarks) == (40, ())


def test_a_client_that_cleanup_has_passed_is_left_behind_even_if_its_commit_is_forgotten() -> None:
    view = a_view(10, 20, a_client("etl", 5))
    forgotten = replace(view, commit_times={lsn: time for lsn, time in TIMES.items() if lsn >= Lsn.at(10)})
    for picture, at in ((view, 5), (forgotten, 10)):
        [[mark]] = [lane.bookmarks for lane in lanes(picture, NOW)]
        assert (mark.is_behind, minute(mark.time)) == (True, at)


def test_what_the_slowest_client_has_at_a_time_that_nobody_knows_says_nothing() -> None:
    [lane] = lanes(replace(a_view(10, 20, a_client("etl", 15)), commit_times={}), NOW)
    assert (lane.low_after, lane.waits_for, lane.bookmarks) == (None, None, ())
