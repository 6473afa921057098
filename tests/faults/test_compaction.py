"""SIGKILL of the agent in the middle of a compaction, under load: every row is there, and once.

HIGHWATER_FAULT_SEEDS: how often, also after its commit; without it once, between its files and that.
"""

from __future__ import annotations

import os

import pytest

from engine.capture.crash_points import CompactionCrashPoint
from engine.errors import AgentNotRunning
from engine.lake.compaction import Limits
from engine.model.job import RunOutcome
from tests.faults.agent_home import AGENT_SECONDS, DATABASE, AgentHome
from tests.faults.write_load import SCHEMA, TABLES, WriteLoad

pytestmark = pytest.mark.faults
ALL_CUTS = "HIGHWATER_FAULT_SEEDS" in os.environ
SEEDS = range(1, 1 + int(os.environ.get("HIGHWATER_FAULT_SEEDS", "1")))


def ask(home: AgentHome) -> None:
    """With no agent there: the next one begins with it."""
    with pytest.raises(AgentNotRunning):
        home.engine.compact(DATABASE)


@pytest.mark.parametrize("seed", SEEDS)
def test_compaction_that_is_killed_under_load_loses_nothing_and_doubles_nothing(new_home, seed):
    home = new_home()
    home.start_agent(crash_at=CompactionCrashPoint.BEFORE_COMPACTING)
    home.wait_until_ready()
    replay = home.prepare(SCHEMA, TABLES)
    load = WriteLoad(home.dsn, seed)
    load.start()
    home.until(lambda: home.files_of("public_item") > Limits().fewest + 1, "there are small files")
    home.engine._control.compactions.ask(DATABASE)
    home.wait_until_dead()
    home.check(replay, TABLES)
    if ALL_CUTS:
        ask(home)
        home.start_agent(crash_at=CompactionCrashPoint.AFTER_COMPACTING)
        home.wait_until_dead()
        home.check(replay, TABLES)
    home.start_agent()
    home.wait_until_ready()
    load.stop()
    home.engine.change_job(DATABASE, maxtrans=100_000)
    run = home.engine.compact(DATABASE, AGENT_SECONDS)
    assert run.outcome is RunOutcome.SUCCEEDED
    home.engine.sync(DATABASE, AGENT_SECONDS)
    assert home.check(replay, TABLES) > 200
    home.check_mapping()
    assert home.stop_agent() == 0
