"""Charts: what they draw, say and tabulate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dashboard import theme
from dashboard.ceilings import CeilingStep
from dashboard.changes import fold
from dashboard.charts.chart import Chart, TimeRange
from dashboard.charts.empty_scans import empty_scans_chart
from dashboard.charts.lane import Bookmark, Lane
from dashboard.charts.latency import latency_chart
from dashboard.charts.log_held import log_held_chart
from dashboard.charts.mask_matrix import mask_matrix
from dashboard.charts.range_bar import Endpoint, range_bar
from dashboard.charts.throughput import transactions_chart
from dashboard.charts.transaction import transaction_chart
from dashboard.charts.validity import validity_chart
from dashboard.log_held import LogSample, log_held_words, most_of_each, sample
from dashboard.sessions import Bucket, EmptyRun, latencies
from engine.model.collection import BreakKind, HistoryBreak
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanPause, ScanPauses
from engine.monitoring.forecast import LogForecast
from engine.sources.base import SlotState
from tests.dashboard.test_sessions import scan

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = TimeRange(NOON, NOON + timedelta(hours=1))


def buckets(*rates: float | None) -> list[Bucket]:
    return [Bucket(NOON + timedelta(seconds=10 * n), rate, rate) for n, rate in enumerate(rates)]


def running(ceiling: float | None) -> list[CeilingStep]:
    """One run over all of the range."""
    return [CeilingStep(NOON, None, ceiling)]


def names(figure: object) -> list[str]:
    return [trace.name for trace in figure.data]  # type: ignore[attr-defined]


def test_no_data_is_a_gap_never_a_zero() -> None:
    chart = transactions_chart(buckets(5, None, 0), running(1000), HOUR)
    assert list(chart.figure.data[0].y) == [5, None, 0]
    assert chart.figure.data[0].connectgaps is False


def test_a_ceiling_far_above_is_named_but_does_not_flatten_the_series() -> None:
    chart = transactions_chart(buckets(5, 6), running(1000), HOUR)
    assert set(chart.figure.data[1].y) == {None}
    assert "off scale" in chart.figure.data[1].name
    assert list(transactions_chart(buckets(500), running(1000), HOUR).figure.data[1].y) == [1000, 1000, None]


def test_polling_without_pause_has_no_ceiling() -> None:
    chart = transactions_chart(buckets(5), running(None), HOUR)
    assert names(chart.figure) == ["transactions/s", None]
    assert "no ceiling" in chart.alt


def test_the_ceiling_is_a_step_for_each_run_and_ends_with_it() -> None:
    steps = [
        CeilingStep(NOON - MINUTE, NOON + MINUTE, 10),
        CeilingStep(NOON + 2 * MINUTE, NOON + 3 * MINUTE, None),
        CeilingStep(NOON + 3 * MINUTE, None, 40),
    ]
    minutely = [Bucket(NOON + n * MINUTE, rate, rate) for n, rate in enumerate([5, 5, 5, 30])]
    chart = transactions_chart(minutely, steps, HOUR)
    line = chart.figure.data[1]
    assert list(line.y) == [10, 10, None, None, None, None, 40, 40, None]
    assert (line.x[0], line.x[1], line.x[7]) == (*map(HOUR.at, (NOON, NOON + MINUTE, HOUR.end)),)
    assert line.name == "ceiling 40 tran/s (peak 75% used)"
    assert list(chart.figure.data[0].customdata) == [", 50% of the ceiling", "", "", ", 75% of the ceiling"]
    assert chart.table["of the ceiling"].tolist()[::3] == [0.5, 0.75]
    assert chart.alt.endswith("ceiling 40 tran/s (75% used at the peak).")
    near = transactions_chart(minutely, [steps[0], CeilingStep(NOON + 2 * MINUTE, None, 1000)], HOUR)
    assert near.figure.data[1].name == "ceiling 1,000 tran/s (peak 50% used, off scale)"
    far = transactions_chart(minutely, [CeilingStep(NOON, NOON + MINUTE, 1000), steps[2]], HOUR)
    assert far.figure.data[1].name == "ceiling 40 tran/s (peak 75% used, earlier ones off scale)"


def test_an_empty_chart_says_why() -> None:
    chart = transactions_chart(buckets(None, None), running(1000), HOUR)
    assert chart.figure.layout.annotations[0].text == "No scan in this range"


def test_empty_runs_lie_on_the_baseline_of_latency() -> None:
    points = latencies([scan(1, 60, trans=3)], HOUR.start, HOUR.end, 10)
    run = EmptyRun(NOON, NOON + timedelta(seconds=30), 6)
    chart = latency_chart(points, [run], [], [], HOUR)
    assert names(chart.figure) == ["latency", "empty scans"]
    assert list(chart.figure.data[0].y) == [2.0]
    assert chart.table["session_id"].tolist() == [1]


def test_latency_above_the_alert_threshold_lies_in_a_band() -> None:
    points = latencies([scan(1, 60, trans=3), scan(2, 120, trans=3)], HOUR.start, HOUR.end, 10)
    chart = latency_chart(points, [], [], [], HOUR, threshold=1.5)
    line, band, _latency = chart.figure.data
    assert (line.name, list(line.y)) == ("alert above 1.5 s", [1.5, 1.5])
    assert list(band.y) == [pytest.approx(2.2)] * 2
    assert chart.alt == (
        "Latency: last 2 s, worst 2 s; 2 points above the alert threshold of 1.5 s; 0 errors."
    )
    far = latency_chart(points, [], [], [], HOUR, threshold=60)
    assert names(far.figure) == ["alert above 1 m 00 s (off scale)", "latency"]
    assert set(far.figure.data[0].y) == {None}


def test_the_scale_of_latency_can_be_chosen() -> None:
    points = latencies([scan(1, 60, trans=3), scan(2, 120, trans=3)], HOUR.start, HOUR.end, 10)
    kinds = [latency_chart(points, [], [], [], HOUR, None, each).figure for each in (None, True, False)]
    assert [figure.layout.yaxis.type for figure in kinds] == [None, "log", None]
    assert latency_chart([], [], [], [], HOUR, 60, True).figure.layout.yaxis.type is None


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
    assert [chart.figure.layout.yaxis.ticktext[place] for place in valid.y] == ["a"]
    assert [bar.x[0] / 60000 for bar in (valid, quiet, tail)] == [20, 9, 1]
    assert "not established yet" in chart.alt


def marked(*bookmarks: Bookmark, **cleanup: object) -> Lane:
    return replace(lane("a", "dbo.A", NOON), bookmarks=bookmarks, **cleanup)  # type: ignore[arg-type]


def test_cleanup_is_a_dashed_and_a_dotted_line_across_the_lane_and_the_key_says_so() -> None:
    after = NOON + timedelta(minutes=5)
    held = marked(horizon=NOON + timedelta(minutes=10), low_after=after, waits_for="etl")
    chart = validity_chart([held, lane("new", "dbo.B", None)], HOUR, NOON + timedelta(minutes=30))
    traces = {trace.name: trace for trace in chart.figure.data}
    horizon, dotted = traces["retention horizon"], traces["low after cleanup"]
    assert (horizon.line.dash, dotted.line.dash) == ("dash", "dot")
    assert (set(horizon.x), set(dotted.x)) == ({"2026-11-21 12:10:00.000", None}, {HOUR.at(after), None})
    place = list(chart.figure.layout.yaxis.ticktext).index("a")
    assert [round(y - place, 2) for y in dotted.y if y is not None] == [-0.42, 0, 0.42]
    assert dotted.customdata[0].endswith("from 2026-11-21 12:05:00.000 UTC: it waits for client etl")
    key = chart.figure.layout.annotations[0].text
    assert "retention horizon" in key
    assert "client" not in key.replace("waits for client", "")
    assert "after cleanup from 25 m 00 s ago, cleanup waits for client etl" in chart.alt
    assert chart.table["retention horizon"].tolist() == ["2026-11-21 12:10:00.000 UTC", "—"]
    assert chart.table["cleanup waits for"].tolist() == ["etl", "—"]


def test_how_far_clients_have_come_is_marked_and_one_that_cleanup_has_passed_apart() -> None:
    reader = Bookmark("etl", "0x05", NOON + timedelta(minutes=5))
    lost = Bookmark("<late>", "0x00", NOON, is_behind=True, is_silent=True)
    chart = validity_chart([marked(reader, lost)], HOUR, NOON + timedelta(minutes=30))
    *_, fine, failing = chart.figure.data
    assert (fine.name, list(fine.x)) == ("client", ["2026-11-21 12:05:00.000"])
    assert (failing.name, failing.marker.color) == ("client left behind", theme.FAILING)
    assert failing.marker.symbol != fine.marker.symbol
    assert "&lt;late&gt;" in failing.customdata[0]
    assert "the next cleanup drops it" in failing.customdata[0]
    assert "client left behind" in chart.figure.layout.annotations[0].text
    assert "client etl at 25 m 00 s ago, client <late> left behind at 30 m 00 s ago" in chart.alt
    [clients] = chart.table["clients"]
    assert clients.startswith("etl 2026-11-21 12:05:00.000 UTC 0x05; <late> ")


def key_of(chart: Chart) -> str:
    [text] = [each.text for each in chart.figure.layout.annotations if each.name == "key"]
    return re.sub("<[^>]*>|&nbsp;", " ", text)


def test_what_lies_outside_the_timeline_is_not_in_its_key_but_told() -> None:
    past = NOON - timedelta(days=1)
    away = marked(Bookmark("etl", "0x05", past), horizon=past, low_after=past)
    chart = validity_chart([away], HOUR, NOON, next_cleanup=NOON + timedelta(days=1))
    assert {trace.type for trace in chart.figure.data} == {"bar"}
    assert chart.table["clients"].tolist() != ["—"]
    key = key_of(chart)
    assert not [name for name in ("low after cleanup", "next cleanup", "client", "▯") if name in key]
    assert key.endswith("◂ retention horizon earlier: 2026-11-20 12:00 UTC")


def test_the_key_names_what_can_be_seen() -> None:
    read = replace(lane("a", "dbo.A", NOON), captured_until=NOON + timedelta(minutes=20, seconds=1))
    chart = validity_chart([read], HOUR, NOON + timedelta(minutes=20, seconds=1))
    assert "captured, no changes" not in key_of(chart)
    assert "not captured yet" not in key_of(chart)
    stopped = validity_chart([read], HOUR, NOON + timedelta(minutes=30))
    assert "not captured yet" in key_of(stopped)


def test_the_next_cleanup_is_a_line_through_all_lanes() -> None:
    night = NOON + timedelta(minutes=50)
    both = [lane("a", "dbo.A", NOON), lane("b", "dbo.B", None)]
    chart = validity_chart(both, HOUR, NOON + timedelta(minutes=30), next_cleanup=night)
    line = chart.figure.data[-1]
    assert (line.name, set(line.x)) == ("next cleanup", {HOUR.at(night), None})
    assert [y for y in line.y if y is not None] == [-0.5, 0, 0.5, 0.5, 1, 1.5]
    assert "next cleanup" in key_of(chart)


def test_the_range_in_the_header_is_a_band_where_the_timeline_is_wider() -> None:
    now = NOON + timedelta(minutes=30)

    def bands(start: int, end: int) -> list[tuple[str, str]]:
        chosen = TimeRange(NOON + timedelta(minutes=start), NOON + timedelta(minutes=end))
        chart = validity_chart([lane("a", "dbo.A", NOON)], HOUR, now, chosen)
        found = [shape for shape in chart.figure.layout.shapes if shape.name == "range in the header"]
        assert ("▯" in key_of(chart)) is bool(found)
        return [(shape.x0[11:16], shape.x1[11:19]) for shape in found]

    assert bands(15, 30) == [("12:15", "12:30:05")]
    assert bands(-20, 10) == [("12:00", "12:10:05")]
    assert bands(-20, 31) == bands(-20, -10) == []


def test_a_tick_leaves_the_timeline_as_it_is_until_now_moves_by_a_pixel() -> None:
    def drawn(second: float) -> str:
        now = NOON + timedelta(minutes=30, seconds=second)
        chosen = TimeRange(now - timedelta(minutes=15), now)
        return str(validity_chart([lane("a", "dbo.A", NOON)], HOUR, now, chosen).figure.to_json())

    assert drawn(0) == drawn(2) == drawn(4.9)
    assert drawn(0) != drawn(5)


def test_now_is_never_drawn_before_what_is_captured() -> None:
    now = NOON + timedelta(minutes=29, seconds=4)
    read = replace(lane("a", "dbo.A", NOON), captured_until=now - timedelta(seconds=1))
    chart = validity_chart([read], HOUR, now)
    assert chart.figure.layout.shapes[0].x0 == HOUR.at(now - timedelta(seconds=1))
    assert list(chart.figure.data[2].x) == []


def paused(*pauses: tuple[int, int], known_since: int = -60, lanes: Sequence[Lane] = ()) -> Chart:
    """The timeline at half past twelve with these pauses, in minutes after noon."""
    spans = tuple(ScanPause(NOON + timedelta(minutes=a), NOON + timedelta(minutes=b)) for a, b in pauses)
    known = ScanPauses(NOON + timedelta(minutes=known_since), spans)
    drawn = lanes or [lane("a", "dbo.A", NOON)]
    return validity_chart(drawn, HOUR, NOON + timedelta(minutes=30), pauses=known)


def test_where_no_scan_read_the_log_is_a_band_and_a_strip_that_says_so_and_the_interval_goes_on() -> None:
    chart = paused((-10, 5), (8, 12))
    strip = chart.figure.data[-1]
    assert strip.name == "no scan"
    assert [(base[11:16], length / 60000) for base, length in zip(strip.base, strip.x, strict=True)] == [
        ("12:00", 5),
        ("12:08", 4),
    ]
    assert "<b>No scan</b> read the log for 4 m 00 s" in strip.customdata[1]
    assert max(strip.y) < chart.figure.data[0].y[0] - 0.5, "no click on it opens an instance"
    bands = [shape.x0[11:16] for shape in chart.figure.layout.shapes if shape.name == "gap"]
    assert bands == ["12:00", "12:08"]
    assert chart.figure.data[0].x == paused().figure.data[0].x
    assert "no scan" in key_of(chart)
    assert chart.alt.endswith("2 pauses of capture.")
    assert chart.table["without a scan"].tolist() == ["2 times, 9 m 00 s in all"]


def test_of_scans_that_are_not_kept_the_timeline_says_that_nobody_knows() -> None:
    chart = paused(known_since=10)
    strip = chart.figure.data[-1]
    assert (strip.name, strip.base[0][11:16], strip.x[0] / 60000) == ("scans not known", "12:00", 10)
    assert "scans not known" in key_of(chart)
    young = [lane("a", "dbo.A", NOON + timedelta(minutes=10))]
    met_later = replace(young[0], low=NOON + timedelta(minutes=9, seconds=20))
    unborn = lane("new", "dbo.B", None)
    for same in (paused(), *(paused(known_since=10, lanes=each) for each in (young, [met_later], [unborn]))):
        assert "scan" not in key_of(same)
        assert same.figure.layout.yaxis.range[0] == -0.5


def test_pauses_that_are_narrower_than_a_pixel_or_before_the_timeline_are_not_drawn() -> None:
    brief = ScanPause(NOON + timedelta(minutes=1), NOON + timedelta(minutes=1, seconds=4))
    long_ago = ScanPause(NOON - timedelta(hours=2), NOON - timedelta(hours=1))
    known = ScanPauses(NOON - timedelta(hours=3), (long_ago, brief))
    chart = validity_chart([lane("a", "dbo.A", NOON)], HOUR, NOON + timedelta(minutes=30), pauses=known)
    assert "no scan" not in names(chart.figure)
    assert chart.table["without a scan"].tolist() == ["1 time, 4 s in all"]


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
    first, second = (
        transactions_chart(buckets(5, None, 0), running(1000), HOUR).figure.to_json() for _ in range(2)
    )
    assert first == second


def test_the_area_below_a_series_does_not_bridge_what_is_not_known() -> None:
    line, _ceiling, area = transactions_chart(buckets(5, None, 4), running(10), HOUR).figure.data
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


def changes(*told: tuple[int, int, bytes | None], instance: str = "dbo_t") -> list:
    """Changes by (operation, seqval, mask); columns a and b."""
    rows = [
        {"__$start_lsn": "0x01", "__$seqval": f"0x{seqval:02}", "__$operation": operation}
        | {"__$update_mask": mask, "a": seqval, "b": -seqval}
        for operation, seqval, mask in told
    ]
    return fold(rows, instance, ["a", "b"])


def test_the_mask_matrix_fills_the_bits_of_updates_and_leaves_the_others_hollow() -> None:
    shown = changes((4, 9, b"\x02"), (3, 9, b"\x02"), (4, 8, b"\x03"), (3, 8, b"\x03"), (2, 7, b"\x03"))
    shares, filled, hollow = mask_matrix(shown, ["a", "b"]).figure.data
    assert list(shares.y) == [0.5, 1.0]
    assert list(zip(filled.x, filled.y, strict=True)) == [(2, 0), (1, 1), (2, 1)]
    assert list(zip(hollow.x, hollow.y, strict=True)) == [(1, 2), (2, 2)]
    assert (filled.marker.symbol, hollow.marker.symbol) == ("square", "square-open")
    assert "b 100%, a 50%" in mask_matrix(shown, ["a", "b"]).alt


def test_a_matrix_without_masks_says_so() -> None:
    chart = mask_matrix(changes((5, 1, None)), ["a", "b"])
    assert chart.figure.layout.annotations[0].text == "This query returns no mask (NULL)"
    assert chart.table["share of updates"].isna().all()


def test_a_transaction_has_its_changes_in_order_and_a_lane_for_each_instance() -> None:
    order = [
        *changes((2, 1, b"\x03")),
        *changes((1, 2, b"\x03"), instance="dbo_u"),
        *changes((2, 3, b"\x03")),
    ]
    chart = transaction_chart(order, shown=1)
    [points] = chart.figure.data
    assert list(points.x) == [1, 2, 3]
    assert list(points.y) == [0, 1, 0]
    assert list(points.marker.symbol) == ["cross", "x", "cross"]
    assert list(points.marker.line.width) == [0, 3, 0]
    assert list(chart.figure.layout.yaxis.ticktext) == ["dbo_t", "dbo_u"]
    assert chart.alt == "A transaction of 3 changes in engine order: 2 of dbo_t, 1 of dbo_u."


MIB = 2**20


def held(minute: int, mib: int, safe: int | None = None, status: str = "reserved") -> LogSample:
    return sample(NOON + minute * MINUTE, mib * MIB, None if safe is None else safe * MIB, status)


def test_the_log_held_has_its_limit_above_it_and_no_line_across_a_gap() -> None:
    gap = HistoryBreak(BreakKind.GAP, NOON + 5 * MINUTE, NOON + 15 * MINUTE)
    chart = log_held_chart([held(0, 10, 54), held(5, 30, 34), held(15, 40, 24)], [gap], HOUR)
    limit, line = chart.figure.data
    assert list(line.y) == [10, 30, None, 40]
    assert (limit.name, list(limit.y), limit.line.shape) == ("limit 64 MiB", [64, 64, 64], "hv")
    assert [shape.name for shape in chart.figure.layout.shapes] == ["gap"]
    assert chart.alt == "Log held: last 40 MiB, at most 40 MiB; limit 64 MiB."


def test_a_limit_far_above_the_log_held_is_named_and_none_at_all_is_said() -> None:
    far, _line = log_held_chart([held(0, 1, 10_000)], [], HOUR).figure.data
    assert (list(far.y), far.name) == ([None], "limit 9.8 GiB (off scale)")
    none = log_held_chart([held(0, 1)], [], HOUR)
    assert names(none.figure) == ["no limit (max_slot_wal_keep_size = -1)", "log held"]
    assert "no limit" in none.alt


def test_log_that_is_lost_is_a_cross_and_tells_no_limit() -> None:
    chart = log_held_chart([held(0, 20, 44), held(5, 0, None, "lost")], [], HOUR)
    assert names(chart.figure) == ["limit 64 MiB", "log lost", "log held"]
    assert chart.alt.endswith("log that capture needs was lost.")
    assert log_held_chart([], [], HOUR).figure.layout.annotations[0].text == "Nothing is known of this range"


@pytest.mark.parametrize(
    ("safe", "forecast", "words"),
    [
        (34, None, "Now 30 MiB of at most 64 MiB (47%). How fast the log grows is not known yet."),
        (
            34,
            LogForecast(MIB, timedelta(seconds=34), None, is_growing=True),
            "Now 30 MiB of at most 64 MiB (47%). The log grows by 1 MiB/s: the limit is reached in 34 s.",
        ),
        (
            None,
            LogForecast(MIB, None, timedelta(hours=3), is_growing=False),
            "Now 30 MiB, no limit (max_slot_wal_keep_size = -1). The log grows by 1 MiB/s: "
            "if capture stopped now, the source's disk is full in 3 h 00 m.",
        ),
    ],
)
def test_the_forecast_of_the_log_held_is_said_in_words(
    safe: int | None, forecast: LogForecast | None, words: str
) -> None:
    room = None if safe is None else safe * MIB
    slot = SlotState("s", Lsn.ZERO, Lsn.ZERO, 30 * MIB, "reserved", room, None)
    assert log_held_words(slot, forecast) == words


def test_a_chart_of_the_log_held_has_the_most_of_each_stretch() -> None:
    found = [held(0, 1), held(1, 5), held(2, 3), held(61, 2)]
    assert [each.held // MIB for each in most_of_each(found, 3600)] == [5, 2]
