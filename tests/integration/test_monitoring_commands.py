"""highwater sessions and errors, of a source that is captured and then loses its slot."""

from __future__ import annotations

import csv
import io
import json
import time

import psycopg
import pytest

SESSION_COLUMNS = [
    "session_id",
    "start_time",
    "end_time",
    "duration",
    "scan_phase",
    "error_count",
    "start_lsn",
    "current_lsn",
    "end_lsn",
    "tran_count",
    "last_commit_lsn",
    "last_commit_time",
    "log_record_count",
    "schema_change_count",
    "command_count",
    "first_begin_cdc_lsn",
    "last_commit_cdc_lsn",
    "last_commit_cdc_time",
    "latency",
    "empty_scan_count",
    "failed_sessions_count",
]
ERROR_COLUMNS = [
    "session_id",
    "phase_number",
    "entry_time",
    "error_number",
    "error_severity",
    "error_state",
    "error_message",
    "start_lsn",
    "begin_lsn",
    "sequence_value",
]
DATABASE = "watched"
SECONDS = 120


@pytest.fixture(scope="module")
def watched(home, postgres):
    """A source with one tracked table and a session that captured three transactions."""
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
    with psycopg.connect(postgres.dsn(DATABASE), autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        home.must("connect", DATABASE, postgres.dsn(DATABASE))
        home.must("enable", "-d", DATABASE, "t")
        home.must("sync", "-d", DATABASE)
        for number in range(3):
            connection.execute(f"INSERT INTO t VALUES ({number})".encode())
        home.must("sync", "-d", DATABASE)
        yield connection
    home.must("disable", "-d", DATABASE)


def as_objects(text):
    return [json.loads(line) for line in text.splitlines()]


def test_sessions_have_the_views_columns_and_session_0_sums_them_up(home, watched):
    total, *sessions = as_objects(home.must("sessions", "-d", DATABASE, "--format", "json"))
    assert list(total) == SESSION_COLUMNS
    assert (total["session_id"], total["scan_phase"], total["tran_count"]) == (0, "Aggregate", 3)
    assert [session["session_id"] for session in sessions] == list(range(1, len(sessions) + 1))
    assert sum(session["tran_count"] for session in sessions) == 3
    assert total["last_commit_cdc_time"] == max(
        session["last_commit_cdc_time"] for session in sessions if session["tran_count"]
    )


def test_a_limit_keeps_the_newest(home, watched):
    every = as_objects(home.must("sessions", "-d", DATABASE, "--format", "json"))
    newest = as_objects(home.must("sessions", "-d", DATABASE, "--format", "json", "--limit", "1"))
    assert [row["session_id"] for row in newest] == [0, every[-1]["session_id"]]


def test_a_database_without_errors_has_a_heading_alone(home, watched):
    assert home.must("errors", "-d", DATABASE, "--format", "csv") == ",".join(ERROR_COLUMNS) + "\n"
    assert home.must("errors", "-d", DATABASE).split("\n")[0].split() == ERROR_COLUMNS


def test_an_error_is_told_with_its_number_and_text(home, watched):
    drop = (
        "SELECT pg_terminate_backend(active_pid), pg_drop_replication_slot(slot_name)"
        " FROM pg_replication_slots WHERE database = current_database()"
    )
    end = time.monotonic() + SECONDS
    while True:
        try:
            watched.execute(drop.encode())
            break
        except psycopg.errors.ObjectInUse:
            assert time.monotonic() < end
    while not (
        rows := list(csv.DictReader(io.StringIO(home.must("errors", "-d", DATABASE, "--format", "csv"))))
    ):
        assert time.monotonic() < end
    assert list(rows[0]) == ERROR_COLUMNS
    assert (rows[0]["error_number"], rows[0]["error_severity"]) == ("50003", "16")
    assert DATABASE in rows[0]["error_message"]
