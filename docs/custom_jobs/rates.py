"""Capture at different rates: an easy one, and full speed while the source keeps much log for capture."""

import os
import time
from dataclasses import dataclass

from engine import Engine, Settings


@dataclass(frozen=True)
class Rate:
    """From how many bytes of kept log on, how much a scan takes, and the seconds between two scans."""

    backlog: int
    maxtrans: int
    maxscans: int
    pause: float


RATES = (
    Rate(backlog=256 * 1024**2, maxtrans=5000, maxscans=100, pause=0),
    Rate(backlog=16 * 1024**2, maxtrans=500, maxscans=10, pause=1),
    Rate(backlog=0, maxtrans=100, maxscans=5, pause=10),
)


def rate_for(backlog: int) -> Rate:
    """The rate at which so many bytes of log are captured."""
    return next(rate for rate in RATES if backlog >= rate.backlog)


def main() -> None:
    """The job's step: goes on until the job is stopped."""
    engine, database = Engine.open(Settings()), os.environ["HIGHWATER_DATABASE"]
    before = None
    while True:
        slot = engine.slot(database)
        rate = rate_for(0 if slot is None else slot.retained_bytes)
        if rate != before:
            print(f"Scans take {rate.maxscans} x {rate.maxtrans} transactions, {rate.pause:g} s apart.")
            before = rate
        engine.scan(database, rate.maxtrans, rate.maxscans)
        time.sleep(rate.pause)


if __name__ == "__main__":
    main()
