"""Capture what was committed before the last midnight, then end; the job's schedule starts it every day."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime

from engine import Engine, Lsn, Settings

MAXTRANS, MAXSCANS = 500, 10
PAUSE = 1.0  # seconds until a log that was drained is looked at again


def last_midnight(now: datetime) -> datetime:
    """The midnight that has just passed, UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def log_end(engine: Engine, database: str) -> Lsn | None:
    """Where the source's log ends now; None while the source is away."""
    return next(each.facts.log_end for each in engine.status().databases if each.name == database)


def is_captured(engine: Engine, database: str, midnight: datetime, end: Lsn | None) -> bool:
    """Whether all commits before ``midnight`` are in the change tables.

    They are when a later one is, for commits are captured in their order. Where nothing was committed since,
    they are when the log is read up to ``end``, where it ended when this began.
    """
    marks = engine.watermarks(database)
    if marks.last_commit_time is not None and marks.last_commit_time >= midnight:
        return True
    return end is not None and marks.scanned is not None and marks.scanned >= end


def capture_until(
    engine: Engine,
    database: str,
    midnight: datetime,
    maxtrans: int = MAXTRANS,
    maxscans: int = MAXSCANS,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Scans until all commits before ``midnight`` are captured, and no further than that takes."""
    end = log_end(engine, database)
    while not is_captured(engine, database, midnight, end):
        engine.scan(database, maxtrans, maxscans)
        if not is_captured(engine, database, midnight, end):
            sleep(PAUSE)
            end = end or log_end(engine, database)


def main() -> None:
    """The job's step."""
    engine, database = Engine.open(Settings()), os.environ["HIGHWATER_DATABASE"]
    midnight = last_midnight(datetime.now(UTC))
    capture_until(engine, database, midnight)
    print(f"All transactions committed before {midnight:%Y-%m-%d %H:%M} UTC are captured.")


if __name__ == "__main__":
    main()
