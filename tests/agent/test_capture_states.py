"""Quiet, stalled, stopped and unreachable with a real agent and source, and their fixes as pasted."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from engine.control.database import ControlDatabase
from engine.engine import Engine
from engine.model.job import JobState
from engine.monitoring.capture_state import CaptureState
from engine.runtime.embedded_postgres import _binaries
from engine.runtime.home import Home
from tests.agent.conftest import SECONDS, job_of, until, until_state
from tests.capture.conftest import DATABASE


@pytest.fixture
def capturing(tracked, new_agent):
    """A tracked table ``t`` whose job runs."""
    tracked.engine.change_job(DATABASE, pollinginterval=0)
    new_agent()
    until_state(tracked, JobState.RUNNING)
    return tracked


def state_of(workbench, later=timedelta(0)):
    """The state, and what it would be ``later`` if nothing happened until then."""
    control = ControlDatabase.open(workbench.control._connections._dsn)
    engine = Engine(
        control,
        workbench.sources,
        workbench.lake,
        lambda: workbench.spark,
        home_of(workbench),
        clock=lambda: datetime.now(UTC) + later,
    )
    try:
        [database] = engine.status().databases
    finally:
        engine.close()
    return database.capture


def home_of(workbench):
    return Home(Path(workbench.lake.root).parent / "home")


def until_it_is(workbench, state):
    until(lambda: state_of(workbench).state is state, f"{state}, not {state_of(workbench)}")
    return state_of(workbench)


def paste(workbench, fix):
    """What a shell makes of it."""
    programs = [str(Path(sys.executable).parent), str(_binaries()), os.environ["PATH"]]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join(programs),
        "HIGHWATER_HOME": str(home_of(workbench).folder),
        "HIGHWATER_CONTROL_DSN": workbench.control._connections._dsn,
    }
    return subprocess.run(
        ["sh", "-c", fix],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


def test_quiet_since_the_last_change(capturing):
    capturing.sql("INSERT INTO t VALUES (1, 'a')")
    capturing.engine.sync(DATABASE, SECONDS)
    found = until_it_is(capturing, CaptureState.QUIET)
    assert found.since >= job_of(capturing).since
    assert found.fix == ""


def test_stopped_and_the_fix_starts_it(capturing):
    capturing.engine.stop_job(DATABASE)
    found = state_of(capturing)
    assert (found.state, found.since) == (CaptureState.STOPPED, job_of(capturing).since)
    done = paste(capturing, found.fix)
    assert done.returncode == 0, done.stderr
    assert state_of(capturing).state in (CaptureState.QUIET, CaptureState.CAPTURING)


def test_a_missing_job_is_added_by_the_fix(capturing):
    capturing.engine.drop_job(DATABASE, "capture")
    found = state_of(capturing)
    assert found.state is CaptureState.STOPPED
    done = paste(capturing, found.fix)
    assert done.returncode == 0, done.stderr
    until_state(capturing, JobState.RUNNING)


def test_stopped_with_the_agent(tracked, new_agent):
    agent = new_agent()
    until_state(tracked, JobState.RUNNING)
    agent.stop()
    found = state_of(tracked)
    assert (found.state, found.fix) == (CaptureState.STOPPED, "highwater start")
    assert found.since is not None


def test_stalled_by_a_lock_and_the_fix_ends_it(capturing):
    with pytest.raises(psycopg.OperationalError), psycopg.connect(capturing.dsn) as other:
        other.execute("LOCK TABLE pg_catalog.pg_publication IN ACCESS EXCLUSIVE MODE")
        capturing.sql("INSERT INTO t VALUES (1, 'a')")
        minute = timedelta(minutes=1)
        until(lambda: "waits for a lock" in state_of(capturing, minute).why, "the lock is seen")
        found = state_of(capturing, minute)
        assert (found.state, f"session {other.info.backend_pid} " in found.why) == (
            CaptureState.STALLED,
            True,
        )
        done = paste(capturing, found.fix)
        assert done.returncode == 0, done.stderr
        other.execute("SELECT 1")
    capturing.engine.sync(DATABASE, SECONDS)
    assert capturing.control.sessions.aggregate(DATABASE).tran_count == 1


def test_unreachable_and_the_fix_says_when_it_is_not_any_more(capturing, postgres):
    name = conninfo_to_dict(capturing.dsn)["dbname"]
    with psycopg.connect(postgres.dsn(), autocommit=True) as server:
        server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        found = until_it_is(capturing, CaptureState.UNREACHABLE)
        assert "not currently accepting connections" in found.why
        until(lambda: job_of(capturing).state is JobState.FAILED, "the job fails")
        assert state_of(capturing).since == job_of(capturing).since
        assert "not currently accepting connections" in paste(capturing, found.fix).stderr
        server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    done = paste(capturing, found.fix)
    assert done.returncode == 0, done.stderr
    until_it_is(capturing, CaptureState.QUIET)


def test_a_slot_with_a_limit_and_a_disk(capturing, postgres):
    with psycopg.connect(postgres.dsn(), autocommit=True) as server:
        server.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '640MB'")
        server.execute("SELECT pg_reload_conf()")
        try:
            until(lambda: capturing.engine.slot(DATABASE).limit_bytes == 640 * 1024**2, "the limit is there")
            slot = capturing.engine.slot(DATABASE)
            assert 0 < slot.safe_wal_size <= 2 * slot.limit_bytes
            assert slot.disk_free_bytes > 0
            assert slot.blocked_by == ()
        finally:
            server.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
            server.execute("SELECT pg_reload_conf()")
