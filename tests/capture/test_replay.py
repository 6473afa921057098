"""A scan that dies anywhere: the next one ends with the change tables of an undisturbed run."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress

import pytest

from engine.capture.crash_points import CrashPoint, CrashPoints
from engine.model.job import CaptureParameters
from engine.model.lsn import Lsn
from tests.capture.conftest import DATABASE, Workbench
from tests.faults.oracle import difference, expected_rows, in_order
from tests.faults.source_replay import SourceReplay
from tests.faults.write_load import SCHEMA, TABLES, WriteLoad


class Died(BaseException):
    """Nothing that a scan catches: as abrupt as a process's end, but for the JVM."""


class Dies(CrashPoints):
    """Dies at the given passage of a point."""

    def __init__(self, at: CrashPoint, passage: int) -> None:
        super().__init__()
        self._deadly, self._left = at, passage
        self.died = False

    def reach(self, point: CrashPoint) -> None:
        if point is self._deadly:
            self._left -= 1
            if self._left == 0:
                self.died = True
                raise Died


def check(workbench: Workbench, replay: SourceReplay) -> None:
    """What readers see is exactly what the source committed up to the watermark."""
    high = workbench.control.watermarks.get(DATABASE).high or Lsn.ZERO
    transactions = replay.transactions()
    commits = set()
    for table in TABLES:
        expected = [row for row in expected_rows(transactions, table) if row["__$start_lsn"] <= str(high)]
        found = in_order(workbench.rows(table.capture_instance))
        assert difference(expected, found) is None, table.name
        commits |= {row["__$start_lsn"] for row in expected}
    mapping = Counter(row["start_lsn"] for row in workbench.mapping() if row["start_lsn"] <= str(high))
    assert set(mapping.values()) <= {1}
    assert commits <= set(mapping)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_dies_wherever_nothing_is_lost_or_doubled(workbench, seed):
    chance = random.Random(seed)
    workbench.sql(SCHEMA)
    load = WriteLoad(workbench.dsn, seed)
    load.transactions(5)
    for table in TABLES:
        workbench.enable(table.name.removeprefix("public."))
    replay = SourceReplay(workbench.dsn)
    for point in chance.sample(list(CrashPoint), len(CrashPoint)):
        load.transactions(chance.randint(5, 25))
        crash = Dies(point, chance.randint(1, 3))
        parameters = CaptureParameters(maxtrans=chance.randint(1, 12), maxscans=20, pollinginterval=0)
        scan = workbench.scan(crash, piece_bytes=chance.choice([2_000, 20_000, 2**26]))
        with suppress(Died):
            scan.run(parameters, lambda: False)
        workbench.opened[-1].close()
        check(workbench, replay)
    workbench.drain()
    check(workbench, replay)
    high = workbench.control.watermarks.get(DATABASE).high
    assert high.position >= max(t.commit for t in replay.transactions() if _captured(t))


def _captured(transaction) -> bool:
    return any(expected_rows([transaction], table) for table in TABLES)
