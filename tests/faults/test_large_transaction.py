"""A transaction larger than what may be in memory, and rows of 100 kB: bounded, and visible at once.

HIGHWATER_FAULT_SEEDS: 1,000,000 rows, and 50,000 large ones; without it 100,000 and 300. HIGHWATER_LARGE_ROWS
says otherwise how many the transaction has.
"""

from __future__ import annotations

import os
from hashlib import md5
from threading import Event, Thread

import psutil
import pytest

from tests.faults.agent_home import AGENT_SECONDS, DATABASE, AgentHome
from tests.faults.oracle import Table

pytestmark = pytest.mark.faults
IS_LONG = int(os.environ.get("HIGHWATER_FAULT_SEEDS", "1")) > 1
ROWS = int(os.environ.get("HIGHWATER_LARGE_ROWS", "1000000" if IS_LONG else "100000"))
LARGE_ROWS, LARGE_ROWS_A_COMMIT = (50_000, 1000) if IS_LONG else (300, 100)
ROW_BYTES = 1500
GROWTH = 120 * 1024 * 1024
TABLE = Table("public.big", {"id": int, "body": str}, ("id",))
WIDE = Table("public.wide", {"id": int, "body": str}, ("id",))


class Memory:
    """The most resident memory of a process while it is watched."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._stop = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self.most = self.now

    @property
    def now(self) -> int:
        return int(self._process.memory_info().rss)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self.most = max(self.most, self.now)


def test_a_large_transaction_is_visible_at_once_and_held_in_pieces(new_home):
    home = new_home(piece_bytes=str(4 * 1024 * 1024))
    home.start_agent()
    home.wait_until_ready()
    schema = "CREATE TABLE {0} (id int PRIMARY KEY, body text)"
    home.prepare(f"{schema.format('big')}; {schema.format('wide')}", (TABLE, WIDE))
    home.sql("INSERT INTO big SELECT -n, repeat('x', 1500) FROM generate_series(1, 5000) n")
    home.engine.sync(DATABASE, AGENT_SECONDS)
    before = home.high()
    assert home.agent is not None
    with Memory(home.agent.pid) as memory:
        start = memory.now
        home.sql(f"INSERT INTO big SELECT n, repeat(md5(n::text), 47) FROM generate_series(1, {ROWS}) n")
        seen = {len(home.rows(TABLE, before))}
        while home.high() == before:
            seen.add(len(home.rows(TABLE, home.high())))
        seen.add(len(home.rows(TABLE, home.high())))
    home.engine.sync(DATABASE, AGENT_SECONDS)
    rows = home.rows(TABLE, home.high())
    assert seen == {5000, 5000 + ROWS}
    assert len({row["__$start_lsn"] for row in rows}) == 2
    assert sorted(row["__$command_id"] for row in rows if row["id"] > 0) == list(range(1, ROWS + 1))
    assert ROWS * ROW_BYTES < GROWTH or memory.most - start < GROWTH
    capture_large_rows(home)
    assert home.stop_agent() == 0


def capture_large_rows(home: AgentHome) -> None:
    """Values of 100 kB, many in a commit: each is there whole, and once."""
    assert home.agent is not None
    with Memory(home.agent.pid) as memory:
        start = memory.now
        for first in range(1, LARGE_ROWS, LARGE_ROWS_A_COMMIT):
            numbers = f"generate_series({first}, {first + LARGE_ROWS_A_COMMIT - 1}) n"
            home.sql(f"INSERT INTO wide SELECT n, repeat(md5(n::text), 3125) FROM {numbers}")
            home.engine.sync(DATABASE, AGENT_SECONDS)
    found = []
    for rows in home.pieces(WIDE):
        for row in rows:
            text = md5(str(row["id"]).encode(), usedforsecurity=False).hexdigest()
            assert row["body"] == text * 3125
            found.append((row["__$operation"], row["id"]))
    assert sorted(found) == [(2, number) for number in range(1, LARGE_ROWS + 1)]
    assert memory.most - start < GROWTH
