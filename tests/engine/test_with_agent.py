"""The engine together with a real agent: jobs obey, changes arrive, nothing is polled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from engine.agent.agent import Agent
from engine.capture.crash_points import CrashPoints
from engine.control import REPORTED
from engine.engine import Engine
from engine.errors import InvalidObjectName, RangeOutsideValidity
from engine.lake.publisher import Publisher
from engine.lake.tables import Lake
from engine.model.job import CaptureParameters, JobState
from engine.model.lsn import Lsn
from engine.settings import Settings
from engine.sources.registry import Sources


@pytest.fixture
def agent(control, home, lake_root, spark) -> Iterator[None]:
    """An agent in a thread of the test's process."""
    stop = threading.Event()
    running = Agent(
        control,
        Sources(home.secret),
        Publisher(spark),
        Lake(str(lake_root)),
        Settings(home=home.folder),
        "test",
        lambda: datetime.now(UTC),
        CrashPoints(),
    )
    thread = threading.Thread(target=running.run, args=(stop,))
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.fixture
def engine(control, home, lake_root, spark) -> Engine:
    return Engine(control, Sources(home.secret), Lake(str(lake_root)), lambda: spark, home)


@pytest.fixture
def tracked(engine, enabled, agent) -> str:
    """hr.department is tracked and its instance recognised."""
    engine.enable_table(enabled, "hr", "department", role_name=None)
    engine.sync(enabled, 600)
    return enabled


def whole(engine: Engine, database: str) -> tuple[Lsn, Lsn]:
    high = engine.get_max_lsn(database)
    assert high is not None
    return engine.get_min_lsn(database, "hr_department"), high


def test_changes_arrive_and_are_told_by_time(engine, tracked, sql):
    before = datetime.now(UTC) - timedelta(seconds=1)
    sql("INSERT INTO hr.department VALUES (1, 'Sales', 10)")
    sql("UPDATE hr.department SET budget = 20")
    engine.sync(tracked, 600)
    low, high = whole(engine, tracked)
    rows = engine.get_all_changes(tracked, "hr_department", low, high).collect()
    assert [(row["__$operation"], row["id"], row["name"]) for row in rows] == [
        (2, 1, "Sales"),
        (4, 1, "Sales"),
    ]
    [net] = engine.get_net_changes(tracked, "hr_department", low, high).collect()
    assert (net["__$operation"], net["budget"]) == (2, 20)
    assert engine.map_time_to_lsn(tracked, "largest less than or equal", datetime.now(UTC)) == high
    committed = engine.map_lsn_to_time(tracked, high)
    assert before < committed <= datetime.now(UTC)
    assert engine.lsn_time_mapping(tracked).filter(f"start_lsn = '{high}'").count() == 1


def test_queries_outside_of_what_is_valid(engine, tracked):
    low, high = whole(engine, tracked)
    with pytest.raises(RangeOutsideValidity):
        engine.get_all_changes(tracked, "hr_department", low.previous(), high)
    with pytest.raises(RangeOutsideValidity):
        engine.get_all_changes(tracked, "hr_department", low, high.next())
    with pytest.raises(InvalidObjectName):
        engine.get_all_changes(tracked, "nothing", low, high)


def test_stop_and_start_return_when_it_has_happened(engine, tracked, control):
    engine.stop_job(tracked)
    assert control.jobs.get(tracked).state is JobState.STOPPED
    engine.change_job(tracked, maxtrans=7, pollinginterval=0)
    engine.start_job(tracked)
    job = control.jobs.get(tracked)
    assert job.state is JobState.RUNNING
    assert job.running == CaptureParameters(7, 10, True, 0)
    engine.start_job(tracked)


def test_sync_waits_for_a_source_that_comes_back(engine, tracked, sql, control, postgres, source_dsn):
    sql("INSERT INTO hr.department VALUES (1, 'Sales', 10)")
    name = psycopg.conninfo.conninfo_to_dict(source_dsn)["dbname"]
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection, ThreadPoolExecutor() as pool:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )
        with control.listen(REPORTED) as listener:
            waiting = pool.submit(engine.sync, tracked, 600)
            while control.jobs.get(tracked).state is not JobState.FAILED:
                listener.wait(1)
        assert not waiting.done()
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        waiting.result()
    low, high = whole(engine, tracked)
    assert engine.get_all_changes(tracked, "hr_department", low, high).count() == 1


def test_a_one_shot_job_stops_by_itself(engine, tracked, sql, control):
    engine.stop_job(tracked)
    engine.change_job(tracked, continuous=0)
    sql("INSERT INTO hr.department VALUES (1, 'Sales', 10)")
    engine.start_job(tracked)
    low, high = whole(engine, tracked)
    assert engine.get_all_changes(tracked, "hr_department", low, high).count() == 1


def test_a_job_dropped_and_added_goes_on_where_it_was(engine, tracked, sql):
    engine.drop_job(tracked, "capture")
    sql("INSERT INTO hr.department VALUES (1, 'Sales', 10)")
    engine.add_job(tracked, "capture", maxtrans=7)
    engine.start_job(tracked)
    job, _ = engine.help_jobs(tracked)
    assert (job.state, job.running.maxtrans) == (JobState.RUNNING, 7)
    engine.sync(tracked, 600)
    low, high = whole(engine, tracked)
    assert engine.get_all_changes(tracked, "hr_department", low, high).count() == 1


def test_sessions_and_status_of_a_healthy_home(engine, tracked, sql):
    sql("INSERT INTO hr.department VALUES (1, 'Sales', 10)")
    engine.sync(tracked, 600)
    total, *sessions = engine.scan_sessions(tracked)
    assert (total.session_id, total.tran_count, total.command_count) == (0, 1, 1)
    assert [session.session_id for session in sessions] == sorted(session.session_id for session in sessions)
    assert sum(session.tran_count for session in sessions) == 1
    assert engine.scan_errors(tracked) == []
    status = engine.status()
    assert status.findings == ()
    assert status.agent_is_alive


def test_a_disabled_table_takes_its_change_table_along(engine, tracked, lake_root, sql):
    folder = lake_root / "hr" / "cdc" / "hr_department_CT"
    engine.enable_table(tracked, "hr", "note", role_name=None)
    assert folder.exists()
    engine.disable_table(tracked, "hr", "department", "all")
    engine.sync(tracked, 600)
    assert not folder.exists()


def test_a_table_enabled_again_under_its_name_starts_anew(engine, tracked, sql):
    sql("INSERT INTO hr.department VALUES (1, 'Sales', 10)")
    engine.sync(tracked, 600)
    engine.disable_table(tracked, "hr", "department", "all")
    engine.enable_table(tracked, "hr", "department", role_name=None)
    sql("INSERT INTO hr.department VALUES (2, 'Tools', 10)")
    engine.sync(tracked, 600)
    low, high = whole(engine, tracked)
    rows = engine.get_all_changes(tracked, "hr_department", low, high).collect()
    assert [row["id"] for row in rows] == [2]


def test_a_database_can_be_disabled_and_enabled_while_the_agent_runs(engine, tracked, sql, lake_root):
    engine.disable_db(tracked)
    engine.enable_db(tracked)
    engine.enable_table(tracked, "hr", "department", role_name=None)
    sql("INSERT INTO hr.department VALUES (1, 'Sales', 10)")
    engine.sync(tracked, 600)
    low, high = whole(engine, tracked)
    assert engine.get_all_changes(tracked, "hr_department", low, high).count() == 1


def test_a_change_table_is_as_large_as_what_was_captured(engine, tracked, sql):
    before = engine.change_table_size(tracked, "hr_department")
    sql("INSERT INTO hr.department VALUES (1, 'Sales', 10)")
    sql("UPDATE hr.department SET budget = 20")
    engine.sync(tracked, 600)
    size = engine.change_table_size(tracked, "hr_department")
    assert (before.rows, before.bytes, size.rows) == (0, 0, 3)
    assert size.files > 0
    assert size.bytes > 0
    with pytest.raises(InvalidObjectName):
        engine.change_table_size(tracked, "nobody")
