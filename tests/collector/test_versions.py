"""Sessions out of snapshots without repetition, and their sums: against the plainest way to say it."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.collector.breaks import Run, restarts
from engine.collector.file_history import points
from engine.collector.versions import Part, last_versions, told_once

ZERO = datetime(1969, 12, 30, tzinfo=UTC)
"""Stretches are counted from 1970, in both directions."""
MOMENT = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("database_name", pa.dictionary(pa.int32(), pa.string())),
        ("engine_start", MOMENT),
        ("session_id", pa.int32()),
        ("snapshot_id", pa.int64()),
        ("start_time", MOMENT),
        ("latency", pa.int32()),
    ]
    + [
        (name, pa.int64())
        for name in ("tran_count", "command_count", "log_record_count", "duration", "error_count")
    ]
    + [("empty_scan_count", pa.int64())]
)


@st.composite
def snapshots(draw):
    """Rows by day: sessions that come again for days, by a clock that goes back as well."""
    sessions = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["a", "b", "ü"]),
                st.sampled_from([None, ZERO, ZERO + timedelta(days=1)]),
                st.integers(1, 2**31 - 1),
                st.integers(0, 6 * 24),
            ),
            max_size=25,
            unique_by=lambda each: each[:3],
        )
    )
    days, snapshot = defaultdict(list), 0
    for database, run, number, hours in sessions:
        begun = ZERO + timedelta(hours=hours)
        later = st.lists(st.integers(-3 * 86_400, 3 * 86_400), max_size=4)
        for seconds in draw(later):
            snapshot += draw(st.integers(-2, 3))
            values = draw(st.lists(st.integers(0, 9), min_size=7, max_size=7))
            row = (database, run, number, snapshot, begun, *values)
            if not any(row[:4] == other[:4] for rows in days.values() for other in rows):
                days[(begun + timedelta(seconds=seconds)).date()].append(row)
    return days


def table(rows):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def expected(days):
    last = {}
    for row in (row for rows in days.values() for row in rows):
        if row[:3] not in last or last[row[:3]][3] < row[3]:
            last[row[:3]] = row
    return last


def by_day(days, is_known=True):
    """As the files are: the newest day first, each with the latest begin of all days before it."""
    parts, latest = [], datetime.min.replace(tzinfo=UTC)
    for day in sorted(days):
        parts.insert(0, Part(table(days[day]), latest if is_known or not parts else None))
        latest = max([latest, *(row[4] for row in days[day])])
    return parts


@given(snapshots(), st.booleans())
def test_each_session_is_told_once_by_its_newest_snapshot(days, is_known):
    told = [tuple(row.values()) for part in told_once(by_day(days, is_known)) for row in part.to_pylist()]
    assert len(told) == len({row[:3] for row in told})
    assert {row[:3]: row for row in told} == expected(days)


@given(snapshots(), st.sampled_from([1, 300, 3600, 86_400 * 3]))
def test_sums_are_those_of_the_sessions(days, seconds):
    stretches = defaultdict(list)
    for row in expected(days).values():
        stretch = int(row[4].timestamp() // seconds) * seconds
        stretches[row[0], datetime.fromtimestamp(stretch, UTC)].append(row)
    found = points(told_once(by_day(days)), seconds)
    assert [(each.database, each.start) for each in found] == sorted(stretches)
    for point in found:
        rows = stretches[point.database, point.start]
        working = [row[5] for row in rows if row[6] > 0]
        assert point.sessions == len(rows)
        assert point.latency_max == max(working, default=None)
        assert point.latency_mean == (sum(working) / len(working) if working else None)
        sums = [sum(row[place] for row in rows) for place in range(6, 11)]
        assert sums == [
            point.tran_count,
            point.command_count,
            point.log_record_count,
            point.duration,
            point.error_count,
        ]
        assert point.empty_scan_count == max(row[11] for row in rows)


def test_many_runs_with_high_numbers_stay_apart():
    """Numbers of several columns that no longer fit into 64 bits together are made dense first."""
    most = 2**31 - 1
    rows = [
        (
            f"database {each % 90}",
            ZERO + timedelta(seconds=each),
            1 + each * (most // 6000),
            1,
            ZERO,
            *[1] * 7,
        )
        for each in range(6000)
    ]
    assert last_versions(table(rows * 2)).num_rows == len(rows)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 50)), unique=True, max_size=12))
def test_runs_of_a_database_follow_each_other_in_the_order_of_their_snapshots(runs):
    at = [Run(name, number, ZERO + timedelta(days=number), ZERO + timedelta(days=number, hours=1))
          for name, number in runs]  # fmt: skip
    found = restarts(at)
    assert len(found) == sum(max(len([run for run in runs if run[0] == name]) - 1, 0) for name in "ab")
    assert all(each.start < each.end for each in found)
    assert found == restarts(reversed(at))
