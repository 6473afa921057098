"""``python -m benchmarks.collector [--sessions N] [--runs N]``: how long the collected history takes to ask.

30 days of snapshots, one each 5 minutes, of 20 databases: in each snapshot session 0, the session that was
the newest before, and N new ones (default 4); a file a day, as upkeep leaves them, and the last hour's
snapshots one by one. Each question is asked over all 30 days. Target: under a second on 2 cores, as the
engine asks it; beside that, and in turn with it, what Spark alone takes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import median

import psutil
from pyspark.sql import SparkSession

from benchmarks.queries import spark_session
from benchmarks.snapshots import A_DAY, Snapshots
from engine.collector.history import History, SparkHistory
from engine.collector.ranges import HistoryRange
from engine.collector.snapshots import SnapshotTables
from engine.collector.views import SESSIONS_TABLE
from engine.lake.tables import Lake

DAYS, DATABASES = 30, 20
START = datetime(2026, 10, 1, tzinfo=UTC)
TARGET = 1.0
_WARM_UPS = 3


def main() -> int:
    """Measures and prints; exit code 1 when the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    with spark_session() as spark, tempfile.TemporaryDirectory(prefix="highwater-bench-") as folder:
        lake = Lake(folder)
        rows = _fill(spark, lake, arguments.sessions)
        print(f"{rows:,} rows of {DAYS * A_DAY:,} snapshots of {DATABASES} databases", flush=True)
        engine, alone = _questions(History(lambda: spark, lake)), _questions(SparkHistory(spark, lake))
        slowest = max(_seconds(what, ask, alone[what], arguments.runs) for what, ask in engine.items())
    return int(slowest > TARGET)


def _questions(history: History | SparkHistory) -> dict[str, Callable[[], object]]:
    end = START + timedelta(days=DAYS)
    everything, one = HistoryRange(START, end), HistoryRange(START, end, "database 7")
    day = HistoryRange(START + timedelta(days=20), START + timedelta(days=21))
    return {
        "latency and throughput, all databases, hours": lambda: history.series(everything, 3600),
        "latency and throughput, one database, half hours": lambda: history.series(one, 1800),
        "latency and throughput, all databases, one day, 5 minutes": lambda: history.series(day, 300),
        "sessions of one database, fetched": lambda: history.sessions(one).toArrow(),
        "engine restarts, all databases": lambda: history.engine_restarts(everything),
    }


def _seconds(what: str, ask: Callable[[], object], alone: Callable[[], object], runs: int) -> float:
    """Prints seconds and processor seconds, which say more while the machine does other things."""
    taken: list[tuple[float, float]] = []
    by_spark: list[tuple[float, float]] = []
    for run in range(-_WARM_UPS, runs):
        for question, times in ((ask, taken), (alone, by_spark)):
            used, began = _used(), time.perf_counter()
            question()
            if run >= 0:
                times.append((time.perf_counter() - began, _used() - used))
    (seconds, used), (spark_seconds, spark_used) = _medians(taken), _medians(by_spark)
    ratio = median(other[0] / own[0] for own, other in zip(taken, by_spark, strict=True))
    print(
        f"{what}: {seconds:.3f} s, {used:.2f} s of processors;"
        f" Spark alone {spark_seconds:.3f} s, {spark_used:.2f} s; {ratio:.1f} times as fast",
        flush=True,
    )
    return seconds


def _medians(times: list[tuple[float, float]]) -> tuple[float, float]:
    return median(each[0] for each in times), median(each[1] for each in times)


def _used() -> float:
    """Processor seconds of this process and the JVM."""
    return float(sum(time for each in (psutil.Process(), _jvm()) for time in each.cpu_times()[:2]))


def _jvm() -> psutil.Process:
    [found] = [each for each in psutil.Process().children(recursive=True) if each.name() == "java"]
    return found


def _fill(spark: SparkSession, lake: Lake, sessions: int) -> int:
    tables, rows = SnapshotTables(spark, lake), 0
    names = [f"database {each}" for each in range(DATABASES)]
    snapshots = Snapshots(START, DAYS * A_DAY, names, sessions)
    for first, end in snapshots.parts():
        table = snapshots.session_rows(first, end)
        tables.append(SESSIONS_TABLE, table)
        rows += table.num_rows
    return rows


if __name__ == "__main__":
    sys.exit(main())
