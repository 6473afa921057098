"""A hundred ids go through a state machine while the agent is killed: the changes of each are its way.

HIGHWATER_FAULT_SEEDS: 90 seconds with a kill every 20; without it one kill after some hundred commits.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from threading import Event, Thread

import psycopg
import pytest

from tests.faults.agent_home import AGENT_SECONDS, DATABASE, AgentHome
from tests.faults.oracle import Table, in_order

pytestmark = pytest.mark.faults
IS_LONG = int(os.environ.get("HIGHWATER_FAULT_SEEDS", "1")) > 1
SECONDS, SECONDS_A_KILL = 90, 20
COMMITS = 300
IDS = 100
WRITERS = 4
TABLE = Table("public.process", {"id": int, "life": int, "state": str, "step": int}, ("id",))
NEXT = {None: ["new"], "new": ["open"], "open": ["held", "done"], "held": ["open", "done"], "done": [None]}
"""From each state; None is no row."""


class StateMachine:
    """A writer with ids of its own; each commit takes one of them from its state to a next one."""

    def __init__(self, dsn: str, ids: range, stop: Event) -> None:
        self.committed = 0
        self._dsn, self._stop = dsn, stop
        self._random = random.Random(ids.start)
        self._rows: dict[int, tuple[int, str | None, int]] = dict.fromkeys(ids, (0, None, 0))
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._stop.wait(0.08):
                self._go_on(connection, self._random.choice(list(self._rows)))
                self.committed += 1

    def _go_on(self, connection: psycopg.Connection, number: int) -> None:
        life, before, step = self._rows[number]
        after = self._random.choice(NEXT[before])
        if before is None:
            life, step = life + 1, 0
            connection.execute("INSERT INTO process VALUES (%s, %s, %s, 0)", [number, life, after])
        elif after is None:
            connection.execute("DELETE FROM process WHERE id = %s", [number])
        else:
            step += 1
            connection.execute(
                "UPDATE process SET state = %s, step = %s WHERE id = %s", [after, step, number]
            )
        self._rows[number] = (life, after, step)


def check_ways(home: AgentHome) -> int:
    """What each id's changes tell, in their order, is a way through the states without a gap."""
    ways = defaultdict(list)
    rows = in_order(home.rows(TABLE, home.high()))
    for row in rows:
        ways[row["id"]].append((row["__$operation"], row["life"], row["state"], row["step"]))
    for way in ways.values():
        now: tuple[int, str | None, int] = (0, None, 0)
        for operation, life, state, step in way:
            if operation == 2:
                assert (now[1], life, state, step) == (None, now[0] + 1, "new", 0), way
            elif operation == 4:
                assert (life, step) == (now[0], now[2] + 1), way
                assert state in NEXT[now[1]], way
            else:
                assert (life, state, step) == now, way
                if operation == 3:
                    continue
                assert state == "done", way
            now = (life, None if operation == 1 else state, step)
    return len(rows)


def wait_for_kill(home: AgentHome, writers: list[StateMachine]) -> None:
    """Until it is time for the next kill; something is published in between."""
    committed = sum(writer.committed for writer in writers)
    high, end = home.high(), time.monotonic() + (SECONDS_A_KILL if IS_LONG else 0)
    home.until(
        lambda: (
            home.high() > high
            and time.monotonic() > end
            and sum(writer.committed for writer in writers) > committed + COMMITS
        ),
        "the ids go on",
    )


def test_each_of_a_hundred_ids_keeps_its_way(new_home):
    home = new_home()
    home.start_agent()
    home.wait_until_ready()
    columns = "id int PRIMARY KEY, life int, state text, step int"
    replay, stop = home.prepare(f"CREATE TABLE process ({columns})", (TABLE,)), Event()
    # From the next start on: what piles up while no agent runs would come in hundreds of commits.
    home.engine.change_job(DATABASE, maxtrans=500)
    each = IDS // WRITERS
    writers = [StateMachine(home.dsn, range(n * each, (n + 1) * each), stop) for n in range(WRITERS)]
    try:
        for _ in range(SECONDS // SECONDS_A_KILL if IS_LONG else 1):
            wait_for_kill(home, writers)
            home.agent.kill()
            home.wait_until_dead()
            home.check(replay, (TABLE,))
            check_ways(home)
            home.start_agent()
        wait_for_kill(home, writers)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    home.engine.sync(DATABASE, AGENT_SECONDS)
    assert home.check(replay, (TABLE,)) == check_ways(home) > COMMITS
    home.check_mapping()
    assert home.stop_agent() == 0
