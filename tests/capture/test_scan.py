from dataclasses import replace

import pytest

from engine.errors import CapturedColumnChanged, LeaseLost, LogBroken
from engine.model.job import CaptureParameters
from engine.model.lsn import Lsn
from tests.capture.conftest import DATABASE, DRAIN


@pytest.fixture
def t(workbench):
    """A tracked table that the first scan has recognised."""
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    workbench.enable("t")
    workbench.drain()
    return workbench.engine.help_change_data_capture(DATABASE)[0]


def operations(rows):
    return [(row["__$operation"], row["id"], row["name"]) for row in rows]


def test_changes_since_the_recognition_reach_the_change_table(workbench):
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    workbench.sql("INSERT INTO t VALUES (1, 'before')")
    workbench.enable("t")
    workbench.sql("INSERT INTO t VALUES (2, 'a'); UPDATE t SET name = 'b' WHERE id = 2; DELETE FROM t")
    session = workbench.drain()
    found = operations(workbench.rows("public_t"))
    assert found == [(2, 2, "a"), (3, 2, "a"), (4, 2, "b"), (1, 1, "before"), (1, 2, "b")]
    assert (session.tran_count, session.command_count, session.scan_phase) == (1, 4, "Done")


def test_an_instance_starts_at_the_commit_that_enabled_it(workbench, t):
    assert t.start_lsn is not None
    assert t.start_lsn <= workbench.control.watermarks.get(DATABASE).high
    assert str(t.start_lsn) in [row["start_lsn"] for row in workbench.mapping()]


def test_each_transaction_with_rows_has_one_mapping_row(workbench, t):
    workbench.sql("INSERT INTO t VALUES (1, 'a')")
    workbench.sql("CREATE TABLE other (x int)")
    workbench.sql("INSERT INTO other VALUES (1)")
    workbench.sql("UPDATE t SET name = 'a'")
    workbench.sql("UPDATE t SET name = 'b'")
    workbench.drain()
    commits = {row["__$start_lsn"] for row in workbench.rows(t)}
    assert [row["start_lsn"] for row in workbench.mapping()] == [str(t.start_lsn), *sorted(commits)]
    assert all(row["tran_begin_time"] is None and row["tran_end_time"] for row in workbench.mapping())
    assert max(commits) == str(workbench.control.watermarks.get(DATABASE).high)


def test_a_second_instance_has_its_own_columns_and_start(workbench, t):
    workbench.sql("INSERT INTO t VALUES (1, 'a')")
    workbench.enable("t", capture_instance="ids", captured_column_list="id")
    workbench.sql("INSERT INTO t VALUES (2, 'b'); UPDATE t SET name = 'c'")
    workbench.drain()
    assert len(workbench.rows(t)) == 6
    assert [(row["__$operation"], row["id"], row["__$update_mask"]) for row in workbench.rows("ids")] == [
        (2, 2, b"\x01")
    ]


def test_what_follows_the_end_of_an_instance_is_not_captured(workbench, t):
    workbench.enable("t", capture_instance="second")
    workbench.sql("INSERT INTO t VALUES (1, 'a')")
    workbench.engine.disable_table(DATABASE, "public", "t", t.capture_instance)
    workbench.sql("INSERT INTO t VALUES (2, 'b')")
    workbench.drain()
    names = [one.capture_instance for one in workbench.engine.help_change_data_capture(DATABASE)]
    assert names == ["second"]
    assert operations(workbench.rows("second")) == [(2, 1, "a"), (2, 2, "b")]
    assert not workbench.lake.root or workbench.control.instances.dropped(DATABASE) == []


def test_a_cycle_never_takes_more_than_maxtrans_and_a_session_never_more_cycles_than_maxscans(workbench, t):
    for number in range(7):
        workbench.sql(f"INSERT INTO t VALUES ({number}, 'x')")
    scan = workbench.scan()
    counts = [
        session.tran_count
        for _ in range(3)
        if (session := scan.run(CaptureParameters(maxtrans=2, maxscans=2), lambda: False))
    ]
    assert counts == [4, 3]
    assert len(workbench.rows(t)) == 7


def test_a_session_row_has_the_references_columns(workbench, t):
    workbench.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    begun = workbench.control.watermarks.get(DATABASE).checkpoint
    session = workbench.drain()
    commit = Lsn.parse(workbench.rows(t)[0]["__$start_lsn"]).groups
    assert session == replace(
        session,
        scan_phase="Done",
        error_count=0,
        start_lsn=begun.groups,
        end_lsn=session.current_lsn,
        tran_count=1,
        last_commit_lsn=commit,
        log_record_count=2,
        schema_change_count=0,
        command_count=2,
        last_commit_cdc_lsn=commit,
        empty_scan_count=0,
        failed_sessions_count=0,
    )
    assert session.first_begin_cdc_lsn != Lsn.ZERO.groups
    assert session.last_commit_cdc_time == session.last_commit_time is not None
    assert workbench.control.sessions.list(DATABASE, 1) == [session]


def test_empty_scans_share_one_row(workbench, t):
    scan = workbench.scan()
    found = [workbench.drain(scan) for _ in range(3)]
    assert [session.empty_scan_count for session in found] == [1, 2, 3]
    assert len({session.session_id for session in found}) == 1
    workbench.sql("INSERT INTO t VALUES (1, 'a')")
    assert workbench.drain(scan).empty_scan_count == 0
    assert workbench.drain(scan).empty_scan_count == 1
    assert [session.empty_scan_count for session in workbench.control.sessions.list(DATABASE, 3)] == [3, 0, 1]


def test_empty_scans_of_many_calls_share_one_row(workbench, t):
    """A job that drains once, or a script that calls sp_cdc_scan, opens a scan each time."""
    assert [workbench.drain(workbench.scan()).empty_scan_count for _ in range(3)] == [1, 2, 3]
    workbench.sql("INSERT INTO t VALUES (1, 'a')")
    counts = [workbench.drain(workbench.scan()).empty_scan_count for _ in range(3)]
    assert counts == [0, 1, 2]
    sessions = workbench.control.sessions
    assert [session.empty_scan_count for session in sessions.list(DATABASE, 9)][-3:] == [3, 0, 2]
    assert sessions.aggregate(DATABASE).empty_scan_count == 5


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_jumps_does_not_hold_the_log(workbench, t, hours):
    """Idle looks are written down every few seconds, and not an hour later."""
    scan = workbench.scan()
    workbench.drain(scan)
    workbench.clock.pass_(hours * 3600)
    workbench.sql("CREATE TABLE other (x text); INSERT INTO other VALUES ('no change of ours')")
    mark = workbench.engine._databases.admin(DATABASE).mark()
    for _ in range(2):
        scan.run(DRAIN, lambda: False)
    assert workbench.control.watermarks.get(DATABASE).scanned >= mark
    before = workbench.control.watermarks.get(DATABASE)
    workbench.engine._databases.admin(DATABASE).mark()
    scan.run(DRAIN, lambda: False)
    assert workbench.control.watermarks.get(DATABASE) == before, "now and then, not at every look"


def test_writes_to_other_tables_do_not_hold_the_log(workbench, t):
    workbench.sql("CREATE TABLE other (x text)")
    workbench.sql("INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
    mark = workbench.sql("SELECT pg_current_wal_flush_lsn() - '0/0'")[0][0]
    workbench.drain()
    assert workbench.control.watermarks.get(DATABASE).scanned.position >= mark
    confirmed = workbench.sql("SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots")
    assert max(row[0] for row in confirmed) >= mark


def test_a_session_of_many_cycles_confirms_now_and_then_and_at_its_end(workbench, t):
    for number in range(7):
        workbench.sql(f"INSERT INTO t VALUES ({number}, 'a')")
    reached = []

    def stop() -> bool:
        """Asked in each cycle before it is published: the fourth comes two seconds later."""
        reached.append(workbench.engine.slot(DATABASE).confirmed)
        workbench.clock.pass_(2 if len(reached) == 4 else 0)
        return len(reached) == 6

    workbench.scan().run(CaptureParameters(maxtrans=1, maxscans=10), stop)
    assert [reached.index(place) for place in reached] == [0, 1, 1, 1, 4, 4], "after the first and the fourth"
    commits = sorted({row["__$start_lsn"] for row in workbench.rows(t)})
    confirmed = [*reached[1::3], workbench.engine.slot(DATABASE).confirmed]
    upto = [str(Lsn.at(place.position - 1)) for place in confirmed]
    assert upto == [commits[0], commits[3], commits[5]], "at the end all that it captured"


def test_silence_gives_a_dummy_row_so_that_max_lsn_moves(workbench, t):
    scan = workbench.scan()
    before = workbench.control.watermarks.get(DATABASE).high
    workbench.clock.pass_(299)
    workbench.drain(scan)
    assert workbench.control.watermarks.get(DATABASE).high == before
    workbench.clock.pass_(2)
    workbench.sql("CREATE TABLE other (x int)")
    workbench.drain(scan)
    dummy = workbench.mapping()[-1]
    assert (dummy["tran_id"], dummy["tran_end_time"]) == (b"\x00", workbench.clock.now)
    assert dummy["start_lsn"] == str(workbench.control.watermarks.get(DATABASE).high)
    workbench.sql("INSERT INTO t VALUES (1, 'a')")
    workbench.drain(scan)
    assert workbench.rows(t)[0]["__$start_lsn"] > dummy["start_lsn"]


def test_a_slot_made_anew_is_a_broken_log(workbench, t):
    slot = workbench.sql("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")[0][
        0
    ]
    for source in workbench.opened:
        source.close()
    workbench.sql(f"SELECT pg_drop_replication_slot('{slot}')")
    workbench.sql("INSERT INTO t VALUES (1, 'lost')")
    workbench.sql(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    workbench.sql("INSERT INTO t VALUES (2, 'after')")
    before = workbench.control.watermarks.get(DATABASE)
    with pytest.raises(LogBroken):
        workbench.drain()
    assert workbench.control.watermarks.get(DATABASE) == before
    assert workbench.control.errors.list(DATABASE)[-1].error_number == LogBroken.number


def test_a_slot_that_is_gone_is_a_broken_log(workbench, t):
    slot = workbench.sql("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")[0][
        0
    ]
    for source in workbench.opened:
        source.close()
    workbench.sql(f"SELECT pg_drop_replication_slot('{slot}')")
    with pytest.raises(LogBroken):
        workbench.drain()


def test_who_lost_the_lease_publishes_nothing(workbench, t):
    scan = workbench.scan(lease=workbench.lease())
    workbench.lease()
    workbench.sql("INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(LeaseLost):
        workbench.drain(scan)
    assert workbench.rows(t) == []
    assert workbench.control.errors.list(DATABASE) == []
    workbench.opened[-1].close()
    workbench.drain()
    assert operations(workbench.rows(t)) == [(2, 1, "a")]


def test_a_type_that_captured_values_do_not_fit_stops_the_scan_and_loses_nothing(workbench, t):
    workbench.sql("INSERT INTO t VALUES (1, 'a')")
    workbench.sql("ALTER TABLE t ALTER name TYPE int USING length(name)")
    workbench.sql("INSERT INTO t VALUES (2, 7)")
    with pytest.raises(CapturedColumnChanged):
        workbench.drain()
    error = workbench.control.errors.list(DATABASE)[-1]
    session = workbench.control.sessions.list(DATABASE, 1)[-1]
    assert (error.error_number, error.error_severity, error.phase_number) == (22976, 16, 6)
    assert (error.session_id, session.failed_sessions_count) == (session.session_id, 1)


def test_a_transaction_in_pieces_becomes_visible_at_once(workbench, t):
    workbench.sql("INSERT INTO t SELECT n, repeat('x', 200) FROM generate_series(1, 1200) n")
    seen = []
    scan = workbench.scan(piece_bytes=64 * 1024)
    publish = scan._control.publish
    scan._publisher.append, append = (
        lambda *a: (append(*a), seen.append(len(workbench.rows(t))))[0],
        scan._publisher.append,
    )
    assert publish
    session = workbench.drain(scan)
    assert len(seen) > 5
    assert set(seen) == {0}
    assert len(workbench.rows(t)) == 1200
    assert (session.tran_count, session.command_count) == (1, 1200)
    assert len(workbench.mapping()) == 2


def test_a_scan_ends_after_its_cycle_when_told_to_stop(workbench, t):
    for number in range(4):
        workbench.sql(f"INSERT INTO t VALUES ({number}, 'x')")
    session = workbench.scan().run(replace(DRAIN, maxtrans=1), lambda: True)
    assert session.tran_count == 1
    assert len(workbench.rows(t)) == 1
