"""Rows of scan sessions: shown while a session runs, shared by empty scans."""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Thread

import psycopg
import pytest

from engine.capture.crash_points import CrashPoints
from engine.capture.session_recorder import PHASE_NAMES, PHASES_KEPT, SessionRecorder
from engine.capture.session_rows import SessionRows
from engine.errors import LogBroken
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanPhase
from engine.monitoring.sessions import aggregate
from tests.capture.conftest import DATABASE, DRAIN
from tests.control.conftest import control

__all__ = ["control"]

SECONDS = 60
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def rows(control):
    """Rows of the sessions of ``hr``, shown at once."""
    lease = control.leases.acquire("hr", "agent", 60)
    return SessionRows(control.sessions, lease, NOW, show_every=0.001)


def until_listed(control, condition, database="hr"):
    end = time.monotonic() + SECONDS
    while not condition(found := control.sessions.list(database, 10)):
        assert time.monotonic() < end, found
    return found


@pytest.mark.parametrize("phase", list(ScanPhase)[:-1])
def test_each_phase_is_seen_while_it_lasts(control, rows, phase):
    recorder = SessionRecorder(lambda: NOW)
    recorder.enter(phase)
    with rows.running(recorder):
        [shown] = until_listed(control, lambda found: found)
        assert (shown.scan_phase, shown.end_time, shown.end_lsn) == (PHASE_NAMES[phase], None, None)
        recorder.schema_changes(1)
        rows.finish(recorder, NOW, Lsn.at(5))
        control.sessions.save("hr", recorder.session)
    assert control.sessions.list("hr", 10) == [recorder.session]
    assert (recorder.session.session_id, recorder.session.scan_phase) == (1, "Done")


def test_a_session_after_an_empty_one_is_shown_in_its_row_until_it_meets_something(control, rows):
    empty = SessionRecorder(lambda: NOW)
    with rows.running(empty):
        rows.finish(empty, NOW, Lsn.at(5))
    control.sessions.save("hr", empty.session)
    busy = SessionRecorder(lambda: NOW)
    with rows.running(busy):
        [shown] = until_listed(control, lambda found: found[0].end_time is None)
        assert (shown.session_id, shown.empty_scan_count) == (1, 1)
        busy.schema_changes(1)
        rows.number(busy)
        first, second = until_listed(control, lambda found: len(found) == 2)
        assert first == empty.session
        assert (second.session_id, second.schema_change_count) == (2, 1)
        rows.finish(busy, NOW, Lsn.at(9))
    control.sessions.save("hr", busy.session)
    assert control.sessions.aggregate("hr") == aggregate([empty.session, busy.session])


def test_an_empty_scan_that_was_shown_is_not_skipped(control, rows):
    recorder = SessionRecorder(lambda: NOW)
    with rows.running(recorder):
        until_listed(control, lambda found: found)
        assert not rows.skip()


def test_one_that_was_skipped_is_not_shown_any_more(control, rows):
    recorder = SessionRecorder(lambda: NOW)
    slow = SessionRows(control.sessions, control.leases.acquire("hr", "agent", 60), NOW, show_every=SECONDS)
    with slow.running(recorder):
        assert slow.skip()
    assert control.sessions.list("hr", 10) == []
    with slow.running(recorder):
        slow.finish(recorder, NOW, Lsn.at(5))
    assert recorder.session.empty_scan_count == 2


def test_who_lost_the_lease_shows_nothing(control, rows):
    control.leases.acquire("hr", "agent", 60)
    recorder = SessionRecorder(lambda: NOW)
    with rows.running(recorder):
        rows._over.wait(0.05)
    assert control.sessions.list("hr", 10) == []


def test_times_of_phases_are_bounded():
    recorder = SessionRecorder(lambda: NOW)
    for _ in range(PHASES_KEPT):
        recorder.enter(ScanPhase.BUILDING_ROWS)
        recorder.enter(ScanPhase.WRITING_ROWS)
    recorder.finish(NOW, Lsn.at(5))
    assert len(recorder.phases) == PHASES_KEPT + 1
    assert recorder.phases[-1].phase is ScanPhase.DONE
    assert recorder.phases_left_out == 2 * PHASES_KEPT - PHASES_KEPT + 1


# With a real scan


def drop_slot(workbench):
    for source in workbench.opened:
        source.close()
    workbench.sql(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        " WHERE database = current_database()"
    )


@contextmanager
def locked(workbench, table):
    """Nobody reads a catalog of the source meanwhile."""
    with psycopg.connect(workbench.dsn) as connection:
        connection.execute(f"LOCK TABLE pg_catalog.{table} IN ACCESS EXCLUSIVE MODE".encode())
        yield


@pytest.mark.parametrize(
    ("catalog", "phase"), [("pg_event_trigger", "Reading configuration"), ("pg_publication", "First scan")]
)
def test_a_scan_that_waits_for_a_lock_says_in_which_phase(workbench, catalog, phase):
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY)")
    workbench.enable("t")
    workbench.drain()
    workbench.sql("INSERT INTO t VALUES (1)")
    scan = workbench.scan()
    scanning = Thread(target=workbench.drain, args=(scan,))
    with locked(workbench, catalog):
        scanning.start()
        active = until_listed(workbench.control, lambda found: found[-1].scan_phase == phase, DATABASE)[-1]
        assert (active.end_time, active.tran_count) == (None, 0)
    scanning.join(SECONDS)
    ended = workbench.control.sessions.list(DATABASE, 10)[-1]
    assert (ended.session_id, ended.scan_phase, ended.tran_count) == (active.session_id, "Done", 1)


def test_scans_that_capture_nothing_of_what_they_read_are_empty(workbench):
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY, name text)")
    workbench.enable("t", captured_column_list="id")
    workbench.sql("INSERT INTO t VALUES (1, 'a')")
    scan = workbench.scan()
    workbench.drain(scan)
    for name in "bc":
        workbench.sql(f"UPDATE t SET name = '{name}'")
        workbench.drain(scan)
    session = workbench.control.sessions.list(DATABASE, 10)[-1]
    assert (session.tran_count, session.empty_scan_count, session.log_record_count) == (0, 2, 2)
    assert (session.duration, session.latency) == (0, 0)
    assert session.last_commit_time is not None


def test_a_session_that_fails_as_it_begins_has_a_row_and_its_errors_name_it(workbench):
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY)")
    workbench.enable("t")
    workbench.drain()
    drop_slot(workbench)
    with pytest.raises(LogBroken):
        workbench.drain()
    [error] = workbench.control.errors.list(DATABASE)
    session = workbench.control.sessions.list(DATABASE, 1)[-1]
    assert (error.session_id, error.phase_number) == (session.session_id, 1)
    assert (session.failed_sessions_count, session.error_count, session.scan_phase) == (
        1,
        1,
        PHASE_NAMES[ScanPhase.READING_CONFIGURATION],
    )
    assert session.end_time is not None


def test_a_failed_session_breaks_the_row_of_empty_ones(workbench):
    workbench.sql("CREATE TABLE t (id int PRIMARY KEY)")
    workbench.enable("t")
    scan = workbench.scan(crash=CrashPoints())
    workbench.drain(scan)
    workbench.drain(scan)
    drop_slot(workbench)
    for _ in "ab":
        with pytest.raises(LogBroken):
            scan.run(DRAIN, lambda: False)
    found = workbench.control.sessions.list(DATABASE, 10)
    assert [(each.empty_scan_count, each.failed_sessions_count) for each in found] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (0, 1),
    ]
