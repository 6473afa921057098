"""When cleanup comes to a client, and when the client's limit does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.cleanup.forecast import forecast
from engine.cleanup.retention import kept_since
from engine.model.client import Client
from engine.model.lsn import Lsn

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def a_client(expires_after: timedelta | None = None, earlier_at: datetime = NOW - 2 * HOUR) -> Client:
    return Client(
        "hr", "hr_t", "etl", Lsn.at(5), NOW - HOUR, NOW - 9 * HOUR, expires_after, Lsn.at(1), earlier_at
    )


def test_a_client_that_does_not_move_is_reached_when_its_changes_are_as_old_as_the_retention():
    ahead = forecast(a_client(), NOW - 2 * HOUR, NOW - 2 * HOUR, NOW, 300, NOW)
    assert (ahead.passed_at, ahead.expires_at) == (NOW + 3 * HOUR, None)


def test_at_half_the_pace_of_the_clock_it_takes_twice_as_long():
    # One hour of commits in the two hours since the earlier acknowledgement.
    ahead = forecast(a_client(), NOW - 2 * HOUR, NOW - 3 * HOUR, NOW, 300, NOW)
    assert ahead.passed_at == NOW + 6 * HOUR


def test_one_that_keeps_up_is_never_reached_and_one_behind_the_retention_is_already():
    assert forecast(a_client(), NOW - 2 * HOUR, NOW - 5 * HOUR, NOW, 300, NOW).passed_at is None
    assert forecast(a_client(), NOW - 7 * HOUR, NOW - 7 * HOUR, NOW, 300, NOW).passed_at == NOW - 2 * HOUR


def test_it_expires_after_its_last_sign_of_life_whatever_else_is_known():
    client = a_client(expires_after=3 * HOUR)
    assert forecast(client, None, None, None, None, NOW).expires_at == NOW + 2 * HOUR
    assert not client.is_expired(NOW)
    assert client.is_expired(NOW + 2 * HOUR)


times = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))


@given(times, times, times, st.integers(1, 52_594_800), times)
def test_when_it_is_reached_the_low_endpoint_and_the_client_are_at_one_time(
    acknowledged, earlier, last_commit, retention, earlier_at
):
    client = a_client(earlier_at=min(earlier_at, NOW - timedelta(seconds=1)))
    ahead = forecast(client, acknowledged, earlier, last_commit, retention, NOW)
    low = kept_since(last_commit, retention)
    if ahead.passed_at is None:
        assert low < acknowledged
    elif ahead.passed_at <= NOW:
        assert low >= acknowledged
    else:
        gone = ahead.passed_at - NOW
        pace = max(timedelta(0), acknowledged - earlier) / (NOW - client.earlier_at)
        assert abs((low + gone) - (acknowledged + gone * pace)) < timedelta(seconds=60)
