"""A home with an agent in a process of its own, a source that is written to, and what of them can grow."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import median
from threading import Event, Thread

import psutil
import psycopg
from deltalake import DeltaTable

from engine.engine import Engine
from engine.errors import RangeOutsideValidity
from engine.lake.tables import Lake
from engine.model.job import JobRun, JobState, JobType, RunOutcome
from engine.model.lsn import Lsn
from engine.runtime.embedded_postgres import CONTROL_DATABASE, EmbeddedPostgres
from engine.runtime.home import Home
from engine.settings import Settings

DATABASE = "soak"
TABLES = ("tick", "account", "note")
TICK = "dbo_tick"
_READY_SECONDS = 300
_AGENT_LOG = "agent.log"
_LINES_OF_FAILURE = 200
SAMPLES_A_COLLECTION = 5
"""Every so many samples Java's heap is collected, to see what of it is alive."""
_SCHEMA = """
CREATE SCHEMA dbo;
CREATE TABLE dbo.tick (id bigserial PRIMARY KEY, at timestamptz DEFAULT clock_timestamp());
CREATE TABLE dbo.account (id int PRIMARY KEY, balance numeric(12, 2), owner text);
CREATE TABLE dbo.note (body text);
INSERT INTO dbo.account SELECT n, 0, 'owner ' || n FROM generate_series(1, 1000) AS n;
"""
_TRANSACTION = """
INSERT INTO dbo.tick DEFAULT VALUES;
UPDATE dbo.account SET balance = balance + 1 WHERE id = 1 + (random() * 999)::int;
INSERT INTO dbo.note SELECT repeat('x', (random() * 200)::int);
DELETE FROM dbo.tick WHERE id < currval('dbo.tick_id_seq') - 1000;
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """What there is at one moment. Memory and sizes in MiB, times in seconds.

    files: that the newest versions of all tables refer to. on_disk: all files of the lake, logs included.
    java_live_mib: what the heap has after a collection, as of the last that was asked for; java_mib grows to
    its limit, whatever is alive. scan_time, cleanup_time: medians of the productive scans, and of the
    cleanups, since the sample before.
    """

    minutes: float
    scans: int
    cleanups: int
    collections: int
    reads: int
    python_mib: float
    java_mib: float
    java_live_mib: float
    threads: int
    handles: int
    files: int
    on_disk: int
    control_mib: float
    scan_time: float
    cleanup_time: float

    def line(self) -> str:
        """As a row of the table that `HEADING` begins."""
        return " ".join(
            f"{value:>11.3f}" if isinstance(value, float) else f"{value:>11,}" for value in astuple(self)
        )


HEADING = " ".join(f"{name:>11}" for name in Sample.__dataclass_fields__)


class Writer:
    """Commits the same small transaction over and over, at most ``rate`` a second."""

    def __init__(self, dsn: str, rate: float) -> None:
        self._dsn, self._pause = dsn, 1 / rate
        self._stop = Event()
        self._thread = Thread(target=self._run, name="writer", daemon=True)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._stop.wait(self._pause):
                with connection.transaction():
                    connection.execute(_TRANSACTION)


class Repeated:
    """Does something over and over in a thread of its own, at most every ``seconds``; waits for its end."""

    def __init__(self, action: Callable[[], object], seconds: float) -> None:
        self._action, self._seconds = action, seconds
        self._stop = Event()
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> Repeated:
        self.running = self._pool.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()

    def _run(self) -> None:
        while not self._stop.is_set():
            due = time.monotonic() + self._seconds
            self._action()
            self._stop.wait(max(0.0, due - time.monotonic()))


def raise_first(repeated: Iterable[Repeated], seconds: float) -> None:
    """Waits so long; raises what one of the actions raises meanwhile, at once."""
    ended, _ = wait([each.running for each in repeated], seconds, FIRST_EXCEPTION)
    for each in ended:
        each.result()


class SoakHome:
    """What a soak drives and measures. Its actions may be called by a thread each."""

    def __init__(self, folder: Path, engine: Engine, dsn: str, agent: subprocess.Popen[bytes]) -> None:
        self.engine = engine
        self.dsn = dsn
        self._folder = folder
        self._agent = psutil.Process(agent.pid)
        self._lake = Lake(str(Home(folder).lake))
        self._began = time.monotonic()
        self._seen = 0
        self._reads = 0
        self._samples = 0
        self._java_live_mib = 0.0
        self._cleanups = 0
        self._cleanup_times: list[float] = []
        self._failures: list[str] = []

    def prepare(self) -> None:
        """Three tracked tables, capture without pause, cleanup that keeps a minute."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(_SCHEMA)
        self.engine.connect(DATABASE, self.dsn)
        self.engine.enable_db(DATABASE)
        for table in TABLES:
            self.engine.enable_table(DATABASE, "dbo", table, role_name=None)
        self.engine.change_job(DATABASE, pollinginterval=0)
        self.engine.change_job(DATABASE, JobType.CLEANUP, retention=1)
        self.engine.sync(DATABASE, _READY_SECONDS)
        # What was changed counts from the next start.
        self.engine.stop_job(DATABASE)
        self._wait_for(JobState.STOPPED)
        self.engine.start_job(DATABASE)
        self._wait_for(JobState.RUNNING)

    def clean_up(self) -> None:
        """A run of cleanup from its start to its end."""
        before = self._last_cleanup()
        self.engine.start_job(DATABASE, JobType.CLEANUP)
        ended: list[JobRun] = []

        def has_ended() -> bool:
            ended[:] = [run for run in self._last_cleanup() if run.end_time and run not in before]
            return bool(ended)

        _until(has_ended, "a cleanup")
        [run] = ended
        assert run.end_time is not None
        self._cleanup_times.append((run.end_time - run.start_time).total_seconds())
        self._cleanups += 1
        if run.outcome is not RunOutcome.SUCCEEDED:
            self._failures.append(f"cleanup: {run.message}")

    def read(self) -> int:
        """All changes of the validity interval of one table, by Spark; how many.

        Raises AssertionError unless each id that was inserted in it is there exactly once.
        """
        low = self.engine.get_min_lsn(DATABASE, TICK)
        high = self.engine.get_max_lsn(DATABASE)
        if high is None or low == Lsn.ZERO or low > high:
            return 0
        try:
            rows = self.engine.get_all_changes(DATABASE, TICK, low, high).toArrow().to_pylist()
        except RangeOutsideValidity:
            if self.engine.get_min_lsn(DATABASE, TICK) == low:
                raise
            return 0  # cleanup has moved the low endpoint meanwhile
        ids = [row["id"] for row in rows if row["__$operation"] == 2]
        assert not ids or ids == list(range(ids[0], ids[-1] + 1)), "inserts lost, doubled or out of order"
        self._reads += 1
        return len(rows)

    def sample(self) -> Sample:
        """What there is now."""
        java = [each for each in self._agent.children() if each.name() == "java"]
        python = [self._agent]
        processes = [*python, *java]
        sessions = self.engine.scan_sessions(DATABASE)
        new = [each for each in sessions if each.session_id > self._seen and each.tran_count]
        times = [(each.end_time - each.start_time).total_seconds() for each in new if each.end_time]
        self._seen = max((each.session_id for each in sessions), default=0)
        cleanup_times, self._cleanup_times = self._cleanup_times, []
        collections = self.engine.collection_runs(limit=1_000_000)
        return Sample(
            minutes=(time.monotonic() - self._began) / 60,
            scans=self._seen,
            cleanups=self._cleanups,
            collections=len(collections),
            reads=self._reads,
            python_mib=_memory(python),
            java_mib=_memory(java),
            java_live_mib=self._live(java),
            threads=sum(each.num_threads() for each in processes),
            handles=sum(each.num_fds() for each in processes),
            files=sum(len(DeltaTable(path).file_uris()) for path in self._tables()),
            on_disk=sum(len(files) for _, _, files in os.walk(self._lake.root)),
            control_mib=self._control_size(),
            scan_time=median(times) if times else 0.0,
            cleanup_time=median(cleanup_times) if cleanup_times else 0.0,
        )

    def _live(self, java: list[psutil.Process]) -> float:
        """Asked for at times only: the collection stops everything for a moment."""
        if self._samples % SAMPLES_A_COLLECTION == 0:
            self._java_live_mib = sum(_live_heap(each.pid) for each in java)
        self._samples += 1
        return self._java_live_mib

    def failures(self) -> list[str]:
        """Runs and scans that did not go well, as their rows say."""
        runs = self.engine.job_history(DATABASE, JobType.CAPTURE, limit=1_000_000)
        failed = [f"capture: {each.message}" for each in runs if each.outcome is RunOutcome.FAILED]
        collections = self.engine.collection_runs(limit=1_000_000)
        failed += [f"collection: {run.message}" for run in collections if run.outcome is RunOutcome.FAILED]
        return self._failures + failed + [each.error_message for each in self.engine.scan_errors(DATABASE)]

    def _last_cleanup(self) -> Sequence[JobRun]:
        return self.engine.job_history(DATABASE, JobType.CLEANUP, limit=1)

    def _state(self, kind: JobType) -> JobState:
        [job] = (each for each in self.engine.help_jobs(DATABASE) if each.job_type is kind)
        return job.state

    def _wait_for(self, state: JobState) -> None:
        _until(lambda: self._state(JobType.CAPTURE) is state, f"capture is {state}")

    def _tables(self) -> Iterator[str]:
        for table in TABLES:
            yield self._lake.change_table(DATABASE, f"dbo_{table}")
        yield self._lake.lsn_time_mapping(DATABASE)

    def _control_size(self) -> float:
        with psycopg.connect(self.dsn) as connection:
            row = connection.execute("SELECT pg_database_size(%s)", [CONTROL_DATABASE]).fetchone()
        return 0.0 if row is None else float(row[0]) / 2**20


@contextmanager
def soak_home(folder: Path) -> Iterator[SoakHome]:
    """Starts it all below an empty folder; stops it in the end. Old files stay for an hour."""
    home = Home(folder)
    home.prepare()
    server = EmbeddedPostgres(home.postgres)
    server.start()
    try:
        for name in (CONTROL_DATABASE, DATABASE):
            server.ensure_database(name)
        with _agent(home) as agent, _log_of_failure(home):
            engine = Engine.open(Settings(home=folder))
            try:
                soak = SoakHome(folder, engine, server.dsn(DATABASE), agent)
                soak.prepare()
                yield soak
            finally:
                engine.close()
    finally:
        server.stop()


@contextmanager
def _log_of_failure(home: Home) -> Iterator[None]:
    """Should the soak fail, what the agent said last is printed: its folder goes."""
    try:
        yield
    except BaseException:
        lines = (home.folder / _AGENT_LOG).read_text(encoding="utf-8", errors="replace").splitlines()
        print("The agent's log ends with:", *lines[-_LINES_OF_FAILURE:], sep="\n", file=sys.stderr)
        raise


@contextmanager
def _agent(home: Home) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "engine.agent", "--home", str(home.folder)]
    environment = {**os.environ, "HIGHWATER_VACUUM_AFTER_HOURS": "1"}
    with (home.folder / _AGENT_LOG).open("wb") as log:
        agent = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            _until(lambda: "agent" in home.processes() or agent.poll() is not None, "the agent runs")
            yield agent
        finally:
            agent.terminate()
            with suppress(subprocess.TimeoutExpired):
                agent.wait(60)
            agent.kill()


def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _READY_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not in time: {what}")
        time.sleep(0.1)


def _live_heap(pid: int) -> float:
    """MiB of the objects that a JVM's collection leaves; by a JDK's tool, which must be there."""
    command = ["jcmd", str(pid), "GC.class_histogram"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # The last line: Total, objects, bytes.
    return float(told.split()[-1]) / 2**20


def _memory(processes: list[psutil.Process]) -> float:
    return sum(float(each.memory_info().rss) for each in processes) / 2**20
