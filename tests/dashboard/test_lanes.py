"""Lanes of the validity timeline: what cleanup would do, by the times of a picture alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from dashboard.charts.chart import TimeRange
from dashboard.charts.lane import Bookmark, Lane
from dashboard.lanes import FARTHEST, STEPS, lanes, timeline
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


def spanned(ago: timedelta, horizon: timedelta | None = None, **values: object) -> TimeRange:
    """The timeline of an instance whose low endpoint was committed so long ago."""
    kept = None if horizon is None else NOW - horizon
    return timeline([replace(a_lane(10, 20), low=NOW - ago, horizon=kept)], NOW, **values)  # type: ignore[arg-type]


ages = st.timedeltas(timedelta(seconds=1), timedelta(days=90))


@given(ages, st.none() | ages, st.lists(ages, max_size=3), st.none() | st.timedeltas(-WEEK, WEEK))
def test_the_timeline_shows_all_there_is_and_little_beside_it(
    ago: timedelta, horizon: timedelta | None, clients: list[timedelta], ahead: timedelta | None
) -> None:
    marks = tuple(Bookmark("etl", "0x01", NOW - each) for each in clients)
    kept = None if horizon is None else NOW - horizon
    lane = replace(a_lane(10, 20), low=NOW - ago, horizon=kept, bookmarks=marks)
    span = timeline([lane], NOW, next_cleanup=None if ahead is None else NOW + ahead)
    oldest = max([ago, *clients])
    assert span.start < NOW - oldest
    assert span.end > NOW
    drawn = NOW - span.start
    if horizon is not None and horizon <= FARTHEST * oldest:
        assert drawn > horizon
    if ahead is not None and timedelta() < ahead <= oldest / (FARTHEST - 1):
        assert span.end > NOW + ahead
    assert drawn <= max(FARTHEST * oldest, timedelta(minutes=20)) * 1.2 + timedelta(days=2)
    assert span.end - NOW <= drawn / 2 + timedelta(days=1)


def test_a_horizon_of_days_does_not_squeeze_a_young_interval_and_comes_into_sight_as_it_grows() -> None:
    three_days = timedelta(days=3)
    assert NOW - spanned(timedelta(hours=10), three_days).start < timedelta(hours=11)
    for grown in (timedelta(hours=18), three_days, timedelta(days=4)):
        assert NOW - spanned(grown, three_days).start > three_days


def test_the_next_cleanup_is_in_sight_where_it_is_near() -> None:
    night = NOW + timedelta(hours=12)
    assert spanned(timedelta(days=3), next_cleanup=night).end >= night
    assert spanned(timedelta(hours=1), next_cleanup=night).end < NOW + timedelta(minutes=10)
    assert spanned(timedelta(days=3), next_cleanup=NOW - timedelta(hours=1)).end < NOW + timedelta(hours=3)


def test_the_timeline_stands_still_for_a_fortieth_of_its_length() -> None:
    lane = replace(a_lane(10, 20), low=NOW - timedelta(days=3), horizon=None)
    spans = {timeline([lane], NOW + timedelta(seconds=5 * tick)) for tick in range(720)}
    assert len(spans) <= 2
    assert len({span.start for span in spans}) == 1
    assert all((span.end - span.start) / STEPS <= timedelta(hours=2) for span in spans)


def test_where_nothing_is_established_the_timeline_is_short() -> None:
    assert timeline(lanes(a_view(None, 20), NOW), NOW).end - NOW < timedelta(minutes=1)
    assert NOW - timeline([], NOW).start < timedelta(minutes=6)
