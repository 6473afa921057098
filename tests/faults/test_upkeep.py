"""SIGKILL of the agent in a cleanup and in a collection, under load.

Nothing but obsolete rows is ever gone, nothing below a low endpoint is told, and the collected history has
each session once and no half snapshot. HIGHWATER_FAULT_SEEDS: all cuts, so often; without it one of each.
"""

from __future__ import annotations

import os

import pytest

from engine.capture.crash_points import CleanupCrashPoint, CollectionCrashPoint
from engine.errors import AgentNotRunning, RangeOutsideValidity
from engine.model.job import JobRun, RunOutcome
from engine.model.lsn import Lsn
from tests.faults.agent_home import AGENT_SECONDS, DATABASE, AgentHome
from tests.faults.write_load import SCHEMA, TABLES, WriteLoad

pytestmark = pytest.mark.faults
ALL_CUTS = "HIGHWATER_FAULT_SEEDS" in os.environ
SEEDS = range(1, 1 + int(os.environ.get("HIGHWATER_FAULT_SEEDS", "1")))


def ask_for_cleanup(home: AgentHome) -> None:
    """With no agent there: the next one begins with it."""
    with pytest.raises(AgentNotRunning, match="will start with it"):
        home.engine.start_job(DATABASE, "cleanup")


def cleanups(home: AgentHome) -> list[JobRun]:
    return list(home.engine.job_history(DATABASE, "cleanup"))


def ask_for_snapshot(home: AgentHome) -> None:
    home.engine._control.collection_sets.change(1, wanted=True)


def check_history(home: AgentHome) -> None:
    """Each session that the engine knows is told once, with all its transactions."""
    assert [count for _, _, count in home.told_sessions()] == home.scan_sessions()


@pytest.mark.parametrize("seed", SEEDS)
def test_cleanups_and_collections_that_are_killed_lose_nothing_and_double_nothing(new_home, seed):
    home = new_home()
    home.start_agent(crash_at=CleanupCrashPoint.BEFORE_DELETING)
    home.wait_until_ready()
    replay = home.prepare(SCHEMA, TABLES)
    load = WriteLoad(home.dsn, seed)
    load.transactions(60)
    home.engine.sync(DATABASE, AGENT_SECONDS)
    low = home.make_older(minutes=60)
    # From the next start on: what piles up while no agent runs would come in thousands of files.
    home.engine.change_job(DATABASE, maxtrans=1000)
    home.engine.change_job(DATABASE, "cleanup", retention=30, threshold=50 if ALL_CUTS else 5000)
    first = home.engine.collect()
    told = home.told_sessions()
    check_history(home)
    before = home.obsolete_rows(TABLES, low)
    load.start()
    home.engine.start_job(DATABASE, "cleanup")
    home.wait_until_dead()
    # Cut between the low endpoints and the rows: those have moved, all of these are still there.
    assert home.low_endpoints() == {low}
    assert home.obsolete_rows(TABLES, low) == before > 0
    home.check(replay, TABLES, low)

    if ALL_CUTS:
        ask_for_cleanup(home)
        home.start_agent(crash_at=f"{CleanupCrashPoint.BETWEEN_STATEMENTS}:2")
        home.wait_until_dead()
        assert home.low_endpoints() == {low}
        assert 0 < home.obsolete_rows(TABLES, low) < before
        home.check(replay, TABLES, low)

    cuts = [f"{CollectionCrashPoint.BETWEEN_OUTPUT_TABLES}:2", str(CollectionCrashPoint.BEFORE_COUNTING)]
    for cut in cuts if ALL_CUTS else cuts[:1]:
        ask_for_snapshot(home)
        home.start_agent(crash_at=cut)
        home.wait_until_dead()
        # Some of its tables are written, and nothing of it is told.
        half = home.engine.collection_runs(1, 1)[0].snapshot_id
        assert half > first.snapshot_id
        assert half in home.collected("snapshot_id", "cdc_log_scan_data")
        assert home.told_sessions() == told
        home.check(replay, TABLES, low)

    ask_for_cleanup(home)
    home.start_agent()
    home.until(lambda: cleanups(home)[0].outcome is RunOutcome.SUCCEEDED, "cleanup is done")
    load.stop()
    home.engine.sync(DATABASE, AGENT_SECONDS)
    last = home.engine.collect()
    check_history(home)
    runs = home.engine.collection_runs(1)
    assert {run.outcome for run in runs if run not in (last, first)} >= {RunOutcome.INTERRUPTED}
    shown = {row.snapshot_id for row in home.engine.custom_snapshots("cdc_log_scan_data").collect()}
    assert shown == {run.snapshot_id for run in runs if run.outcome is RunOutcome.SUCCEEDED}
    assert {run.outcome for run in cleanups(home)[1:]} == {RunOutcome.INTERRUPTED}
    assert home.low_endpoints() == {low}
    assert home.obsolete_rows(TABLES, low) == 0
    assert min(home.mapping()) == low
    assert home.check(replay, TABLES, low) > 100
    home.check_mapping()
    below = Lsn.parse(low).previous()
    with pytest.raises(RangeOutsideValidity):
        home.engine.get_all_changes(DATABASE, "public_item", below, Lsn.parse(low))
    assert home.stop_agent() == 0
