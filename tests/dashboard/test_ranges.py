"""A range is judged before it is asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dashboard.ranges import Validity, check, parse_end, position, text_of
from engine.model.lsn import Lsn

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
LOW, HIGH = Lsn.at(1000), Lsn.at(2000)
VALIDITY = Validity(LOW, HIGH, NOW - timedelta(hours=1), NOW)


def test_ends_are_typed_as_lsn_time_or_age() -> None:
    assert parse_end("", NOW) is None
    assert parse_end(str(LOW), NOW) == LOW
    assert parse_end(LOW.groups, NOW) == LOW
    assert parse_end("now-15m", NOW) == NOW - timedelta(minutes=15)
    with pytest.raises(ValueError, match="20 hex digits"):
        parse_end("0x12", NOW)


@pytest.mark.parametrize(
    ("start", "end"), [(None, None), (LOW, HIGH), (NOW - timedelta(minutes=5), None), (LOW.next(), NOW)]
)
def test_both_ends_belong_to_the_validity_interval(start: object, end: object) -> None:
    assert check(start, end, VALIDITY).is_valid  # type: ignore[arg-type]


def test_a_range_below_the_low_watermark_is_clamped() -> None:
    checked = check(LOW.previous(), HIGH, VALIDITY)
    assert "low watermark" in checked.problem
    assert (checked.start, checked.end) == (None, HIGH)


def test_a_range_above_the_high_watermark_is_clamped() -> None:
    checked = check(LOW, HIGH.next(), VALIDITY)
    assert "high watermark" in checked.problem
    assert (checked.start, checked.end) == (LOW, None)


def test_a_time_before_capture_began_is_below() -> None:
    assert "low watermark" in check(NOW - timedelta(hours=2), None, VALIDITY).problem


def test_a_reversed_range_is_turned() -> None:
    checked = check(HIGH, LOW, VALIDITY)
    assert checked.problem == "it ends before it begins"
    assert not checked.would_fail
    assert (checked.start, checked.end) == (LOW, HIGH)


def test_a_clamped_end_can_be_typed_again() -> None:
    for end in (None, LOW, NOW - timedelta(minutes=5)):
        assert parse_end(text_of(end), NOW) == end


def test_lsns_and_times_share_an_axis() -> None:
    assert position(LOW, VALIDITY, 0) == (NOW - timedelta(hours=1)).timestamp()
    assert position(HIGH, VALIDITY, 0) == NOW.timestamp()
    assert position(None, VALIDITY, 5.0) == 5.0
