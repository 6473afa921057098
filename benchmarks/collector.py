"""``python -m benchmarks.collector [--sessions N] [--runs N]``: how long the collected history takes to ask.

30 days of snapshots, one each 5 minutes, of 20 databases: in each snapshot session 0, the session that was
the newest before, and N new ones (default 4); a file a day, as upkeep leaves them, and the last hour's
snapshots one by one. Each question is asked over all 30 days. Target: under a second on 2 cores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import median

import numpy as np
import psutil
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.queries import spark_session
from engine.collector.history import History, HistoryRange
from engine.collector.snapshots import SnapshotTables
from engine.collector.views import SESSIONS, SESSIONS_TABLE
from engine.lake.tables import Lake

DAYS, DATABASES, INTERVAL = 30, 20, 300
START = datetime(2026, 10, 1, tzinfo=UTC)
TARGET = 1.0
_A_DAY = 86_400 // INTERVAL
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
        history = History(spark, lake)
        everything = HistoryRange(START, START + timedelta(days=DAYS))
        one = HistoryRange(START, START + timedelta(days=DAYS), "database 7")
        day = HistoryRange(START + timedelta(days=20), START + timedelta(days=21), None, None)
        print(f"{rows:,} rows of {DAYS * _A_DAY:,} snapshots of {DATABASES} databases", flush=True)
        questions: dict[str, Callable[[], object]] = {
            "latency and throughput, all databases, hours": lambda: history.series(everything, 3600),
            "latency and throughput, one database, half hours": lambda: history.series(one, 1800),
            "latency and throughput, all databases, one day, 5 minutes": lambda: history.series(day, 300),
            "sessions of one database, fetched": lambda: history.sessions(one).toArrow(),
            "engine restarts, all databases": lambda: history.engine_restarts(everything),
        }
        slowest = max(_seconds(what, ask, arguments.runs) for what, ask in questions.items())
    return int(slowest > TARGET)


def _seconds(what: str, ask: Callable[[], object], runs: int) -> float:
    """Prints seconds and processor seconds of the JVM, which say more while the machine does other things."""
    taken, busy, jvm = [], [], _jvm()
    for run in range(-_WARM_UPS, runs):
        used, began = sum(jvm.cpu_times()[:2]), time.perf_counter()
        ask()
        if run >= 0:
            taken.append(time.perf_counter() - began)
            busy.append(sum(jvm.cpu_times()[:2]) - used)
    print(f"{what}: {median(taken):.3f} s, {median(busy):.3f} s of processors", flush=True)
    return median(taken)


def _jvm() -> psutil.Process:
    [found] = [each for each in psutil.Process().children(recursive=True) if each.name() == "java"]
    return found


def _fill(spark: SparkSession, lake: Lake, sessions: int) -> int:
    tables, rows = SnapshotTables(spark, lake), 0
    for day in range(DAYS):
        last = _A_DAY if day < DAYS - 1 else _A_DAY - 12
        parts = [(0, last)] + [(number, number + 1) for number in range(last, _A_DAY)]
        for first, end in parts:
            table = _rows(day, first, end, sessions)
            tables.append(SESSIONS_TABLE, table)
            rows += table.num_rows
    return rows


def _rows(day: int, first: int, end: int, sessions: int) -> pa.Table:
    """Snapshots ``first`` … ``end`` of a day, of every database."""
    width = sessions + 2
    shape = (end - first, DATABASES, width)
    snapshot = day * _A_DAY + np.arange(first, end)
    number = np.broadcast_to(snapshot[:, None, None], shape).ravel()
    database = np.broadcast_to(np.arange(DATABASES)[None, :, None], shape).ravel()
    place = np.broadcast_to(np.arange(width)[None, None, :], shape).ravel()
    session = np.where(place == 0, 0, number * sessions + place - 1)
    began = np.where(place == 0, 0, (number * INTERVAL + (place - 2) * INTERVAL // max(sessions, 1))).clip(0)
    commands = np.where(place == 0, number, session % 97)
    zero = int(START.timestamp())
    moments = pa.timestamp("us", "UTC")

    def at(seconds: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
        return pa.array((seconds + zero) * 1_000_000, pa.int64()).cast(moments)

    text = pa.array([f"{each:08X}:00000000:0000" for each in session], pa.string())
    days = pa.array(np.full(len(number), zero // 86_400 + day), pa.int32()).cast(pa.date32())
    constant = np.zeros(len(number), np.int64)
    values: dict[str, object] = {
        "session_id": session,
        "start_time": at(began),
        "end_time": at(began + 4),
        "duration": session % 5,
        "scan_phase": pa.array(np.where(place == 0, "Aggregate", "Done")),
        "tran_count": commands // 3 + 1,
        "command_count": commands,
        "log_record_count": commands + 4,
        "latency": session % 11,
        "database_name": pa.array([f"database {each}" for each in database]),
        "snapshot_time": at((number + 1) * INTERVAL),
        "snapshot_id": number + 1,
        "collection_item_id": constant + 1,
        "engine_start": at(constant + (day // 10) * 864_000),
        "agent_start": at(constant + (day // 10) * 864_000),
        "interval_seconds": constant + INTERVAL,
        "snapshot_date": days,
        "collection_set_id": constant + 1,
    }
    others = {pa.string(): text, moments: at(began)}
    columns = [
        pa.array(values.get(field.name, others.get(field.type, constant))).cast(field.type)
        for field in SESSIONS.schema
    ]
    return pa.Table.from_arrays(columns, schema=SESSIONS.schema)


if __name__ == "__main__":
    sys.exit(main())
