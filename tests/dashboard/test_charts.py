"""Charts: what they draw, say and tabulate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dashboard.charts.chart import TimeRange
from dashboard.charts.empty_scans import empty_scans_chart
from dashboard.charts.latency import latency_chart
from dashboard.charts.range_bar import Endpoint, range_bar
from dashboard.charts.throughput import transactions_chart
from dashboard.charts.validity import Lane, validity_chart
from dashboard.sessions import Bucket, EmptyRun, latencies
from tests.dashboard.test_sessions import scan

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOUR = TimeRange(NOON, NOON + timedelta(hours=1))


def buckets(*rates: float | None) -> list[Bucket]:
    return [Bucket(NOON + timedelta(seconds=10 * n), rate, rate) for n, rate in enumerate(rates)]


def names(figure: object) -> list[str]:
    return [trace.name for trace in figure.data]  # type: ignore[attr-defined]


def test_no_data_is_a_gap_never_a_zero() -> None:
    chart = transactions_chart(buckets(5, None, 0), 1000, HOUR)
    assert list(chart.figure.data[0].y) == [5, None, 0]
    assert chart.figure.data[0].connectgaps is False


def test_a_ceiling_far_above_is_named_but_does_not_flatten_the_series() -> None:
    chart = transactions_chart(buckets(5, 6), 1000, HOUR)
    assert list(chart.figure.data[1].y) == [None, None]
    assert "off scale" in chart.figure.data[1].name
    assert list(transactions_chart(buckets(500), 1000, HOUR).figure.data[1].y) == [1000, 1000]


def test_polling_without_pause_has_no_ceiling() -> None:
    chart = transactions_chart(buckets(5), None, HOUR)
    assert names(chart.figure) == ["transactions/s", None]
    assert "no ceiling" in chart.alt


def test_an_empty_chart_says_why() -> None:
    chart = transactions_chart(buckets(None, None), 1000, HOUR)
    assert chart.figure.layout.annotations[0].text == "No scan in this range"


def test_empty_runs_lie_on_the_baseline_of_latency() -> None:
    points = latencies([scan(1, 60, trans=3)], HOUR.start, HOUR.end, 10)
    run = EmptyRun(NOON, NOON + timedelta(seconds=30), 6)
    chart = latency_chart(points, [run], [], [], HOUR)
    assert names(chart.figure) == ["latency", "empty scans"]
    assert list(chart.figure.data[0].y) == [2.0]
    assert chart.table["session_id"].tolist() == [1]


def test_the_longest_empty_run_is_labelled() -> None:
    runs = [EmptyRun(NOON, NOON + timedelta(seconds=30), 6), EmptyRun(NOON, None, 9)]
    chart = empty_scans_chart(runs, HOUR)
    assert "longest: 9" in chart.figure.layout.annotations[0].text


def lane(name: str, table: str, low: datetime | None) -> Lane:
    return Lane(name, table, low, NOON + timedelta(minutes=20), NOON + timedelta(minutes=29), "0x01", "0x02")


def test_validity_has_a_lane_for_each_instance_and_a_tail_to_now() -> None:
    now = NOON + timedelta(minutes=30)
    chart = validity_chart([lane("a", "dbo.A", NOON), lane("new", "dbo.B", None)], HOUR, now)
    valid, quiet, tail = chart.figure.data
    assert list(valid.y) == ["a"]
    assert [bar.x[0] / 60000 for bar in (valid, quiet, tail)] == [20, 9, 1]
    assert "not established yet" in chart.alt


def test_two_instances_of_a_table_show_where_it_is_safe_to_switch() -> None:
    lanes = [lane("a", "dbo.A", NOON), lane("a_v2", "dbo.A", NOON + timedelta(minutes=10))]
    chart = validity_chart(lanes, HOUR, NOON + timedelta(minutes=30))
    assert "safe to switch" in [shape.label.text for shape in chart.figure.layout.shapes]


def test_what_lies_outside_the_validity_interval_is_drawn_apart() -> None:
    low, high = Endpoint(100, "low"), Endpoint(200, "high")
    inside = range_bar(low, high, Endpoint(120, "a"), Endpoint(150, "b"))
    outside = range_bar(low, high, Endpoint(80, "a"), Endpoint(150, "b"))
    assert len(inside.figure.data) == 2
    assert len(outside.figure.data) == 3
    assert "not inside" in outside.alt


def test_a_figure_without_a_new_scan_is_identical() -> None:
    first, second = (transactions_chart(buckets(5, None, 0), 1000, HOUR).figure.to_json() for _ in range(2))
    assert first == second


def test_the_area_below_a_series_does_not_bridge_what_is_not_known() -> None:
    line, _ceiling, area = transactions_chart(buckets(5, None, 4), 10, HOUR).figure.data
    assert list(line.y) == [5, None, 4]
    assert line.fill is None
    assert list(area.y) == [5, 0, 4]
    assert not area.showlegend


def test_an_empty_run_that_began_before_the_range_enters_it_part_way_up() -> None:
    run = EmptyRun(NOON - timedelta(minutes=10), NOON + timedelta(minutes=30), 40)
    assert list(empty_scans_chart([run], HOUR).figure.data[0].y) == [10, 40, 0]


def test_an_instance_without_a_low_watermark_has_its_lane() -> None:
    figure = validity_chart([lane("new", "dbo.B", None)], HOUR, NOON).figure
    assert list(figure.layout.yaxis.ticktext) == ["new"]
    assert "not established yet" in [note.text[:19] for note in figure.layout.annotations]
