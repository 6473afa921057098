"""How long changes are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.cleanup.retention import kept_since

TIMES = st.datetimes(timezones=st.just(UTC))
RETENTIONS = st.integers(1, 52_594_800)


def test_retention_counts_back_from_the_last_commit():
    last = datetime(2026, 5, 4, 12, tzinfo=UTC)
    assert kept_since(last, 4320) == datetime(2026, 5, 1, 12, tzinfo=UTC)


@given(TIMES, RETENTIONS)
def test_the_last_commit_itself_is_always_kept(last, retention):
    assert kept_since(last, retention) < last or last == datetime.min.replace(tzinfo=UTC)


@given(TIMES, RETENTIONS, RETENTIONS)
def test_a_longer_retention_keeps_no_less(last, one, other):
    shorter, longer = sorted((one, other))
    assert kept_since(last, longer) <= kept_since(last, shorter)


def test_the_beginning_of_time_is_as_far_as_it_goes():
    early = datetime(5, 1, 1, tzinfo=UTC)
    assert kept_since(early, 52_594_800) == datetime.min.replace(tzinfo=UTC)
    assert kept_since(early, 60) == early - timedelta(hours=1)
