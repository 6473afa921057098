"""SIGKILL of a process that enables or disables a table, under load: what the source committed comes about.

Control database and source commit one after the other. A process that dies before the source's commit leaves
nothing; one that dies after it leaves the word in the log, and capture does the rest without a hand.
HIGHWATER_FAULT_SEEDS: how many rounds; without it a short one, and none where a database without a job is
read, which the agent does each half minute.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from engine.model.job import JobState, JobType
from tests.agent.conftest import SECONDS, RunningAgent, until, until_state
from tests.agent.test_capture_states import home_of
from tests.capture.conftest import DATABASE, Workbench
from tests.faults.oracle import difference, expected_rows, in_order
from tests.faults.source_replay import SourceReplay
from tests.faults.write_load import SCHEMA, TABLES, WriteLoad

pytestmark = pytest.mark.faults
ROUNDS = int(os.environ.get("HIGHWATER_FAULT_SEEDS", "1"))
ACCOUNT, ITEM, _ = TABLES
PLACES = ("before the source", "within its transaction", "after its commit")
PROGRAM = """
import os
import signal
import sys

from engine.engine import Engine
from engine.settings import Settings
from engine.sources.postgres import admin

place, verb, instance, *_ = sys.argv[1:]


def dying(real, after=False):
    def call(*arguments, **options):
        if after:
            real(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    return call


if place == "within its transaction":
    setattr(admin, f"_{verb}", dying(getattr(admin, f"_{verb}"), after=True))
else:
    real = getattr(admin.PostgresAdmin, f"{verb}_table")
    setattr(admin.PostgresAdmin, f"{verb}_table", dying(real, after=place == "after its commit"))
engine = Engine.open(Settings())
if verb == "enable":
    engine.enable_table("db", "public", "account", role_name=None, capture_instance=instance)
else:
    engine.disable_table("db", "public", "account", instance)
"""


def is_killed(workbench: Workbench, place: str, verb: str, instance: str) -> None:
    """A process of its own calls the procedure and dies at that place."""
    environment = {
        **os.environ,
        "HIGHWATER_HOME": str(home_of(workbench).folder),
        "HIGHWATER_CONTROL_DSN": workbench.control._connections._dsn,
    }
    command = [sys.executable, "-c", PROGRAM, place, verb, instance]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def instances(workbench: Workbench) -> dict[str, bool]:
    """Those of account, and whether each has been met in the log."""
    found = workbench.control.instances.list(DATABASE)
    return {
        each.capture_instance: each.start_lsn is not None for each in found if each.source_table == "account"
    }


def check(workbench: Workbench, replay: SourceReplay) -> None:
    """Each instance of account has what was committed since it began, every column of it, and no more."""
    workbench.engine.sync(DATABASE, SECONDS)
    high = workbench.control.watermarks.get(DATABASE).high
    expected = expected_rows(replay.transactions(), ACCOUNT)
    for each in workbench.control.instances.list(DATABASE):
        if each.source_table == "account":
            since = [row for row in expected if str(each.start_lsn) < row["__$start_lsn"] <= str(high)]
            found = [row for row in workbench.rows(each) if row["__$start_lsn"] <= str(high)]
            assert difference(since, in_order(found)) is None, each.capture_instance


@pytest.mark.parametrize("alone", [False, True] if ROUNDS > 1 else [False], ids=str)
def test_tables_are_enabled_changed_over_and_disabled_by_processes_that_die(
    workbench: Workbench, new_agent: Callable[..., RunningAgent], alone: bool
) -> None:
    """``alone``: nobody has a capture job as the process dies that was to add it."""
    workbench.sql(SCHEMA)
    if not alone:
        workbench.enable("item")
        workbench.engine.change_job(DATABASE, pollinginterval=0)
    replay, load = SourceReplay(workbench.dsn), WriteLoad(workbench.dsn, 1)
    new_agent()
    load.start()
    try:
        for _ in range(1 if alone else ROUNDS):
            for verb, name, left in (
                ("enable", "first", {"first"}),
                ("enable", "second", {"first", "second"}),
                ("disable", "first", {"second"}),
                ("disable", "second", set()),
            ):
                before = instances(workbench)
                for place in PLACES[:2] if ROUNDS > 1 else PLACES[1:2]:
                    is_killed(workbench, place, verb, name)
                    assert instances(workbench) == before
                is_killed(workbench, PLACES[2], verb, name)
                wanted = dict.fromkeys(left, True)
                until(lambda wanted=wanted: instances(workbench) == wanted, f"the log says so: {verb} {name}")
                if left:
                    until_state(workbench, JobState.RUNNING)
                    commits = load.committed
                    until(lambda commits=commits: load.committed > commits + 5, "the source goes on")
                    check(workbench, replay)
    finally:
        load.stop()
    if alone:
        assert workbench.control.jobs.get(DATABASE, JobType.CAPTURE) is None
    else:
        workbench.engine.sync(DATABASE, SECONDS)
        until_state(workbench, JobState.RUNNING)
