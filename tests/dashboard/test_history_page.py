"""History: series over a range, gaps that are no zeros, an earlier period, and what the page says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.charts.chart import TimeRange
from dashboard.charts.history import heat_map, history_chart
from dashboard.charts.log_held import with_limit
from dashboard.history import (
    MEASURES,
    PERIOD,
    Asked,
    asked_range,
    changes_by_table,
    greatest,
    not_yet,
    parse_range,
    range_text,
    series,
)
from dashboard.log_held import collected_samples, least_limits
from engine.model.collection import BreakKind, HistoryBreak, HistoryPoint
from tests.dashboard.conftest import Dashboard

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LATENCY, TRANSACTIONS, *_ = MEASURES


def asked(stretches: int, step: int = 60) -> Asked:
    return Asked("hr", NOON, NOON + timedelta(seconds=step * stretches), step)


def a_point(minute: int, transactions: int = 60, latency: int | None = 2) -> HistoryPoint:
    return HistoryPoint("hr", NOON + minute * MINUTE, 1, latency, latency, transactions, 90, 100, 5, 3, 0)


def a_gap(start: int, end: int | None) -> HistoryBreak:
    return HistoryBreak(BreakKind.GAP, NOON + start * MINUTE, None if end is None else NOON + end * MINUTE)


def an_agent_with_its_run_of_capture(began: float, seen: float) -> list[HistoryBreak]:
    """Both breaks that snapshots tell of one restart: in minutes after noon."""
    kinds = (BreakKind.AGENT_RESTART, BreakKind.ENGINE_RESTART)
    start, end = NOON + 2 * MINUTE, NOON + seen * MINUTE
    return [HistoryBreak(kind, start, end, began=NOON + began * MINUTE) for kind in kinds]


def test_what_is_not_known_is_none_and_what_is_idle_is_zero() -> None:
    points = [a_point(1), a_point(5, 0, None)]
    unknown = [a_gap(3, 5)]
    assert series(TRANSACTIONS, points, asked(7), unknown) == [None, 1.0, 0.0, None, None, 0.0, 0.0]
    assert series(LATENCY, points, asked(7), unknown) == [None, 2, None, None, None, None, None]
    ahead = not_yet(asked(7), NOON + 6 * MINUTE)
    assert ahead is not None
    assert series(TRANSACTIONS, points, asked(7), [*unknown, ahead])[-2:] == [0.0, None]


ranges = st.timedeltas(timedelta(minutes=5), timedelta(days=60))


@given(ranges, st.sampled_from(["", PERIOD, "day", "week", "4 weeks"]), st.integers(0, 86_400))
def test_a_range_is_cut_in_some_hundred_whole_stretches_that_cover_it(
    length: timedelta, compared: str, shift: int
) -> None:
    start = NOON + timedelta(seconds=shift)
    found = asked_range("hr", start, start + length, compared)
    assert found.start <= start
    assert found.end >= start + length
    assert 1 <= len(found.starts) <= 722
    assert found.starts[0] == found.start
    assert found.starts[-1] + timedelta(seconds=found.step) == found.end
    if compared:
        assert found.back is not None
        assert found.back % timedelta(seconds=found.step) == timedelta(0)
    else:
        assert found.back is None


def test_typed_ranges_are_relative_or_absolute_and_wrong_ones_are_said() -> None:
    day = timedelta(days=1)
    assert parse_range("now-1d", NOON, UTC) == (NOON - day, NOON)
    assert parse_range("now-3d … now-1d", NOON, UTC) == (NOON - 3 * day, NOON - day)
    assert parse_range("2026-11-20 12:00 to now", NOON, UTC) == (NOON - day, NOON)
    assert parse_range("2026-11-21 10:00...11:30", NOON, UTC) == (NOON - day / 12, NOON - day / 48)
    for wrong in ("now … now-1d", "now+1d … now"):
        with pytest.raises(ValueError, match=r"ends before it begins|is not a time"):
            parse_range(wrong, NOON, UTC)
    for wrong in ("yesterday", "", "…", "now-3h … 10:20"):
        with pytest.raises(ValueError, match="is not a time"):
            parse_range(wrong, NOON, UTC)


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)), st.integers(1, 10**10))
def test_a_range_that_was_dragged_can_be_typed_and_drawn_again(naive: datetime, milliseconds: int) -> None:
    start = naive.replace(microsecond=naive.microsecond // 1000 * 1000, tzinfo=UTC)
    end = start + timedelta(milliseconds=milliseconds)
    span = TimeRange(start, end, ZoneInfo("Asia/Kolkata"))
    assert span.read_both((span.at(start), span.at(end))) == (start, end)
    found = parse_range(range_text(start, end), NOON, span.zone)
    assert all(
        abs(one - other) < timedelta(seconds=1) for one, other in zip(found, (start, end), strict=True)
    )
    assert [span.read(shown) for shown in ("2026-11-21 17:30", "2026-11-21 17:30:00.0000")] == [NOON, NOON]


def test_the_log_held_is_the_most_that_snapshots_of_a_stretch_saw() -> None:
    rows = [
        {"snapshot_time": NOON + timedelta(seconds=second), "retained_bytes": size}
        for second, size in [(1, 10), (59, 30), (61, None), (120, 5), (500, 9)]
    ]
    assert greatest(rows, "retained_bytes", asked(3)) == [30, None, 5]


def test_the_limit_of_the_log_held_is_below_its_line_and_beside_its_numbers() -> None:
    rows = [
        {"snapshot_time": NOON + minute * MINUTE, "retained_bytes": size * 2**20, "wal_status": "reserved"}
        | {"safe_wal_size": None if safe is None else safe * 2**20}
        for minute, size, safe in [(0, 10, 54), (2, 20, 43), (4, 20, None)]
    ]
    limits = least_limits(collected_samples(rows), asked(5))
    assert limits == [64 * 2**20, None, 63 * 2**20, None, None]
    values = [10.0, None, 20.0, None, 20.0]
    chart = history_chart("Log held", "MiB", asked(5).starts, values, None, [], SPAN, is_sampled=True)
    limited = with_limit(chart, asked(5).starts, limits, False, SPAN)
    limit, line = limited.figure.data
    assert (limit.name, list(limit.y), list(line.y)) == ("limit 63 MiB", [64, 63], [10, 20, 20])
    assert limited.alt == "Log held: at most 20 MiB; 0 gaps, 0 restarts; limit 63 MiB."
    assert limited.table["limit (MiB)"].tolist()[:3:2] == [64, 63]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8))
def test_tables_gain_rows_between_snapshots_and_cleanup_makes_no_negative_ones(counts: list[int]) -> None:
    rows = [
        {"capture_instance": "t", "snapshot_time": NOON + number * MINUTE, "row_count": count}
        for number, count in enumerate(counts)
    ]
    [values] = changes_by_table(rows, asked(len(counts)), 5).values()
    assert values[0] is None
    assert values[1:] == [max(0, b - a) for a, b in pairwise(counts)]


def test_what_came_between_two_snapshots_is_spread_but_not_over_a_gap() -> None:
    rows = [
        {"capture_instance": "t", "snapshot_time": NOON + minute * MINUTE, "row_count": count}
        for minute, count in [(0, 0), (4, 40), (6, 100)]
    ]
    assert changes_by_table(rows, asked(7), 5)["t"] == [None, 10, 10, 10, 10, 30, 30]
    assert changes_by_table(rows, asked(7), 5, [a_gap(1, 3)])["t"] == [None, None, None, 20, 20, 30, 30]


SPAN = TimeRange(NOON, NOON + 7 * MINUTE)


def test_a_gap_is_a_band_a_restart_breaks_the_line_and_the_earlier_period_is_a_ghost() -> None:
    values = series(TRANSACTIONS, [a_point(0), a_point(1), a_point(2)], asked(7), [a_gap(3, None)])
    breaks = [a_gap(3, None), *an_agent_with_its_run_of_capture(began=2.5, seen=5)]
    chart = history_chart("Transactions", "tran/s", asked(7).starts, values, [2.0] * 7, breaks, SPAN)
    ghost, line = chart.figure.data
    assert ghost.line.dash == "dot"
    assert list(line.y) == [1.0, 1.0, None, 1.0, None, None, None, None]
    assert [shape.x0 for shape in chart.figure.layout.shapes][1:] == [SPAN.at(NOON + 2.5 * MINUTE)]
    assert line.connectgaps is False
    assert [shape.name for shape in chart.figure.layout.shapes] == ["gap", None]
    assert chart.alt == "Transactions: at most 1 tran/s, 2 tran/s in the earlier period; 1 gap, 1 restart."
    assert chart.table["earlier"].tolist() == [2.0] * 7


def test_what_snapshots_sampled_is_a_line_between_them_and_none_across_a_gap() -> None:
    values = [5.0, None, 7.0, None, None, 9.0, None]
    args = ("Log held", "MiB", asked(7).starts, values, None)
    [line] = history_chart(*args, [], SPAN, is_sampled=True).figure.data
    assert list(line.y) == [5.0, 7.0, 9.0]
    [line] = history_chart(*args, [a_gap(3, 5)], SPAN, is_sampled=True).figure.data
    assert list(line.y) == [5.0, 7.0, None, 9.0]


@pytest.mark.parametrize("began", [3, 4, 5, 5.5])
def test_the_first_value_after_a_restart_is_not_joined_to_those_before(began: float) -> None:
    values = [5.0, None, 7.0, None, None, 9.0, 10.0]
    breaks = an_agent_with_its_run_of_capture(began, seen=5.75)
    chart = history_chart("Log held", "MiB", asked(7).starts, values, None, breaks, SPAN, is_sampled=True)
    assert list(chart.figure.data[0].y) == [5.0, 7.0, None, 9.0, 10.0]
    assert chart.alt == "Log held: at most 10 MiB; 0 gaps, 1 restart."


def test_a_heat_map_leaves_out_what_is_not_known() -> None:
    chart = heat_map({"busy": [100, None], "quiet": [1, 0]}, asked(2).starts, 60, [], SPAN)
    assert [row[1] for row in chart.figure.data[0].z] == [None, None]
    assert chart.alt == "Rows captured by table and time: busy has the most, 100."


def test_a_heat_map_is_logarithmic_or_linear_and_its_numbers_stay() -> None:
    tables = {"busy": [999, None], "quiet": [9, 0]}
    by_log = heat_map(tables, asked(2).starts, 60, [], SPAN).figure.data[0]
    assert [list(row) for row in by_log.z] == [[1, None], [3, None]]
    linear = heat_map(tables, asked(2).starts, 60, [], SPAN, is_log=False).figure.data[0]
    assert [list(row) for row in linear.z] == [[9, None], [999, None]]
    assert by_log.customdata == linear.customdata


def test_the_scale_is_in_the_address(tracked: str, dashboard: Dashboard) -> None:
    dashboard.test.query_params["h_scale"] = "linear"
    dashboard.open("history")
    dashboard.wait()
    assert dashboard.test.button_group("h_scale").value == "linear"
    dashboard.test.query_params["h_scale"] = "nonsense"
    dashboard.run()


def test_the_range_is_in_the_address_and_a_wrong_one_is_said(tracked: str, dashboard: Dashboard) -> None:
    dashboard.test.query_params["h_range"] = "last night"
    dashboard.open("history")
    assert "'last night' is not a time" in dashboard.text
    dashboard.test.selectbox("h_range").set_value("7d")
    dashboard.run()
    dashboard.test.selectbox("h_cmp").set_value("a week before")
    dashboard.run()
    dashboard.wait()
    assert "is not a time" not in dashboard.text
    assert "Nothing was collected" in dashboard.text
