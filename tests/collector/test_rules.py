"""Schedules, expiry, breaks and parameters of the data collector: pure rules."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.collector.breaks import GAP_INTERVALS, SnapshotMark, breaks
from engine.collector.expiry import is_forgotten, is_upkeep_due, kept_from
from engine.collector.parameters import parameters_of, parse_parameters
from engine.collector.schedules import (
    SCHEDULES,
    every,
    interval_seconds,
    is_due,
    is_stale,
    schedule_named,
    schedule_of_text,
    schedule_with,
)
from engine.collector.views import DEFAULT_TABLES, SESSIONS, VIEWS
from engine.errors import CollectionParametersInvalid
from engine.model.collection import BreakKind
from engine.model.schedule import next_run
from engine.procedures.collector import POINTS, bucket_of

moments = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))
SHIPPED = {"5min": 300, "10min": 600, "15min": 900, "30min": 1800, "60min": 3600, "6h": 21600}


@pytest.mark.parametrize(("name", "seconds"), SHIPPED.items())
def test_a_shipped_schedule_collects_as_often_as_its_name_says(name, seconds):
    schedule = schedule_named(f"COLLECTORschedule_Every_{name}")
    assert schedule_with(schedule.schedule_uid) is schedule_of_text(schedule.cron) is schedule
    assert interval_seconds(schedule.cron, datetime(2026, 11, 21, 12, 3, tzinfo=UTC)) == seconds
    assert len({each.schedule_uid for each in SCHEDULES}) == len(SCHEDULES)


@given(st.integers(-10, 3000), moments)
def test_an_interval_is_kept_all_day_or_refused(minutes, at):
    cron = every(minutes)
    if cron is None:
        assert minutes <= 0 or 1440 % minutes or (60 % minutes if minutes < 60 else minutes % 60)
        return
    times = [next_run(cron, at)]
    for _ in range(30):
        times.append(next_run(cron, times[-1]))
    assert {after - before for before, after in pairwise(times)} == {timedelta(minutes=minutes)}


@given(st.lists(st.integers(-90_000, 90_000), max_size=40), moments, st.sampled_from(SCHEDULES))
def test_whatever_the_clock_does_the_next_time_is_no_further_than_an_interval(jumps, now, schedule):
    """As the agent does at each look: plan anew what is stale, collect once what is due."""
    interval = timedelta(seconds=interval_seconds(schedule.cron, now))
    planned = None
    for jump in jumps:
        now += timedelta(seconds=jump)
        following = next_run(schedule.cron, now)
        if is_stale(planned, following):
            planned = following
        if is_due(planned, now):
            planned = following
        assert now < planned <= now + interval


CLOCKS_CHANGE = [
    datetime(*day, tzinfo=UTC) for day in ((2026, 3, 7), (2026, 3, 28), (2026, 10, 24), (2011, 12, 29))
]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Africa/Casablanca", "Pacific/Apia"])
@pytest.mark.parametrize("cron", [every(minutes) for minutes in (5, 10, 15, 30, 60, 360, 720, 1440)])
@pytest.mark.parametrize("day", CLOCKS_CHANGE)
def test_where_clocks_change_no_snapshot_is_missed(cron, zone, day):
    """Summer time, Ramadan's hour, a day that an island left out: what is taken in time leaves no gap."""
    at, marks = day, []
    while at < day + timedelta(days=3):
        at = next_run(cron, at, ZoneInfo(zone))
        marks.append(SnapshotMark(at, len(marks), day, interval_seconds(cron, at, ZoneInfo(zone))))
    assert breaks(marks) == []


def test_hours_of_a_schedule_are_those_of_its_zone():
    at = datetime(2026, 6, 1, 0, 30, tzinfo=UTC)
    assert next_run(every(1440), at, ZoneInfo("Europe/Berlin")) == datetime(2026, 6, 1, 22, tzinfo=UTC)


@given(moments, st.integers(1, 40_000), st.integers(0, 86_400 * 50))
def test_what_expires_is_older_than_its_days_and_less_than_one_day_more_stays(now, days, age):
    first = kept_from(now, days)
    taken = now - timedelta(seconds=age)
    if first is None:
        assert days > 365 * 15
    elif taken.date() < first:
        assert now - taken > timedelta(days=days)
    else:
        assert now - taken < timedelta(days=days + 1)


def test_zero_days_are_for_ever_and_upkeep_is_due_once_a_day_whichever_way_the_clock_goes():
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert kept_from(now, 0) is None
    assert not is_forgotten(now - timedelta(days=9999), 0, now)
    assert is_forgotten(now - timedelta(days=32), 30, now)
    assert not is_forgotten(now - timedelta(days=30), 30, now)
    assert is_upkeep_due(None, now)
    assert not is_upkeep_due(now - timedelta(hours=11), now)
    assert is_upkeep_due(now - timedelta(hours=13), now)
    assert is_upkeep_due(now + timedelta(days=3), now)
    assert kept_from(now, 30) == date(2026, 10, 22)


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=50), st.lists(st.booleans(), min_size=50), moments)
def test_gaps_and_restarts_are_just_where_they_are(steps, restarts, start):
    marks, at, agent = [], start, start
    for number, step in enumerate(steps):
        at += timedelta(seconds=step)
        agent = at if restarts[number] else agent
        marks.append(SnapshotMark(at, number, agent, 300))
    found = breaks(reversed(marks))
    gaps = [each for each in found if each.kind is BreakKind.GAP]
    late = [step for step in steps[1:] if step > GAP_INTERVALS * 300]
    assert [(each.end - each.start).total_seconds() for each in gaps] == late
    others = [each for each in found if each.kind is BreakKind.AGENT_RESTART]
    anew = [after for before, after in pairwise(marks) if after.agent_start != before.agent_start]
    assert [(each.end, each.began) for each in others] == [
        (mark.snapshot_time, mark.agent_start) for mark in anew
    ]


def test_a_gap_that_goes_on_has_no_end_and_none_is_expected_without_a_schedule():
    at = datetime(2026, 11, 21, 12, tzinfo=UTC)
    mark = SnapshotMark(at, 1, at, 300)
    [gap] = breaks([mark], at + timedelta(seconds=451))
    assert (gap.kind, gap.start, gap.end) == (BreakKind.GAP, at, None)
    assert breaks([mark], at + timedelta(seconds=450)) == []
    assert breaks([SnapshotMark(at, 1, at, None)], at + timedelta(days=9)) == []
    assert breaks([], at) == []


EXAMPLE = """<TSQLQueryCollector>
        <Query>
          <Value>SELECT * FROM sys.dm_cdc_log_scan_sessions</Value>
          <OutputTable>cdc_log_scan_data</OutputTable>
        </Query>
      </TSQLQueryCollector>"""


def test_the_parameters_of_the_example():
    found = parse_parameters(EXAMPLE)
    [query] = found.queries
    assert (query.view, query.output_table) == (SESSIONS, "cdc_log_scan_data")
    assert found.takes("any database")
    spaced = (
        '<n:TSQLQueryCollector xmlns:n="DataCollectorType"><Query><Value>select  *\nfrom '
        "[sys].[DM_CDC_ERRORS];</Value><OutputTable>E_Data</OutputTable></Query>"
        '<Databases UseSystemDatabases="true"><Database>Shop</Database></Databases></n:TSQLQueryCollector>'
    )
    found = parse_parameters(spaced)
    assert [(query.view.name, query.output_table) for query in found.queries] == [
        ("sys.dm_cdc_errors", "e_data")
    ]
    assert (found.takes("SHOP"), found.takes("other")) == (True, False)
    every_one = parse_parameters(
        EXAMPLE.replace(
            "</Query>", "</Query><Databases UseUserDatabases='1'><Database>a</Database></Databases>"
        )
    )
    assert every_one.takes("b")


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "<a/>",
        "<TSQLQueryCollector/>",
        "no XML <",
        '<!DOCTYPE a [<!ENTITY b "c">]>' + EXAMPLE,
        EXAMPLE.replace("SELECT *", "SELECT latency"),
        EXAMPLE.replace("dm_cdc_log_scan_sessions", "tables"),
        EXAMPLE.replace("sessions<", "sessions WHERE 1 = 0<"),
        EXAMPLE.replace("cdc_log_scan_data", " "),
        EXAMPLE.replace("cdc_log_scan_data", "a\x07".replace("\x07", "&#10;b")),
        EXAMPLE.replace("</TSQL", "<Other/></TSQL"),
        EXAMPLE.replace("</TSQL", EXAMPLE[20:-21] + "</TSQL"),
    ],
)
def test_parameters_that_would_collect_nothing_are_refused(text):
    with pytest.raises(CollectionParametersInvalid):
        parse_parameters(text)


def test_parameters_are_read_as_they_were_written():
    found = parse_parameters(parameters_of(DEFAULT_TABLES))
    assert [(query.view.name, query.output_table) for query in found.queries] == list(DEFAULT_TABLES)
    assert [query.view for query in found.queries] == list(VIEWS)


@given(st.integers(1, 400 * 86_400), moments)
def test_a_series_has_a_bounded_number_of_points(seconds, start):
    end = start + timedelta(seconds=seconds)
    assert seconds / bucket_of(start, end) <= POINTS
