"""The agent runs cleanup jobs: when they are started, by their schedules, beside capture."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from engine.errors import CleanupFailed
from engine.lake.file_tables import FileTables
from engine.model.job import CleanupParameters, JobState, JobType, RunOutcome
from engine.monitoring.diagnosis import Verdict
from tests.agent.conftest import job_of, until, until_state
from tests.capture.conftest import DATABASE
from tests.cleanup.conftest import LEFT, aged_anew, transactions

__all__ = ["aged_anew"]


def cleanup_job(workbench):
    return workbench.control.jobs.get(DATABASE, JobType.CLEANUP)


def runs(workbench):
    return workbench.engine.job_history(DATABASE, "cleanup")


def until_run(workbench, count=1):
    until(
        lambda: len(runs(workbench)) >= count and runs(workbench)[0].end_time is not None, "a run has ended"
    )
    return runs(workbench)[0]


def test_started_it_runs_once_beside_capture_and_says_what_it_did(aged_anew, new_agent):
    aged = aged_anew
    aged.engine.change_job(DATABASE, "cleanup", retention=65)
    new_agent("test")  # the holder of the lease that captured so far
    until_state(aged, JobState.RUNNING)
    aged.engine.start_job(DATABASE, "cleanup")
    run = until_run(aged)
    assert (run.outcome, run.deleted_rows) == (RunOutcome.SUCCEEDED, 17)
    assert [(each.capture_instance, each.rows, each.statements) for each in run.tables] == [
        ("public_t", 6, 1), ("public_u", 6, 1), (None, 5, 1)
    ]  # fmt: skip
    assert run.tables[0].time_before < run.tables[0].time_after
    until(lambda: cleanup_job(aged).state is JobState.STOPPED, "it rests")
    job = cleanup_job(aged)
    assert (job.wanted, job.message, job.last_run) == (False, run.message, run)
    assert job.message.startswith("Deleted 17 rows below 0x")
    assert job.next_run > run.start_time
    assert transactions(aged) == transactions(aged, "public_u") == LEFT
    assert job_of(aged).state is JobState.RUNNING
    status = aged.engine.status()
    assert status.verdict is Verdict.HEALTHY
    aged.sql("INSERT INTO t VALUES (701, 7)")
    aged.engine.sync(DATABASE, 60)
    assert transactions(aged)[-1] == 7
    path = aged.lake.change_table(DATABASE, "public_t")
    aged.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    aged.engine.change_job(DATABASE, "cleanup", retention=55)
    with pytest.raises(CleanupFailed, match="22852"):
        aged.engine.start_job(DATABASE, "cleanup")
        until_run(aged, 2)
        until_failed(aged)
    assert runs(aged)[0].outcome is RunOutcome.FAILED
    [finding] = aged.engine.status().findings
    assert (finding.verdict, finding.fix) == (Verdict.ATTENTION, f"highwater cleanup start -d {DATABASE}")


def test_a_run_is_stopped_between_two_statements_and_by_disabling_the_database(
    aged_anew, new_agent, monkeypatch
):
    let_statements_take(monkeypatch, 0.2)
    aged_anew.engine.change_job(DATABASE, "cleanup", retention=65, threshold=1)
    new_agent("test")
    until_state(aged_anew, JobState.RUNNING)
    start_and_wait_for_a_statement(aged_anew, 1)
    aged_anew.engine.stop_job(DATABASE, "cleanup")
    assert cleanup_job(aged_anew).state is JobState.STOPPED
    run = runs(aged_anew)[0]
    assert (run.outcome, run.message[:7]) == (RunOutcome.STOPPED, "Stopped")
    assert 0 < run.deleted_rows < 17
    assert transactions(aged_anew)[-len(LEFT) :] == LEFT
    start_and_wait_for_a_statement(aged_anew, 2)
    aged_anew.engine.disable_db(DATABASE)
    folder = Path(aged_anew.lake.folders(DATABASE)[1])
    until(lambda: not folder.exists(), "nothing is left in the lake")
    assert aged_anew.engine.status().findings == ()
    aged_anew.engine.enable_db(DATABASE)
    assert aged_anew.engine.scan_errors(DATABASE) == []


def let_statements_take(monkeypatch, seconds):
    """As those on large tables do: a handful of rows is gone before anybody can ask for a stop."""
    begin_files, pause = FileTables.begin_files, Event()

    def begin_later(*arguments):
        pause.wait(seconds)
        return begin_files(*arguments)

    monkeypatch.setattr(FileTables, "begin_files", begin_later)


def start_and_wait_for_a_statement(workbench, count):
    workbench.engine.start_job(DATABASE, "cleanup")
    until(lambda: len(runs(workbench)) == count and runs(workbench)[0].deleted_rows, "it deletes")


def until_failed(workbench):
    """Starting raises at once when the run had failed before we looked, else its state says so."""
    until(lambda: cleanup_job(workbench).state is JobState.FAILED, "it failed")
    raise CleanupFailed(DATABASE, cleanup_job(workbench).message)


def test_a_run_that_was_missed_is_made_up_for_once(workbench, new_agent):
    workbench.engine.add_job(DATABASE, "cleanup", start_job=0)
    missed = workbench.clock.now - timedelta(days=9)
    workbench.control.jobs.expect(cleanup_job(workbench), missed)
    new_agent()
    run = until_run(workbench)
    assert run.message == "Nothing has been captured yet."
    assert cleanup_job(workbench).next_run > run.start_time
    assert len(runs(workbench)) == 1


def test_without_a_time_that_has_come_it_waits_and_what_was_left_is_set_right(workbench, new_agent):
    workbench.engine.add_job(DATABASE, "cleanup", retention=60)
    dead = workbench.control.leases.acquire(DATABASE, "agent", 1, JobType.CLEANUP)
    workbench.control.runs.claim(cleanup_job(workbench), dead, workbench.clock.now, None)
    assert cleanup_job(workbench).running == CleanupParameters(60, 5000)
    new_agent()
    until(lambda: runs(workbench)[0].outcome is RunOutcome.INTERRUPTED, "the run is told as interrupted")
    until(lambda: cleanup_job(workbench).next_run is not None, "the agent has seen the schedule")
    job = cleanup_job(workbench)
    assert (job.state, job.running, len(runs(workbench))) == (JobState.STOPPED, None, 1)
    assert job.next_run > workbench.clock.now
    workbench.engine.change_job(DATABASE, "cleanup", schedule="")
    workbench.engine.start_job(DATABASE, "cleanup")
    until_run(workbench)
    assert cleanup_job(workbench).next_run is None


def test_an_agent_that_does_not_capture_the_database_does_not_clean_it_up(workbench, new_agent):
    workbench.control.leases.acquire(DATABASE, "other", 3600)
    workbench.engine.add_job(DATABASE, "cleanup")
    new_agent()
    until(lambda: workbench.control.agent_is_alive(), "the agent runs")
    workbench.engine.add_job(DATABASE, "capture")  # it looks at jobs again, and waits for the lease to read
    until(lambda: cleanup_job(workbench).wanted, "it is still asked for")
    assert runs(workbench) == []
    with workbench.control._connections.begin() as connection:
        connection.exec_driver_sql("UPDATE dbo.leases SET expires = clock_timestamp()")
    until_run(workbench)
