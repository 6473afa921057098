"""``python -m benchmarks.large_home --home FOLDER [--databases N] [--tables N] [--rows N] [--days N]``.

Makes a home as a month of work leaves it, for `benchmarks.pages` or for ``highwater start --home FOLDER
--no-demo``: by default 20 databases of the embedded server with 25 captured tables each, enabled by the
engine and met by the capture jobs in the log; 30 days of snapshots, one each 5 minutes; a day of scan
sessions and a month of cleanups in the control database; and a change table of 10,000,000 rows in the first
database.

Those rows were never in a table: the source writes as much log as they need, and while nothing captures it
they are appended to change table and lsn_time_mapping at positions of that log, by capture's own publisher.
Then the capture jobs pass that log and publish it. So all that reads them finds what capture would have left.
What is aged is history alone; databases and change rows are as old as the home.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree

import numpy as np
import psycopg
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from benchmarks.queries import ROWS_A_COMMIT, ROWS_AN_APPEND, append_of, spark_session
from benchmarks.snapshots import INTERVAL, Snapshots
from engine.capture.lsn_text import lsn_texts
from engine.collector.snapshots import SnapshotTables
from engine.collector.views import DEFAULT_TABLES, SESSIONS_TABLE, SLOTS, TABLE_SIZES
from engine.engine import Engine
from engine.lake.publisher import Append, Publisher
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA, Lake
from engine.model.capture_instance import CaptureInstance
from engine.model.collection import DEFAULT_SET
from engine.model.job import JobType
from engine.runtime.embedded_postgres import CONTROL_DATABASE, EmbeddedPostgres, embedded_server
from engine.settings import Settings

SCHEMA = "dbo"
LARGE = "movement"
"""The table, of the first database, whose change table is large."""
DATABASE = "branch_{:02}"
SESSIONS = 4
"""New scan sessions of a database in five minutes; the first database scans each five seconds."""
_COLUMNS = """
    id bigint PRIMARY KEY, customer int, amount numeric(12, 2), ratio double precision, paid boolean,
    code text, note text, at timestamptz
"""
_ROWS = """
INSERT INTO {table} SELECT n, n, n, n / 7.0, n % 3 = 0, 'code ' || n, 'a note', now()
    FROM generate_series(1, 20) n;
UPDATE {table} SET amount = amount + 1 WHERE id <= 10;
DELETE FROM {table} WHERE id > 15;
"""
_LOG_A_COMMIT = 100
"""Bytes of the log that a commit of the large table is given."""
_SYNC_SECONDS = 600


def main() -> int:
    """Makes it, and prints how long each part took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--home", type=Path, required=True, help="a folder that is not there yet")
    parser.add_argument("--databases", type=int, default=20)
    parser.add_argument("--tables", type=int, default=25)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=30)
    arguments = parser.parse_args()
    settings = Settings(home=arguments.home)
    if settings.home.exists():
        parser.error(f"{settings.home} is there already")
    names = [DATABASE.format(number) for number in range(1, arguments.databases + 1)]
    tables = [LARGE, *(f"stock_{number:02}" for number in range(1, arguments.tables))]
    with running(settings), opened(settings) as engine:
        with timed("databases and tables enabled"):
            _enable(settings, engine, names, tables)
        with timed("capture has met them"):
            _sync(engine, names)
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start = midnight - timedelta(days=arguments.days)
    count = int((datetime.now(UTC) - start).total_seconds()) // INTERVAL
    with server(settings) as postgres, opened(settings) as engine, spark_session() as spark:
        with timed(f"{arguments.rows:,} change rows"):
            [instance] = engine.help_change_data_capture(names[0], SCHEMA, LARGE)
            _fill_large(spark, postgres, Lake(settings.lake), instance, arguments.rows)
        with timed(f"{count:,} snapshots, a day of sessions, runs"):
            _collect(spark, Lake(settings.lake), Snapshots(start, count, names, SESSIONS), tables)
            _record(postgres.dsn(CONTROL_DATABASE), start, count, arguments.days)
    with running(settings), opened(settings) as engine, timed("capture has passed the log"):
        engine.change_job(names[0], JobType.CLEANUP, retention=366 * 1440)
        engine.start_collection_set(DEFAULT_SET)
        _sync(engine, names)
    return 0


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Prints what was done and how long it took."""
    began = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - began:.0f} s", flush=True)


@contextmanager
def running(settings: Settings) -> Iterator[None]:
    """The home without its dashboard."""
    command = [sys.executable, "-m", "engine"]
    home = ["--home", str(settings.home)]
    subprocess.run([*command, "start", "--no-dashboard", "--no-demo", "--detach", *home], check=True)
    try:
        yield
    finally:
        subprocess.run([*command, "stop", *home], check=True)


@contextmanager
def server(settings: Settings) -> Iterator[EmbeddedPostgres]:
    """The home's server alone: nothing captures."""
    postgres = embedded_server(settings)
    postgres.start()
    try:
        yield postgres
    finally:
        postgres.stop()


@contextmanager
def opened(settings: Settings) -> Iterator[Engine]:
    """The home's engine."""
    engine = Engine.open(settings)
    try:
        yield engine
    finally:
        engine.close()


def _enable(settings: Settings, engine: Engine, names: Sequence[str], tables: Sequence[str]) -> None:
    postgres = embedded_server(settings)
    for name in names:
        postgres.ensure_database(name)
        with psycopg.connect(postgres.dsn(name), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
            for table in tables:
                connection.execute(f"CREATE TABLE {SCHEMA}.{table} ({_COLUMNS})")
            engine.connect(name, postgres.dsn(name))
            engine.enable_db(name)
            for table in tables:
                engine.enable_table(name, SCHEMA, table, role_name=None)
            for table in tables[1:]:
                connection.execute(_ROWS.format(table=f"{SCHEMA}.{table}"))


def _sync(engine: Engine, names: Sequence[str]) -> None:
    for name in names:
        engine.sync(name, _SYNC_SECONDS)


# The large change table


def _fill_large(
    spark: SparkSession, postgres: EmbeddedPostgres, lake: Lake, instance: CaptureInstance, rows: int
) -> None:
    start, end = _log_between(postgres.dsn(instance.database), rows // ROWS_A_COMMIT * _LOG_A_COMMIT)
    path = lake.change_table(instance.database, instance.capture_instance)
    mapping = lake.lsn_time_mapping(instance.database)
    began, now = instance.create_date.timestamp(), time.time()
    publisher = Publisher(spark, fsync=False)
    for first in range(0, rows, ROWS_AN_APPEND):
        last = min(first + ROWS_AN_APPEND, rows)
        changes = append_of(path, instance, first, last, rows, start, _LOG_A_COMMIT)
        commits = np.unique(changes.commits)
        share = (commits - start) / (end - start)
        publisher.append([changes, _mapped(mapping, commits, began + share * (now - began))])
    publisher.maintain(path)
    publisher.maintain(mapping)


def _log_between(dsn: str, size: int) -> tuple[int, int]:
    """Writes so much log, and a little more; positions between which that much is free of commits."""
    with psycopg.connect(dsn, autocommit=True) as connection:

        def position() -> int:
            row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
            return int(row[0]) if row else 0

        start = position()
        while position() < start + size + 2**20:
            connection.execute("SELECT pg_logical_emit_message(false, 'filler', repeat('x', 1048576))")
    return start + 2**16, start + 2**16 + size


def _mapped(path: str, commits: NDArray[np.uint64], seconds: NDArray[np.float64]) -> Append:
    """Rows of lsn_time_mapping for transactions committed at these positions and times."""
    count = len(commits)
    texts = lsn_texts(commits)
    columns = [
        texts,
        pa.nulls(count, LSN_TIME_MAPPING_SCHEMA.field("tran_begin_time").type),
        pa.array((seconds * 1e6).astype(np.int64)).cast(LSN_TIME_MAPPING_SCHEMA.field("tran_end_time").type),
        pa.array([int(commit % 2**32).to_bytes(4, "big") for commit in commits], pa.binary()),
        texts,
    ]
    rows = pa.Table.from_arrays(columns, schema=LSN_TIME_MAPPING_SCHEMA)
    return Append(path, rows, commits, np.ones(count, np.int32))


# History


def _collect(spark: SparkSession, lake: Lake, snapshots: Snapshots, tables: Sequence[str]) -> None:
    """In the place of what the agent has collected meanwhile."""
    rmtree(Path(lake.custom_snapshots("")), ignore_errors=True)
    names = [f"{SCHEMA}_{table}" for table in tables]
    places = dict(DEFAULT_TABLES)
    output = SnapshotTables(spark, lake)
    for first, end in snapshots.parts():
        output.append(SESSIONS_TABLE, snapshots.session_rows(first, end))
        output.append(places[SLOTS.name], snapshots.slot_rows(first, end))
        output.append(places[TABLE_SIZES.name], snapshots.size_rows(first, end, names))


_EARLIER = "TRUNCATE dbo.syscollector_runs, dbo.syscollector_positions"
_RUNS = """
INSERT INTO dbo.syscollector_runs (snapshot_id, collection_set_id, snapshot_time, end_time, outcome, message,
    rows, interval_seconds, agent_start)
SELECT n + 1, 1, taken, taken + interval '2 s', 'succeeded', 'Collected 640 rows.', 640, %(every)s, %(start)s
FROM (
    SELECT n, %(start)s + n * %(every)s * interval '1 s' AS taken FROM generate_series(0, %(count)s - 1) n
) s;
"""
_NEXT = "SELECT setval(pg_get_serial_sequence('dbo.syscollector_runs', 'snapshot_id'), %(count)s)"
_CLEANUPS = """
INSERT INTO dbo.job_history (job_id, start_time, end_time, outcome, message, deleted_rows, parameters)
SELECT job_id, began, began + interval '9 s', 'succeeded', 'Deleted 1,000 rows.', 1000,
    '{"retention": 4320, "threshold": 5000}'
FROM dbo.cdc_jobs, generate_series(now() - %(days)s * interval '1 day', now(), interval '1 day') began
WHERE job_type = 'cleanup';
"""
_SCANS = """
INSERT INTO cdc.scan_sessions (database_id, engine_start, session_id, start_time, end_time, duration,
    scan_phase, error_count, start_lsn, current_lsn, end_lsn, tran_count, last_commit_lsn, last_commit_time,
    log_record_count, schema_change_count, command_count, first_begin_cdc_lsn, last_commit_cdc_lsn,
    last_commit_cdc_time, latency, empty_scan_count, failed_sessions_count, written_at)
SELECT database_id, %(start)s, n, began, began + interval '1 s', n %% 3, 'Done', 0, lsn, lsn,
    '00000000:00000002:0000', n %% 50 + 1, lsn, began, n %% 400, 0, n %% 97 + 1, lsn, lsn, began, n %% 11,
    0, 0, began
FROM (
    SELECT database_id, row_number() OVER (PARTITION BY database_id ORDER BY began) AS n, began,
        '00000000:00000001:0000' AS lsn
    FROM dbo.databases, generate_series(now() - interval '1 day', now() - interval '10 minutes',
        CASE name WHEN %(busy)s THEN interval '5 s' ELSE interval '75 s' END) began
) s;
"""


def _record(dsn: str, start: datetime, count: int, days: int) -> None:
    """What the control database keeps of that time: collections, cleanups, and the last day's scans."""
    values = {"start": start, "count": count, "every": INTERVAL, "days": days, "busy": DATABASE.format(1)}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (_EARLIER, _RUNS, _NEXT, _CLEANUPS, _SCANS):
            connection.execute(statement, values)
        connection.execute("ANALYZE")


if __name__ == "__main__":
    sys.exit(main())
