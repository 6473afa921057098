"""Values as people read them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import format as fmt
from dashboard.format import Zone
from engine.model.lsn import Lsn

NOW = datetime(2026, 11, 21, 9, 14, 3, 120000, UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.85, "850 ms"),
        (0.9996, "1 s"),
        (12.4, "12.4 s"),
        (59.96, "1 m 00 s"),
        (185, "3 m 05 s"),
        (7800, "2 h 10 m"),
        (3 * 86400 + 4 * 3600, "3 d 4 h"),
        (-2, "-2 s"),
    ],
)
def test_a_duration_has_its_unit(seconds: float, text: str) -> None:
    assert fmt.duration(seconds) == text


def test_ages_count_whole_seconds() -> None:
    assert fmt.ago(NOW - timedelta(seconds=12.9), NOW) == "12 s ago"
    assert fmt.ago(NOW - timedelta(milliseconds=300), NOW) == "just now"
    assert fmt.ago(None, NOW) == "never"


def test_a_time_carries_its_zone_and_its_age() -> None:
    shown = fmt.moment_and_age(NOW, NOW + timedelta(seconds=12))
    assert shown == "2026-11-21 09:14:03.120 UTC (12 s ago)"
    india = timezone(timedelta(hours=5, minutes=30))
    assert fmt.moment(NOW, india) == "2026-11-21 14:44:03.120 +05:30"


def test_a_table_leaves_the_date_out_today_only() -> None:
    assert fmt.clock(NOW, NOW, Zone.UTC, UTC) == "09:14:03.120"
    assert fmt.clock(NOW - timedelta(days=1), NOW, Zone.UTC, UTC) == "2026-11-20 09:14:03.120"
    assert fmt.clock(NOW, NOW + timedelta(minutes=2), Zone.RELATIVE, UTC) == "2 m 00 s ago"
    assert fmt.clock(None, NOW, Zone.UTC, UTC) == fmt.DASH


def test_lsns_have_a_short_and_a_long_form() -> None:
    lsn = Lsn.at(0x0000002D_000001C0, 3)
    assert fmt.lsn_short(lsn) == "..01C0:0003"
    assert fmt.lsn_short("0000002d:000001c0:0003") == "..01C0:0003"
    assert fmt.lsn_long(lsn.groups) == str(lsn)
    assert fmt.lsn_long(None) == "not established yet"


def test_cells_are_exact() -> None:
    assert fmt.cell(None) == "NULL"
    assert fmt.cell(Decimal("1200.5000")) == "1200.5000"
    assert fmt.cell(b"\x0f\xa0") == "0x0FA0"
    assert fmt.cell(True) == "true"
    assert fmt.cell(1234567) == "1234567"
    assert fmt.cell([Decimal("1.50"), None, [date(2026, 1, 2)]]) == "[1.50, NULL, [2026-01-02]]"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1536, "1.5 KiB"), (16 << 20, "16 MiB"), (None, "—")]
)
def test_sizes_are_in_binary_units(count: int | None, text: str) -> None:
    assert fmt.size(count) == text


def test_typed_times() -> None:
    assert fmt.parse_moment("2026-11-21 09:14:03.120", NOW) == NOW
    assert fmt.parse_moment("2026-11-21 09:14:03.120 UTC", NOW) == NOW
    assert fmt.parse_moment("2026-11-21T10:14:03.120+01:00", NOW) == NOW
    assert fmt.parse_moment("now-15m", NOW) == NOW - timedelta(minutes=15)
    assert fmt.parse_moment("now", NOW) == NOW
    with pytest.raises(ValueError, match="now-15m"):
        fmt.parse_moment("yesterday", NOW)


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)))
def test_a_shown_time_can_be_typed_again(naive: datetime) -> None:
    moment = naive.replace(tzinfo=UTC, microsecond=naive.microsecond // 1000 * 1000)
    assert fmt.parse_moment(fmt.moment(moment), NOW) == moment


def test_a_small_share_is_not_called_nothing() -> None:
    assert [fmt.share(part) for part in (0, 0.001, 0.43, 1.5)] == ["0%", "<1%", "43%", "150%"]
