"""Cron text: when a job runs next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.schedule import ScheduleUnreadable, next_run

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
