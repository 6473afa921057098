from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import enumerate as enumerate_threads

import psycopg
from psycopg.conninfo import conninfo_to_dict

from engine.agent.capture_job import CaptureJob
from engine.control import ControlDatabase
from engine.errors import ControlUnreachable
from engine.model.job import CaptureParameters, JobState, JobType, RunOutcome
from engine.sources.postgres.names import EVENT_TRIGGERS, VERSION
from tests.agent.conftest import SECONDS, job_of, until, until_state
from tests.capture.conftest import DATABASE
from tests.sources.earlier import make_earlier


def test_a_wanted_job_runs_and_reports_what_it_runs_with(tracked, new_agent):
    tracked.engine.change_job(DATABASE, maxtrans=20, pollinginterval=1)
    new_agent()
    job = until_state(tracked, JobState.RUNNING)
    assert job.running == CaptureParameters(maxtrans=20, pollinginterval=1)
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    tracked.engine.sync(DATABASE, SECONDS)
    assert [row["id"] for row in tracked.rows("public_t")] == [1]


def test_actions_of_long_ago_are_forgotten_and_others_are_not(tracked, new_agent):
    control = tracked.control
    tracked.engine.change_job(DATABASE, maxtrans=20)
    [new, old, *_] = control.activity.list(10, None, None)
    with psycopg.connect(control._connections._dsn) as connection:
        aged = "UPDATE dbo.highwater_activity SET started = now() - interval '366 days'"
        connection.execute(f"{aged} WHERE activity_id = %s", [old.activity_id])
    new_agent()
    until(lambda: old.activity_id not in ids_of(control), "the old one is gone")
    assert new.activity_id in ids_of(control)


def ids_of(control: ControlDatabase) -> list[int]:
    return [each.activity_id for each in control.activity.list(100, None, None)]


def test_somebody_who_waits_does_not_wait_for_the_polling_interval(tracked, new_agent):
    tracked.engine.change_job(DATABASE, pollinginterval=86_399)
    new_agent()
    until_state(tracked, JobState.RUNNING)
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    tracked.engine.sync(DATABASE, SECONDS)
    assert len(tracked.rows("public_t")) == 1


def test_a_stopped_job_stays_stopped_and_new_parameters_come_with_the_next_start(tracked, new_agent):
    new_agent()
    until_state(tracked, JobState.RUNNING)
    tracked.engine.change_job(DATABASE, maxtrans=3)
    assert job_of(tracked).running.maxtrans == 500
    tracked.engine.stop_job(DATABASE)
    stopped = until_state(tracked, JobState.STOPPED)
    assert stopped.running is None
    tracked.engine.start_job(DATABASE)
    assert until_state(tracked, JobState.RUNNING).running.maxtrans == 3


def test_a_one_shot_job_drains_the_log_and_stops(tracked, new_agent):
    tracked.engine.change_job(DATABASE, continuous=0)
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    new_agent()
    until(lambda: tracked.control.watermarks.get(DATABASE).high is not None, "something is published")
    job = until_state(tracked, JobState.STOPPED)
    assert (job.wanted, job.message) == (False, "The one-shot scan has finished.")
    assert len(tracked.rows("public_t")) == 1


def test_a_stop_that_meets_a_job_at_its_end_does_not_hide_the_end(tracked):
    tracked.engine.change_job(DATABASE, continuous=0)
    job = CaptureJob(job_of(tracked), tracked.control, tracked.scanning, lambda _: None, "agent", 60, 0.1)
    job.start()
    job.join()
    job.stop(asked=True)
    assert (job_of(tracked).state, job_of(tracked).message) == (
        JobState.STOPPED,
        "The one-shot scan has finished.",
    )


def test_a_job_that_fails_says_why_and_goes_on_when_it_can(tracked, new_agent):
    dsn = tracked.engine.database(DATABASE).dsn
    tracked.control.sources.set_dsn(DATABASE, "postgresql://postgres@/nowhere?host=/nowhere")
    new_agent()
    job = until_state(tracked, JobState.FAILED)
    assert "50001" in job.message
    tracked.control.sources.set_dsn(DATABASE, dsn)
    until_state(tracked, JobState.RUNNING)
    assert {error.error_number for error in tracked.control.errors.list(DATABASE)} == {50001}


def test_a_second_agent_waits_and_takes_over(tracked, new_agent):
    first = new_agent("first")
    until_state(tracked, JobState.RUNNING)
    new_agent("second")
    tracked.sql("INSERT INTO t VALUES (0, 'a')")
    tracked.engine.sync(DATABASE, SECONDS)
    assert {lease.holder for lease in tracked.control.leases.list()} == {"first"}
    assert job_of(tracked).state is JobState.RUNNING
    first.stop()
    until(lambda: tracked.control.leases.list()[0].holder == "second", "the second took over")
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    until(lambda: len(tracked.rows("public_t")) == 2, "captured by the second")
    until_state(tracked, JobState.RUNNING)


def test_the_change_table_of_a_disabled_instance_goes(tracked, new_agent):
    new_agent()
    until_state(tracked, JobState.RUNNING)
    tracked.enable("t", capture_instance="second")
    tracked.engine.sync(DATABASE, SECONDS)
    folder = Path(tracked.lake.change_table(DATABASE, "public_t"))
    assert folder.is_dir()
    tracked.engine.disable_table(DATABASE, "public", "t", "public_t")
    until(lambda: not folder.exists(), "the folder is gone")
    assert Path(tracked.lake.change_table(DATABASE, "second")).is_dir()


def test_a_database_without_tables_does_not_hold_its_log(workbench, new_agent):
    def confirmed() -> int:
        return workbench.engine.slot(DATABASE).confirmed.position

    workbench.sql("CREATE TABLE other (x int)")
    before = confirmed()
    new_agent()
    until(lambda: confirmed() > before, "the slot moves")
    assert workbench.control.jobs.get(DATABASE, JobType.CAPTURE) is None


def test_without_its_job_a_database_is_read_all_the_same_now_and_then(tracked, new_agent):
    new_agent()
    until_state(tracked, JobState.RUNNING)
    tracked.engine.stop_job(DATABASE)
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    tracked.engine.drop_job(DATABASE, "capture")
    until(lambda: len(tracked.rows("public_t")) == 1, "captured without a job")
    assert tracked.control.jobs.get(DATABASE, JobType.CAPTURE) is None


def test_the_agent_comes_back_when_the_control_database_was_away(tracked, new_agent, monkeypatch):
    jobs = tracked.control.jobs
    listed = jobs.list
    answers = iter([True, True])

    def away(database: str | None = None) -> object:
        if next(answers, None):
            raise ControlUnreachable("gone")
        return listed(database)

    monkeypatch.setattr(jobs, "list", away)
    new_agent()
    until_state(tracked, JobState.RUNNING)


def test_the_change_tables_of_a_disconnected_database_go_and_nobody_reads_it_again(
    tracked, new_agent, postgres
):
    new_agent()
    until_state(tracked, JobState.RUNNING)
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    tracked.engine.sync(DATABASE, SECONDS)
    folders = [
        Path(tracked.lake.change_table(DATABASE, "public_t")),
        Path(tracked.lake.lsn_time_mapping(DATABASE)),
    ]
    assert all(folder.is_dir() for folder in folders)
    tracked.connection.close()
    name = conninfo_to_dict(tracked.dsn)["dbname"]
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
        try:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )
            until_state(tracked, JobState.FAILED)
            tracked.engine.disconnect(DATABASE, force=True)
            until(lambda: not tracked.control.instances.dropped(), "nothing is left to clear away")
        finally:
            connection.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
    assert not any(folder.exists() for folder in folders)
    assert not [thread.name for thread in enumerate_threads() if f"{DATABASE}_capture" in thread.name]


def test_a_database_connected_again_under_its_name_begins_anew(tracked, new_agent):
    new_agent()
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    tracked.engine.sync(DATABASE, SECONDS)
    tracked.engine.disconnect(DATABASE, force=True)
    tracked.engine.connect(DATABASE, tracked.dsn)
    tracked.engine.enable_db(DATABASE)
    tracked.enable("t")
    tracked.sql("INSERT INTO t VALUES (2, 'b')")
    tracked.engine.sync(DATABASE, SECONDS)
    assert [row["id"] for row in tracked.rows("public_t")] == [2]
    low = tracked.engine.get_min_lsn(DATABASE, "public_t")
    assert min(row["start_lsn"] for row in tracked.mapping()) >= str(low)


def test_capture_stops_where_the_publication_was_dropped_by_hand(tracked, new_agent):
    new_agent()
    until_state(tracked, JobState.RUNNING)
    for trigger in EVENT_TRIGGERS:
        tracked.sql(f"DROP EVENT TRIGGER {trigger}")
    tracked.sql("DROP PUBLICATION highwater")
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    job = until_state(tracked, JobState.FAILED)
    assert "publication 'highwater' does not exist" in job.message
    [found] = [each for each in tracked.engine.status().findings if each.subject == f"Source {DATABASE}"]
    assert found.since == job.since


def test_a_source_that_an_earlier_version_enabled_is_upgraded_when_capture_begins(tracked, new_agent):
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    make_earlier(tracked.connection, "2_ddl")
    tracked.sql("ALTER TABLE t ADD more int")
    tracked.sql("INSERT INTO t VALUES (2, 'b', 2)")
    new_agent()
    tracked.engine.sync(DATABASE, SECONDS)
    assert tracked.sql("SELECT cdc.version()") == [(VERSION,)]
    tracked.sql("ALTER TABLE t ADD even_more int; INSERT INTO t VALUES (3, 'c', 3, 3)")
    tracked.engine.sync(DATABASE, SECONDS)
    assert sorted(row["id"] for row in tracked.rows("public_t")) == [1, 2, 3]
    assert len(tracked.engine.get_ddl_history(DATABASE, "public_t")) == 2


def test_a_thousand_starts_and_stops_end_as_the_last_one_says_with_one_reader(tracked, new_agent):
    new_agent()
    until_state(tracked, JobState.RUNNING)

    def ask(client: int) -> None:
        for number in range(100):
            tracked.control.jobs.want(DATABASE, JobType.CAPTURE, bool((number + client) % 2))

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(ask, range(10)))
    tracked.engine.stop_job(DATABASE)
    until(lambda: not any(each.name.endswith("_capture") for each in enumerate_threads()), "none reads on")
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    tracked.engine.start_job(DATABASE)
    tracked.engine.sync(DATABASE, SECONDS)
    assert len(tracked.rows("public_t")) == 1
    runs = tracked.engine.job_history(DATABASE, "capture")
    assert [run.outcome for run in runs if run.end_time is None] == [RunOutcome.RUNNING]
    assert {run.outcome for run in runs} == {RunOutcome.RUNNING, RunOutcome.STOPPED}


def test_a_lake_that_takes_nothing_is_told_and_capture_goes_on_when_it_does(tracked, new_agent):
    """Root may write anywhere: a file in the folder's place refuses it as a read-only or full disk does."""
    new_agent()
    until_state(tracked, JobState.RUNNING)
    tracked.engine.sync(DATABASE, SECONDS)
    log = Path(tracked.lake.change_table(DATABASE, "public_t")) / "_delta_log"
    aside = log.with_name("aside")
    log.rename(aside)
    log.write_text("")
    tracked.sql("INSERT INTO t VALUES (1, 'a')")
    job = until_state(tracked, JobState.FAILED)
    assert "Msg 22863" in job.message
    assert "Retrying: attempt " in job.message
    log.unlink()
    aside.rename(log)
    tracked.engine.sync(DATABASE, SECONDS)
    assert [row["id"] for row in tracked.rows("public_t")] == [1]
    assert 22863 in {error.error_number for error in tracked.engine.scan_errors(DATABASE)}
    until_state(tracked, JobState.RUNNING)
    running, failed = tracked.engine.job_history(DATABASE, "capture")[:2]
    assert (running.outcome, failed.outcome) == (RunOutcome.RUNNING, RunOutcome.FAILED)
    assert failed.message.startswith("Msg 22863")
