"""Forecasts of the log that is kept: properties."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.monitoring.capture_state import duration
from engine.monitoring.forecast import LONGEST, SHORTEST, LogPoint, forecast, pace, time_until

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
positions = st.integers(0, 2**63)
rooms = st.none() | st.integers(-(2**40), 2**50)
paces = st.none() | st.floats(0, 1e12, allow_subnormal=False)


def point(position: int, seconds_ago: float) -> LogPoint:
    return LogPoint(position, NOW - timedelta(seconds=seconds_ago))


@given(positions, st.integers(0, 2**40), st.integers(10, 10**7))
def test_the_pace_is_what_was_written_by_the_time_it_took(start, grown, seconds):
    found = pace(point(start, seconds), point(start + grown, 0))
    assert found == pytest.approx(grown / seconds)


@given(positions, positions, st.integers(-100, 9))
def test_points_that_are_too_near_tell_no_pace(before, now, seconds):
    assert timedelta(seconds=seconds) < SHORTEST
    assert pace(point(before, seconds), point(now, 0)) is None


@given(positions, st.integers(1, 1000))
def test_a_log_that_went_back_is_another_log(start, lost):
    assert pace(point(start + lost, 60), point(start, 0)) is None


@given(rooms, paces)
def test_a_time_is_known_where_room_and_pace_are(room, speed):
    found = time_until(room, speed)
    if room is None or not speed:
        assert found is None
    elif found is not None:
        assert timedelta(0) <= found <= LONGEST
        assert found.total_seconds() * speed == pytest.approx(max(0, room), abs=speed / 1e5)
    else:
        assert room / speed > LONGEST.total_seconds()


@given(rooms, st.integers(0, 2**40), st.floats(1, 1e9))
def test_more_room_lasts_longer_and_a_faster_log_less_long(room, more, speed):
    if room is not None and (later := time_until(room + more, speed)) is not None:
        assert time_until(room, speed) <= later
        assert time_until(room + more, speed * 2) <= later


@given(rooms, rooms, st.booleans())
def test_the_nearest_limit_is_the_first_to_be_met(slot, disk, growing):
    found = forecast(point(0, 60), point(60_000, 0), slot, disk, is_growing=growing)
    known = [each for each in (found.slot_limit, found.disk) if each is not None]
    assert found.nearest == min(known, default=None)
    assert (found.pace, found.is_growing) == (1000, growing)


def test_an_unknown_beginning_forecasts_nothing():
    found = forecast(None, point(5, 0), 100, 100, is_growing=True)
    assert (found.pace, found.slot_limit, found.disk) == (None, None, None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3700, "1 h 1 min"), (90_000, "1 d 1 h"), (86_460, "1 d")],
)
def test_lengths_in_words(seconds, text):
    assert duration(timedelta(seconds=seconds)) == text
