"""A transaction larger than what may be in memory: bounded, and visible at once.

HIGHWATER_LARGE_ROWS: its rows; 100,000 in the normal suite, 1,000,000 for the real thing.
"""

from __future__ import annotations

import os
from threading import Event, Thread

import psutil
import pytest

from tests.faults.agent_home import AGENT_SECONDS, DATABASE
from tests.faults.oracle import Table

pytestmark = pytest.mark.faults
ROWS = int(os.environ.get("HIGHWATER_LARGE_ROWS", "100000"))
ROW_BYTES = 1500
GROWTH = 120 * 1024 * 1024
TABLE = Table("public.big", {"id": int, "body": str}, ("id",))


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
    home.prepare("CREATE TABLE big (id int PRIMARY KEY, body text)", (TABLE,))
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
    assert home.stop_agent() == 0
