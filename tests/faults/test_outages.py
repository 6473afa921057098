"""The control database away, the lake full, the lake read-only: work resumes, nothing is lost, errors say so.

Capture, cleanup and the data collector, under load. HIGHWATER_FAULT_SEEDS: each outage takes a minute;
without it as long as it takes to be noticed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from engine.errors import CollectionFailed
from engine.model.job import JobRun, JobState, RunOutcome
from engine.runtime.embedded_postgres import EmbeddedPostgres
from tests.faults.agent_home import AGENT_SECONDS, DATABASE, AgentHome
from tests.faults.own_disk import own_disk
from tests.faults.source_replay import SourceReplay
from tests.faults.write_load import SCHEMA, TABLES, WriteLoad

pytestmark = pytest.mark.faults
COMMITS_MEANWHILE = 700 if "HIGHWATER_FAULT_SEEDS" in os.environ else 10
"""Transactions that the source commits during an outage; some twelve a second."""


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    """What goes after the homes have."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def home(closing: ExitStack, new_home: Callable[..., AgentHome], tmp_path) -> AgentHome:
    """A home whose source is another server than its control database."""
    made: AgentHome = new_home()
    source = EmbeddedPostgres(tmp_path / "source", {"fsync": "off"})
    closing.callback(source.stop)
    source.start()
    source.ensure_database(DATABASE)
    made.dsn = source.dsn(DATABASE)
    return made


def begin(home: AgentHome) -> tuple[SourceReplay, WriteLoad]:
    """An agent that has captured something, and writers that go on."""
    home.start_agent()
    home.wait_until_ready()
    replay = home.prepare(SCHEMA, TABLES)
    home.engine.change_job(DATABASE, maxtrans=1000)
    home.engine.change_job(DATABASE, "cleanup", retention=30)
    load = WriteLoad(home.dsn, 1)
    load.transactions(40)
    home.engine.sync(DATABASE, AGENT_SECONDS)
    return replay, load


def go_on(home: AgentHome, load: WriteLoad) -> None:
    """The outage lasts."""
    end = load.committed + COMMITS_MEANWHILE
    home.until(lambda: load.committed >= end, "the source goes on")


def newest_cleanup(home: AgentHome) -> JobRun:
    return home.engine.job_history(DATABASE, "cleanup")[0]


def until_cleaned_up(home: AgentHome) -> JobRun:
    home.until(lambda: newest_cleanup(home).outcome is not RunOutcome.RUNNING, "cleanup has ended")
    return newest_cleanup(home)


def clean_up(home: AgentHome) -> JobRun:
    before = home.engine.job_history(DATABASE, "cleanup")
    home.engine.start_job(DATABASE, "cleanup")
    home.until(lambda: len(home.engine.job_history(DATABASE, "cleanup")) > len(before), "cleanup begins")
    return until_cleaned_up(home)


def check(home: AgentHome, replay: SourceReplay, low: str) -> None:
    """Everything since ``low`` is there once, nothing below it, and the history has each session once."""
    home.engine.sync(DATABASE, AGENT_SECONDS)
    assert clean_up(home).outcome is RunOutcome.SUCCEEDED
    home.engine.collect()
    assert home.low_endpoints() == {low}
    assert home.obsolete_rows(TABLES, low) == 0
    assert home.check(replay, TABLES, low) > 100
    home.check_mapping()
    told = [count for _, _, count in home.told_sessions()]
    # The newest may have gone on since.
    assert told[:-1] == home.scan_sessions()[: len(told) - 1]


def test_the_control_database_is_away(home):
    replay, load = begin(home)
    low = home.make_older(minutes=60)
    load.start()
    home.engine._control.collection_sets.change(1, wanted=True)
    home.engine.start_job(DATABASE, "cleanup")
    home.kill_postgres()
    go_on(home, load)
    home.server.start()
    high = home.high()
    home.until(lambda: home.high() > high, "something is published")
    cut = until_cleaned_up(home)
    assert cut.outcome in (RunOutcome.SUCCEEDED, RunOutcome.FAILED, RunOutcome.INTERRUPTED)
    load.stop()
    check(home, replay, low)
    outcomes = {run.outcome for run in home.engine.collection_runs(1)}
    assert outcomes <= {RunOutcome.SUCCEEDED, RunOutcome.FAILED, RunOutcome.INTERRUPTED}
    assert home.stop_agent() == 0


def test_the_lake_is_full_and_then_read_only(closing, home):
    """Where no file system can be mounted, `test_a_lake_that_takes_nothing_…` of the agent stands for it."""
    disk = closing.enter_context(own_disk(home.lake_folder))
    replay, load = begin(home)
    load.start()
    for breaks, mends in ((disk.fill, disk.empty), (disk.make_read_only, disk.make_writable)):
        home.engine.sync(DATABASE, AGENT_SECONDS)
        low = home.make_older(minutes=60)
        breaks()
        home.until(lambda: capture_state(home) is JobState.FAILED, "capture says that it fails")
        with pytest.raises(CollectionFailed):
            home.engine.collect()
        assert clean_up(home).outcome is RunOutcome.FAILED
        go_on(home, load)
        mends()
        home.until(lambda: capture_state(home) is JobState.RUNNING, "capture goes on")
        check(home, replay, low)
        numbers = {error.error_number for error in home.engine.scan_errors(DATABASE)}
        assert numbers >= {22863}
    load.stop()
    outcomes = [run.outcome for run in home.engine.collection_runs(1)]
    assert outcomes.count(RunOutcome.FAILED) >= 2
    assert home.stop_agent() == 0


def capture_state(home: AgentHome) -> JobState:
    return next(job.state for job in home.engine.help_jobs(DATABASE) if job.job_type == "capture")
