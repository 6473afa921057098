"""SIGKILL of the agent at each named point and of PostgreSQL: change tables as after an undisturbed run.

HIGHWATER_FAULT_SEEDS: how many seeds, with all points; without it one seed with two points, as each start of
an agent takes a quarter of a minute. `tests/capture/test_replay.py` has all points within one process.
"""

from __future__ import annotations

import os
import random

import pytest

from engine.capture.crash_points import CrashPoint
from tests.faults.agent_home import AGENT_SECONDS, DATABASE
from tests.faults.write_load import SCHEMA, TABLES, WriteLoad

pytestmark = pytest.mark.faults
ALL_POINTS = "HIGHWATER_FAULT_SEEDS" in os.environ
SEEDS = range(int(os.environ.get("HIGHWATER_FAULT_SEEDS", "1")))


@pytest.mark.parametrize("seed", SEEDS)
def test_kills_under_load_lose_nothing_and_double_nothing(new_home, seed):
    chance = random.Random(seed)
    home = new_home(piece_bytes="20000")
    home.start_agent(crash_at=f"{CrashPoint.AFTER_READING}:{chance.randint(1, 3)}")
    home.wait_until_ready()
    replay = home.prepare(SCHEMA, TABLES)
    loads = [WriteLoad(home.dsn, seed * 10 + number) for number in range(2)]
    for load in loads:
        load.start()
    home.wait_until_dead()
    others = [point for point in CrashPoint if point is not CrashPoint.AFTER_READING]
    for point in chance.sample(others, len(others) if ALL_POINTS else 1):
        home.start_agent(crash_at=f"{point}:{chance.randint(1, 6)}")
        home.wait_until_dead()
        home.check(replay, TABLES)
    home.start_agent()
    home.wait_until_ready()
    for _ in range(2 if ALL_POINTS else 1):
        before = home.high()
        home.until(lambda before=before: home.high() > before, "something is published")
        home.kill_postgres()
        home.server.start()
    for load in loads:
        load.stop()
    # The scans so far were kept small so that kills fall between them; what is left may go at once.
    home.engine.change_job(DATABASE, maxtrans=100_000)
    assert home.stop_agent() == 0
    home.start_agent(piece_bytes="64000000")
    home.wait_until_ready()
    home.engine.sync(DATABASE, AGENT_SECONDS)
    assert home.check(replay, TABLES) > 100
    home.check_mapping()
    assert home.stop_agent() == 0
