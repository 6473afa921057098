"""Cron text: when a job runs next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.schedule import Plan, ScheduleUnreadable, next_run, plan

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "following"),
    [
        ("0 2 * * *", "2026-11-21 01:59:59", "2026-11-21 02:00"),
        ("0 2 * * *", "2026-11-21 02:00:00", "2026-11-22 02:00"),
        ("*/15 * * * *", "2026-11-21 02:16:00", "2026-11-21 02:30"),
        ("0 0 * * 0", "2026-11-21 00:00:00", "2026-11-22 00:00"),  # a Sunday, as cron counts
        ("0 0 * * 7", "2026-11-21 00:00:00", "2026-11-22 00:00"),
        ("0 0 1 * mon", "2026-11-21 00:00:00", "2026-11-23 00:00"),  # either day
    ],
)
def test_the_next_time_is_as_cron_has_it(schedule, after, following):
    assert next_run(schedule, at(after)) == at(following)


@pytest.mark.parametrize(
    ("after", "following"),
    [
        ("2026-03-28 12:00", "2026-03-29 01:00"),  # 02:30 does not come that night: right after, at 03:00
        ("2026-10-24 12:00", "2026-10-25 00:30"),  # 02:30 comes twice: the first time
        ("2026-10-25 00:30", "2026-10-26 01:30"),
    ],
)
def test_hours_are_those_of_the_zone(after, following):
    assert next_run("30 2 * * *", at(after), BERLIN) == at(following)


@pytest.mark.parametrize(
    "text", ["", "daily", "* * * *", "* * * * * *", "0 24 * * *", "0 0 30 2 *", "@daily"]
)
def test_what_is_no_schedule_is_refused_in_words(text):
    with pytest.raises(ScheduleUnreadable, match=r"\w+"):
        next_run(text, at("2026-11-21 00:00"))


@given(
    st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    st.sampled_from(["0 2 * * *", "*/7 3-5 * * 1-5", "59 23 31 12 *", "0 */6 * * *"]),
    st.sampled_from([UTC, BERLIN, ZoneInfo("Pacific/Apia")]),
)
def test_a_next_time_is_later_in_utc_and_none_lies_between(after, schedule, zone):
    following = next_run(schedule, after, zone)
    assert following > after
    assert following.tzinfo is UTC
    between = after + (following - after) / 2
    assert next_run(schedule, between.replace(microsecond=0), zone) <= following + timedelta(0)


# What an agent makes of it, whose clock jumps

DAILY = "0 2 * * *"
ZONES = [UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")]


def runs_of(schedule, zone, moments):
    """When an agent that looks at these moments of its clock runs the job."""
    expected, found = None, []
    for now in moments:
        step = plan(schedule, expected, now, zone)
        expected = step.next_run
        assert expected > now
        if step.is_due:
            found.append(now)
    return found


def looks(start, steps):
    """Moments by steps in minutes, which a clock that is set back or forward makes too."""
    moments = [start]
    for minutes in steps:
        moments.append(moments[-1] + timedelta(minutes=minutes))
    return moments


@settings(max_examples=40)
@given(
    start=st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 1), timezones=st.just(UTC)),
    zone=st.sampled_from(ZONES),
    steps=st.lists(st.integers(1, 50), min_size=50, max_size=200),
    jump=st.sampled_from([-60, 60]),
    place=st.integers(0, 200),
    is_mended=st.booleans(),
)
def test_an_hour_of_the_clock_forward_or_back_neither_skips_nor_doubles_a_daily_run(
    start, zone, steps, jump, place, is_mended
):
    """Nor does daylight saving: each day has one run, at the time or the look after it."""
    jumps = [*steps[:place], jump, *steps[place:]]
    if is_mended:
        jumps += [-jump, *steps]
    moments = looks(start, jumps)
    days = [now.astimezone(zone).date() for now in runs_of(DAILY, zone, moments)]
    assert len(days) == len(set(days))
    reached = max(moments)
    times = []
    at = next_run(DAILY, start, zone)
    while at <= reached:
        times.append(at.astimezone(zone).date())
        at = next_run(DAILY, at, zone)
    assert days == times


@given(st.integers(2, 5000))
def test_a_clock_that_was_years_ahead_does_not_put_off_the_next_run_by_years(days):
    now = datetime(2026, 5, 1, 12, tzinfo=UTC)
    step = plan(DAILY, now + timedelta(days=days), now)
    assert (step.is_due, step.next_run) == (False, datetime(2026, 5, 2, 2, tzinfo=UTC))


def test_a_time_that_nobody_saw_is_made_up_for_once():
    now = datetime(2026, 5, 9, 12, tzinfo=UTC)
    assert plan(DAILY, datetime(2026, 5, 1, 2, tzinfo=UTC), now) == Plan(
        True, datetime(2026, 5, 10, 2, tzinfo=UTC)
    )
