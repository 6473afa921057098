"""The status with real parts away; the rules themselves are in tests/monitoring."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from engine.errors import AgentNotRunning, JobMissing, JobTypeUnsupported, ObjectsGone, SyncTimeout
from engine.model.job import JobState
from engine.model.lsn import Lsn


def test_a_new_home_has_nothing_but_a_missing_agent(engine):
    status = engine.status()
    assert (status.databases, status.agent_is_alive) == ((), False)
    assert [finding.subject for finding in status.findings] == ["Agent"]


def test_it_is_json(engine, enabled):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    status = json.loads(json.dumps(engine.status().as_dict()))
    [database] = status["databases"]
    assert status["verdict"] == "failing"
    assert status["agent"] == {"alive": False, "pid": None, "started": None}
    assert database["capture_instances"][0]["capture_instance"] == "hr_department"
    assert [job["name"] for job in database["jobs"]] == ["cdc.hr_capture", "cdc.hr_cleanup"]
    assert database["jobs"][1]["configured"] == {"retention": 4320, "threshold": 5000}
    assert (database["jobs"][1]["schedule"], database["jobs"][1]["last_run"]) == ("0 2 * * *", None)
    assert database["slot"]["wal_status"] == "reserved"


def test_a_source_that_is_away_is_a_finding(engine, enabled, postgres, source_dsn):
    name = psycopg.conninfo.conninfo_to_dict(source_dsn)["dbname"]
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} RENAME TO {name}_moved")
        try:
            status = engine.status()
        finally:
            connection.execute(f"ALTER DATABASE {name}_moved RENAME TO {name}")
    assert f"Source {enabled}" in [finding.subject for finding in status.findings]
    assert status.databases[0].facts.slot is None


def test_a_dead_agents_job_does_not_run(engine, enabled, control):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    job = control.jobs.get(enabled)
    control.jobs.report(job.job_id, JobState.RUNNING, "Running.", job.configured)
    seen, _ = engine.help_jobs(enabled)
    assert (seen.state, seen.running) == (JobState.STOPPED, None)


def test_a_dead_agents_job_is_stopped_since_the_agents_last_sign(engine, enabled, control):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    job = control.jobs.get(enabled)
    control.jobs.report(job.job_id, JobState.RUNNING, "Running.", job.configured)
    control.leases.acquire(enabled, "agent", 10)
    renewed = control.leases.acquire(enabled, "agent", 10).expires - timedelta(seconds=10)
    listed, _ = engine.help_jobs(enabled)
    [database] = engine.status().databases
    assert renewed > control.jobs.get(enabled).since
    assert listed.since == database.jobs[0].since == renewed


def test_starting_without_an_agent_is_an_error_but_remembered(engine, enabled, control):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    engine.stop_job(enabled)
    assert not control.jobs.get(enabled).wanted
    with pytest.raises(AgentNotRunning, match="will start with it"):
        engine.start_job(enabled)
    assert control.jobs.get(enabled).wanted


def test_jobs_that_are_not_there(engine, enabled):
    for call in (engine.start_job, engine.stop_job, engine.change_job):
        with pytest.raises(JobMissing):
            call(enabled)
        with pytest.raises(JobMissing):
            call(enabled, "cleanup")
        with pytest.raises(JobTypeUnsupported):
            call(enabled, "backup")


def test_sync_says_why_it_timed_out(engine, enabled):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    with pytest.raises(SyncTimeout, match="agent is not running"):
        engine.sync(enabled, 0.2)
    engine.stop_job(enabled)
    with pytest.raises(SyncTimeout, match="is stopped since"):
        engine.sync(enabled, 60)


def test_sync_waits_for_a_source_that_is_away_and_says_so(engine, enabled, postgres, source_dsn):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    name = psycopg.conninfo.conninfo_to_dict(source_dsn)["dbname"]
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        try:
            with pytest.raises(SyncTimeout, match=r"within 0\.2 s: Source database 'hr' cannot be reached"):
                engine.sync(enabled, 0.2)
            engine.stop_job(enabled)
            with pytest.raises(SyncTimeout, match="is stopped since"):
                engine.sync(enabled, 60)
        finally:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def test_sync_without_tables_has_nothing_to_wait_for(engine, enabled):
    engine.sync(enabled, 60)


def test_before_anything_is_published(engine, enabled):
    assert engine.get_max_lsn(enabled) is None
    assert engine.get_min_lsn(enabled, "nothing") == Lsn.ZERO
    assert engine.scan_sessions(enabled) == []
    assert engine.map_lsn_to_time(enabled, Lsn.ZERO) is None


def test_threads_share_an_engine(engine, enabled):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: engine.status(), range(24)))
    assert {status.verdict for status in statuses} == {"failing"}
    assert {len(status.databases[0].facts.instances) for status in statuses} == {1}


def drop_by_hand(sql, *statements):
    for trigger in ("highwater_before", "highwater_ddl", "highwater_drop"):
        sql(f"DROP EVENT TRIGGER {trigger}")
    for statement in statements:
        sql(statement)


DROP_PUBLICATION, DROP_SCHEMA = "DROP PUBLICATION highwater", "DROP SCHEMA cdc CASCADE"
DROP_SLOT = (
    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
)


@pytest.mark.parametrize(
    ("statements", "gone"),
    [
        ((DROP_PUBLICATION,), "publication highwater"),
        ((DROP_SCHEMA,), "schema cdc"),
        ((DROP_SCHEMA, DROP_PUBLICATION), "schema cdc and publication highwater"),
    ],
)
def test_what_was_dropped_by_hand_is_found_and_mended_by_the_fix(engine, enabled, sql, statements, gone):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    drop_by_hand(sql, *statements)
    with pytest.raises(ObjectsGone, match=f"but {gone} is gone"):
        engine.sync(enabled, 60)
    [found] = [finding for finding in engine.status().findings if finding.subject == "Source hr"]
    assert f"dropped by hand: {gone}." in found.text
    assert found.fix.startswith("highwater disable -d hr; highwater enable -d hr hr.department ")
    engine.disable_db(enabled)
    engine.enable_db(enabled)
    engine.enable_table(enabled, "hr", "department", role_name=None)
    assert "Source hr" not in [finding.subject for finding in engine.status().findings]


def test_a_slot_that_was_dropped_is_no_source_out_of_reach(engine, enabled, sql):
    engine.enable_table(enabled, "hr", "department", role_name=None)
    sql(DROP_SLOT)
    with pytest.raises(ObjectsGone, match="replication slot"):
        engine.sync(enabled, 60)
    status = engine.status()
    assert status.databases[0].facts.unreachable is None
    [found] = [finding for finding in status.findings if finding.subject == "Log of hr"]
    assert "does not exist" in found.text
    assert found.fix.startswith("highwater disable -d hr; ")
