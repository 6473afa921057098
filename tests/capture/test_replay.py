"""A scan that dies anywhere: the next one ends with the change tables of an undisturbed run."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from engine.capture.crash_points import CrashPoint, CrashPoints
from engine.model.job import CaptureParameters
from tests.capture.conftest import DATABASE
from tests.capture.replayed import check
from tests.faults.oracle import expected_rows
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
        load.transactions(chance.randint(3, 12))
        crash = Dies(point, chance.randint(1, 3))
        parameters = CaptureParameters(maxtrans=chance.randint(1, 12), maxscans=20, pollinginterval=0)
        scan = workbench.scan(crash, piece_bytes=chance.choice([8_000, 40_000, 2**26]))
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
