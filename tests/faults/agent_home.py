"""A home with its own PostgreSQL and real agent processes that may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import psutil
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.collector.file_history import FileHistory
from engine.collector.ranges import HistoryRange
from engine.engine import Engine
from engine.lake.file_commits import Purpose
from engine.lake.file_tables import FileTables
from engine.lake.live_files import live_files
from engine.lake.tables import Lake
from engine.runtime.embedded_postgres import CONTROL_DATABASE, EmbeddedPostgres
from engine.runtime.home import Home
from engine.settings import Settings
from tests.faults.killing import kill_server
from tests.faults.oracle import Row, Table, difference, expected_rows, in_order
from tests.faults.source_replay import SourceReplay

DATABASE = "shop"
AGENT_SECONDS = 600
DAY = timedelta(days=1)


class AgentHome:
    """One home: PostgreSQL with control and source database, the agent in a process of its own."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._home = Home(folder)
        self._home.prepare()
        self._lake = Lake(str(self._home.lake))
        self._environment = {f"HIGHWATER_{name.upper()}": value for name, value in settings.items()}
        self._log = (folder / "agent.log").open("wb")
        self.server = EmbeddedPostgres(self._home.postgres, {"fsync": "off"})
        self.agent: subprocess.Popen[bytes] | None = None
        self.server.start()
        self.server.ensure_database(CONTROL_DATABASE)
        self.server.ensure_database(DATABASE)
        self.dsn = self.server.dsn(DATABASE)
        self.engine = Engine.open(Settings(home=folder))

    @property
    def lake_folder(self) -> Path:
        return self._home.lake

    # The agent

    def start_agent(self, crash_at: str | None = None, **settings: str) -> None:
        """Starts an agent; with ``crash_at`` it kills itself there. ``settings`` win over the home's."""
        environment = {**os.environ, **self._environment}
        environment |= {f"HIGHWATER_{name.upper()}": value for name, value in settings.items()}
        environment |= {"HIGHWATER_MASTER": "local[2]", "HIGHWATER_DRIVER_MEMORY": "1g"}
        environment |= {} if crash_at is None else {"HIGHWATER_CRASH_AT": crash_at}
        command = [sys.executable, "-m", "engine.agent", "--home", str(self._home.folder)]
        self.agent = subprocess.Popen(command, stdout=self._log, stderr=self._log, env=environment)

    def wait_until_ready(self) -> None:
        """Until the agent has recorded itself."""
        self.until(lambda: "agent" in self._home.processes(), "the agent is ready")

    def wait_until_dead(self) -> None:
        """Until the agent was killed, by nothing but SIGKILL; its JVM ends with it."""
        assert self.agent is not None
        children = psutil.Process(self.agent.pid).children(recursive=True)
        assert self.agent.wait(AGENT_SECONDS) == -signal.SIGKILL
        psutil.wait_procs(children, AGENT_SECONDS)

    def stop_agent(self) -> int:
        """SIGTERM, as the supervisor does; the exit code."""
        assert self.agent is not None
        self.agent.terminate()
        code = self.agent.wait(AGENT_SECONDS)
        self.agent = None
        return code

    def until(self, condition: Callable[[], bool], what: str, seconds: float = AGENT_SECONDS) -> None:
        """Waits for a condition, as long as the agent lives."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"not in time: {what}"
            assert self.agent is None or self.agent.poll() is None, f"the agent ended before: {what}"
            time.sleep(0.05)

    def close(self) -> None:
        if self.agent is not None:
            self.agent.kill()
            self.agent.wait()
        self.engine.close()
        self.server.stop()
        self._log.close()

    # PostgreSQL

    def kill_postgres(self) -> None:
        """SIGKILL to the postmaster and every backend, at once."""
        kill_server(self.server)

    def files_of(self, capture_instance: str) -> int:
        """How many files the folder of a change table has."""
        return len(list(Path(self._lake.change_table(DATABASE, capture_instance)).glob("*.parquet")))

    def sql(self, statement: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement.encode())

    # What readers see

    def prepare(self, schema: str, tables: tuple[Table, ...]) -> SourceReplay:
        """Tracks the tables; what happens from now on is replayed by an independent slot."""
        self.sql(schema)
        self.engine.connect(DATABASE, self.dsn)
        self.engine.enable_db(DATABASE)
        for table in tables:
            schema_name, name = table.name.split(".")
            self.engine.enable_table(DATABASE, schema_name, name, role_name=None)
        self.engine.change_job(DATABASE, maxtrans=7, pollinginterval=0)
        return SourceReplay(self.dsn)

    def high(self) -> str:
        high = self.engine.watermarks(DATABASE).high
        return "" if high is None else str(high)

    def rows(self, table: Table, high: str) -> list[Row]:
        """Rows up to ``high``."""
        rows = _delta_rows(Path(self._lake.change_table(DATABASE, table.capture_instance)))
        return [row for row in rows if row["__$start_lsn"] <= high]

    def pieces(self, table: Table) -> Iterator[list[Row]]:
        """All rows of a change table, a file at a time."""
        for file in _delta_files(Path(self._lake.change_table(DATABASE, table.capture_instance))):
            yield _file_rows(file).to_pylist()

    def check(self, replay: SourceReplay, tables: tuple[Table, ...], low: str = "") -> int:
        """Readers see exactly what the source committed up to the watermark; the number of rows.

        low: below it rows may be gone, and what is there must be as it was.
        """
        high = self.high()
        transactions, total = replay.transactions(), 0
        for table in tables:
            committed = [row for row in expected_rows(transactions, table) if row["__$start_lsn"] <= high]
            found = in_order(self.rows(table, high)) if committed else []
            expected = [row for row in committed if row["__$start_lsn"] >= low or row in found]
            assert difference(expected, found) is None, table.name
            total += len(expected)
        return total

    def obsolete_rows(self, tables: tuple[Table, ...], low: str) -> int:
        """How many rows below ``low`` the change tables have."""
        return sum(row["__$start_lsn"] < low for table in tables for row in self.rows(table, low))

    def low_endpoints(self) -> set[str]:
        """Those of all instances."""
        return {str(each.start_lsn) for each in self.engine.help_change_data_capture(DATABASE)}

    def mapping(self) -> list[str]:
        """Commit LSNs of lsn_time_mapping."""
        folder = Path(self._lake.lsn_time_mapping(DATABASE))
        return sorted(row["start_lsn"] for row in _delta_rows(folder)) if folder.exists() else []

    def make_older(self, minutes: int) -> str:
        """Makes the first half of what is captured so much older; the LSN where the rest begins."""
        commits = [lsn for lsn in self.mapping() if lsn <= self.high()]
        low, path = commits[len(commits) // 2], self._lake.lsn_time_mapping(DATABASE)
        made = False
        while not made:  # somebody else may be faster; an UPDATE of Spark's would take the place of an append
            commit = FileTables().begin_files(path, Purpose.DELETE)
            files = [f"{path}/{unquote(each)}" for each in live_files(path, commit.read_version).files]
            rows = pa.concat_tables([commit.rows(file) for file in files])
            times = rows["tran_end_time"]
            earlier = pc.subtract(times, pa.scalar(timedelta(minutes=minutes), pa.duration("us")))
            older = pc.if_else(pc.less(rows["start_lsn"], low), earlier, times)
            place = rows.schema.get_field_index("tran_end_time")
            commit.replace(files, rows.set_column(place, "tran_end_time", older), fsync=False)
            made = commit.commit(fsync=False)
        return low

    def told_sessions(self) -> list[tuple[datetime, int, int]]:
        """Sessions with transactions in the collected history, read without an agent: run, id, count.

        None is there twice, whatever cuts there were.
        """
        now = datetime.now(UTC)
        not_counted = self.engine._control.collection_runs.not_counted()
        asked = HistoryRange(now - DAY, now + DAY, DATABASE, None, not_counted)
        found = FileHistory(self._lake).sessions(asked)
        rows = [] if found is None else found.to_pylist()
        told = [(row["engine_start"], row["session_id"], row["tran_count"]) for row in rows]
        assert len({each[:2] for each in told}) == len(told)
        return sorted(each for each in told if each[2])

    def scan_sessions(self) -> list[int]:
        """Transactions of each scan session that had any, of all runs of the agent, by start."""
        found = self.engine.session_history(DATABASE, datetime.now(UTC) - DAY)
        return [each.tran_count for each in found if each.tran_count]

    def collected(self, column: str, output_table: str) -> list[object]:
        """A column of custom_snapshots.<output_table> as it lies in the lake, whether or not it counts."""
        folder = Path(self._lake.custom_snapshots(output_table))
        return [row[column] for row in _delta_rows(folder)] if folder.exists() else []

    def check_mapping(self) -> None:
        """One row for each transaction, never two."""
        rows = _delta_rows(Path(self._lake.lsn_time_mapping(DATABASE)))
        assert set(Counter(row["start_lsn"] for row in rows).values()) == {1}


def _delta_rows(folder: Path) -> list[Row]:
    """The rows of a Delta table by the letter of its log, without Spark."""
    tables = [_file_rows(file) for file in _delta_files(folder)]
    # Spark writes the columns of a partition into its files too.
    rows: list[Row] = pa.concat_tables(tables, promote_options="default").to_pylist() if tables else []
    return rows


def _delta_files(folder: Path) -> list[Path]:
    """The files of a Delta table's newest version."""
    files: dict[str, None] = {}
    for entry in sorted((folder / "_delta_log").glob("*.json")):
        for line in entry.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                files[action["add"]["path"]] = None
            if "remove" in action:
                del files[action["remove"]["path"]]
    # A folder's name in the path of a partition is encoded once more.
    return [folder / unquote(name) for name in files]


def _file_rows(file: Path) -> pa.Table:
    """Spark's files have times of UTC in twelve bytes, which say neither their zone nor their unit."""
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as parquet:
        rows = parquet.read()
    at = pa.timestamp("us", "UTC")
    fields = [field.with_type(at) if pa.types.is_timestamp(field.type) else field for field in rows.schema]
    return rows.cast(pa.schema(fields))
