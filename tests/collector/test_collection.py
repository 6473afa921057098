"""Snapshots in the lake: what they hold, what counts of them, how they expire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engine.capture.crash_points import CollectionCrashPoint, CrashPoints
from engine.collector.file_history import FileHistory
from engine.collector.history import History, SparkHistory
from engine.collector.ranges import HistoryRange
from engine.errors import CollectorObjectExists, InvalidObjectName
from engine.model.collection import BreakKind
from engine.model.job import RunOutcome
from engine.model.scan_session import ScanError
from tests.capture.conftest import DATABASE
from tests.collector.conftest import Bench, CutAt

FAR = timedelta(days=400)


def everything(bench):
    now = bench.workbench.clock.now
    return now - FAR, now + FAR


def sessions(bench, database=None):
    found = bench.workbench.engine.collected_sessions(*everything(bench), database)
    return sorted(
        (row.engine_start, row.session_id, row.tran_count, row.empty_scan_count) for row in found.collect()
    )


def changed(bench, rows):
    """One scan session that captures so many rows."""
    for number in rows:
        bench.workbench.sql(f"INSERT INTO t VALUES ({number})")
    bench.workbench.clock.pass_(1)
    bench.workbench.drain(bench.scan)


@pytest.fixture
def tracked(bench):
    """A database with a tracked table, and a scan that goes on from session to session as an agent's does."""
    bench.workbench.sql("CREATE TABLE t (id int PRIMARY KEY)")
    bench.workbench.enable("t")
    bench.scan = bench.workbench.scan()
    bench.workbench.drain(bench.scan)
    return bench


def test_a_snapshot_has_all_five_tables_and_says_when_by_whom_and_of_what(tracked):
    bench = tracked
    workbench = bench.workbench
    changed(bench, [1, 2])
    workbench.control.errors.add(
        DATABASE, ScanError(0, 0, workbench.clock(), 22852, 16, 1, "an error", "0", "0", "0")
    )
    run = bench.collect(1)
    assert (run.outcome, run.agent_start, run.snapshot_time) == (
        RunOutcome.SUCCEEDED,
        bench.agent_start,
        workbench.clock.now,
    )
    assert run.interval_seconds == 300
    counts = {
        name: len(bench.rows(name))
        for name in ("cdc_log_scan_data", "cdc_errors_data", "cdc_job_data", "cdc_slot_data",
                     "cdc_table_size_data")
    }  # fmt: skip
    assert sum(counts.values()) == run.rows
    assert (counts["cdc_errors_data"], counts["cdc_job_data"], counts["cdc_slot_data"]) == (1, 2, 1)
    assert sorted(bench.rows("cdc_table_size_data", "table_name, row_count > 0, file_count > 0")) == [
        ("lsn_time_mapping", True, True),
        ("public_t_CT", True, True),
    ]
    assert bench.rows("cdc_table_size_data", "row_count", "capture_instance = 'public_t'") == [2]
    [(status, retained, message)] = bench.rows("cdc_slot_data", "wal_status, retained_bytes, message")
    assert (status, retained >= 0, message) == ("reserved", True, None)
    start = workbench.control.sessions.runs([DATABASE])[DATABASE]
    kinds = "DISTINCT database_name, snapshot_id, snapshot_time, engine_start, agent_start, collection_set_id"
    for name in counts:
        assert bench.rows(name, kinds) == [
            (DATABASE, run.snapshot_id, *map(_plain, (run.snapshot_time, start, bench.agent_start)), 1)
        ]
    assert 0 in bench.rows("cdc_log_scan_data", "session_id")


def _plain(moment):
    """As a classic session's rows have it: in this machine's zone, without one."""
    return moment.astimezone().replace(tzinfo=None)


def test_a_session_is_told_once_as_it_was_last(tracked):
    bench = tracked
    workbench = bench.workbench
    changed(bench, [1])
    bench.collect()
    changed(bench, [2])
    workbench.drain(bench.scan)  # empty scans go on in one row
    bench.collect()
    workbench.drain(bench.scan)
    workbench.drain(bench.scan)
    bench.collect()
    start = workbench.control.sessions.runs([DATABASE])[DATABASE]
    expected = [
        (_plain(start), each.session_id, each.tran_count, each.empty_scan_count)
        for each in workbench.control.sessions.list(DATABASE, 100)
    ]
    assert expected[-1][3] == 3
    assert sessions(bench) == sessions(bench, DATABASE) == expected
    assert sessions(bench, "other") == []
    ids = bench.rows("cdc_log_scan_data", "session_id", "session_id <> 0")
    assert len(ids) > len(set(ids)), "snapshots repeat the session that was the newest before"
    [point] = workbench.engine.collected_series(*everything(bench), bucket_seconds=86_400 * 4000)
    assert (point.database, point.sessions, point.empty_scan_count) == (DATABASE, len(expected), 3)
    assert point.tran_count == sum(each[2] for each in expected)
    assert point.command_rate is None or point.command_rate > 0


def test_spark_alone_tells_the_same_as_the_files(tracked):
    """A lake that is no folder of this machine, and answers too large to be held, are told by Spark."""
    bench = tracked
    w = bench.workbench
    for number in range(3):
        changed(bench, [number])
        bench.collect()
        w.clock.pass_(40_000)
    bench.scan = w.scan()
    changed(bench, [3])
    bench.collect()
    runs = w.control.collection_runs.list(bench.number, 10)
    low, high = everything(bench)
    files, spark = FileHistory(w.lake), SparkHistory(w.spark, w.lake)
    for asked in (
        HistoryRange(low, high),
        HistoryRange(low, high, DATABASE),
        HistoryRange(low, high, "it's another"),
        HistoryRange(low, high, None, None, [runs[0].snapshot_id]),
        HistoryRange(runs[2].snapshot_time, runs[1].snapshot_time, None, runs[0].snapshot_time),
    ):
        by_spark = spark.sessions(asked).toArrow().to_pylist()
        key = lambda row: (row["engine_start"], row["session_id"])  # noqa: E731
        found = files.sessions(asked)
        assert sorted(found.to_pylist(), key=key) == sorted(by_spark, key=key)
        assert spark.sessions(asked).toArrow().schema.names == found.schema.names
        assert History(lambda: w.spark, w.lake).sessions(asked).count() == len(by_spark)
        assert files.series(asked, 3600) == spark.series(asked, 3600)
        assert files.engine_restarts(asked) == spark.engine_restarts(asked)
    assert len(files.engine_restarts(HistoryRange(low, high))) == 1


def test_ranges_that_meet_lose_and_repeat_nothing(tracked):
    bench = tracked
    engine = bench.workbench.engine
    for number in range(4):
        changed(bench, [number])
    bench.collect()
    begun = [each.start_time for each in bench.workbench.control.sessions.list(DATABASE, 100)]
    low, high = everything(bench)

    def ids(start, end):
        return sorted(row.session_id for row in engine.collected_sessions(start, end).collect())

    assert ids(low, begun[2]) + ids(begun[2], high) == ids(low, high)
    assert ids(begun[1], begun[3]) == [2, 3]
    assert ids(begun[1], begun[1]) == []


@pytest.mark.parametrize(
    "place",
    [CutAt(CollectionCrashPoint.BETWEEN_OUTPUT_TABLES), CutAt(CollectionCrashPoint.BEFORE_COUNTING)],
    ids=["between two tables", "before it counts"],
)
def test_a_collection_that_was_cut_leaves_nothing_in_what_is_told(tracked, place):
    bench = tracked
    engine = bench.workbench.engine
    bench.add_slots()
    changed(bench, [1])
    whole = bench.collect()
    told = sessions(bench)
    changed(bench, [2])
    bench.workbench.clock.pass_(300)
    bench.crash = place
    bench.restart()
    with pytest.raises(SystemExit):
        bench.collect()
    cut = bench.workbench.control.collection_runs.list(bench.number, 1)[0]
    assert (cut.snapshot_id > whole.snapshot_id, cut.outcome) == (True, RunOutcome.RUNNING)
    assert cut.snapshot_id in bench.rows("cdc_log_scan_data", "snapshot_id"), "half a snapshot is there"
    assert sessions(bench) == told
    assert {row.snapshot_id for row in engine.custom_snapshots("cdc_log_scan_data").collect()} == {
        whole.snapshot_id
    }
    bench.crash = CrashPoints()
    bench.restart()
    bench.workbench.clock.pass_(300)
    again = bench.collect()
    assert again.outcome is RunOutcome.SUCCEEDED
    [_, interrupted, _] = engine.collection_runs(bench.number)
    assert (interrupted.outcome, interrupted.end_time) == (RunOutcome.INTERRUPTED, None)
    assert len(sessions(bench)) == len(told) + 1
    slots = engine.custom_snapshots("cdc_slot_data").collect()
    assert sorted(row.snapshot_id for row in slots) == [whole.snapshot_id, again.snapshot_id]
    low, high = everything(bench)
    found = engine.collection_breaks(low, high, None, bench.number)
    assert [each.kind for each in found] == [BreakKind.AGENT_RESTART, BreakKind.GAP]
    gap = next(each for each in found if each.kind is BreakKind.GAP)
    assert (gap.start, gap.end) == (whole.snapshot_time, again.snapshot_time)
    assert gap.reason == "The agent ended while it ran."


def test_sessions_of_a_run_that_ended_unseen_are_told_after_it(tracked):
    """The view forgets them at a restart; nothing is lost between the last snapshot and the end."""
    bench = tracked
    changed(bench, [1])
    bench.collect()
    changed(bench, [2])
    before = bench.workbench.control.sessions.list(DATABASE, 100)
    bench.workbench.clock.pass_(3600)
    bench.scan = bench.workbench.scan()
    changed(bench, [3])
    bench.restart()
    bench.collect()
    found = sessions(bench)
    assert len({row[0] for row in found}) == 2
    assert len(found) == len(before) + 1
    [restart] = [
        each
        for each in bench.workbench.engine.collection_breaks(*everything(bench))
        if each.kind is BreakKind.ENGINE_RESTART
    ]
    assert restart.database == DATABASE
    # The clock goes back by days, and another run begins: its sessions are told as well.
    bench.workbench.clock.pass_(-86_400 * 3)
    bench.scan = bench.workbench.scan()
    changed(bench, [4])
    bench.collect()
    assert len(sessions(bench)) == len(found) + 1


def test_what_expires_goes_in_whole_files_and_days_become_one_file_each(tracked):
    bench = tracked
    workbench = bench.workbench
    start = workbench.clock.now = datetime(2026, 3, 1, 10, tzinfo=UTC)
    for day in range(4):
        workbench.clock.now = start + timedelta(days=day)
        for _ in range(2):
            bench.collect()
            workbench.clock.pass_(300)
    path = workbench.lake.custom_snapshots("cdc_log_scan_data")
    days = "snapshot_date, count(DISTINCT _metadata.file_path), count(DISTINCT snapshot_id)"
    grouped = f"SELECT {days} FROM delta.`{path}` GROUP BY 1 ORDER BY 1"

    def by_day():
        return [(row[0].day, row[1], row[2]) for row in workbench.spark.sql(grouped).collect()]

    assert by_day() == [(1, 1, 2), (2, 1, 2), (3, 1, 2), (4, 2, 2)]
    workbench.engine.update_collection_set(bench.number, days_until_expiration=2)
    bench.run()
    assert by_day() == [(2, 1, 2), (3, 1, 2), (4, 1, 2)]
    deletes = workbench.spark.sql(f"DESCRIBE HISTORY delta.`{path}`").where("operation = 'DELETE'").collect()
    assert deletes[0].operationMetrics["numRemovedFiles"] == "1"
    assert deletes[0].operationMetrics["numAddedFiles"] == "0"
    assert {run.snapshot_time.day for run in workbench.engine.collection_runs(bench.number)} == {1, 2, 3, 4}
    workbench.clock.pass_(86_400)
    bench.run()
    assert by_day() == [(3, 1, 2), (4, 1, 2)]
    assert {run.snapshot_time.day for run in workbench.engine.collection_runs(bench.number)} == {2, 3, 4}


def test_a_set_that_was_deleted_keeps_its_data_until_that_expires(tracked):
    bench = tracked
    engine, clock = bench.workbench.engine, bench.workbench.clock
    item = "<TSQLQueryCollector><Query><Value>SELECT * FROM sys.dm_cdc_log_scan_sessions</Value>"
    item += "<OutputTable>CDC_Log_Scan_Data</OutputTable></Query></TSQLQueryCollector>"
    number = engine.create_collection_set("mine", interval_minutes=5, days_until_expiration=3)
    with pytest.raises(CollectorObjectExists):
        engine.create_collection_set(" MINE ", interval_minutes=5)
    engine.create_collection_item(number, "sessions", item)
    engine.start_collection_set("Mine")
    run = bench.collect(number)
    assert set(bench.rows("cdc_log_scan_data", "collection_set_id")) == {number}
    engine.stop_collection_set(number)
    engine.delete_collection_set(number)
    assert [each.name for each in engine.collection_sets()] == ["Change Data Capture", "bench"]
    assert engine.create_collection_set("mine", interval_minutes=5) > number
    clock.pass_(86_400 * 3)
    bench.run()
    assert len(bench.rows("cdc_log_scan_data")) == run.rows
    clock.pass_(86_400)
    bench.run()
    assert bench.rows("cdc_log_scan_data") == []
    assert len(bench.workbench.control.collection_sets.upkeep()) == 3


def test_before_the_first_snapshot_there_is_nothing_and_no_error(bench: Bench):
    engine = bench.workbench.engine
    assert sessions(bench) == []
    assert engine.collected_series(*everything(bench)) == []
    assert engine.collection_breaks(*everything(bench)) == []
    assert len(engine.collected_sessions(*everything(bench)).columns) == 23
    with pytest.raises(InvalidObjectName, match=r"custom_snapshots\.cdc_log_scan_data"):
        engine.custom_snapshots("cdc_log_scan_data")
