"""What happens to a source while capture goes on: restarts, its network, and that it is another one at once.

The first two kinds are over by themselves, and nothing is lost; the last one ends capture, and nothing is
published of a history that is not the one that readers know.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from engine.errors import LogBroken
from engine.model.job import JobState
from engine.model.watermark import Watermarks
from engine.monitoring.capture_state import CaptureState
from engine.runtime.embedded_postgres import EmbeddedPostgres
from engine.sources.postgres.names import slot_name
from tests.agent.conftest import SECONDS, RunningAgent, job_of, until, until_state
from tests.agent.tcp_proxy import TcpProxy, tcp_proxy
from tests.agent.test_capture_states import paste, until_it_is
from tests.capture.conftest import DATABASE, Workbench, workbenches
from tests.capture.replayed import check
from tests.conftest import databases
from tests.faults.killing import kill_server
from tests.faults.own_disk import OwnDisk, own_disk
from tests.faults.source_replay import SourceReplay
from tests.faults.write_load import SCHEMA, TABLES, WriteLoad

SHOP = "shop"
SERVER_MEGABYTES = 256
"""Room for a server and the log that it keeps for later."""
RECOVERY_SECONDS = 10
"""Two polling intervals, as they are where nobody changes them."""
REFUSAL_SECONDS = 10
"""Until capture says that the log is not the one that it knows."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the source's server is."""
    return tmp_path / "source" / "server"


@pytest.fixture
def disk(folder: Path) -> Iterator[OwnDisk]:
    """A file system of the server's own. Asked for before the server is."""
    folder.parent.mkdir(0o755)
    with own_disk(folder.parent, SERVER_MEGABYTES) as disk:
        yield disk


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedPostgres]:
    """The source's own server, with one database; the control database is elsewhere."""
    made = EmbeddedPostgres(folder, {"fsync": "off"})
    made.start()
    made.ensure_database(SHOP)
    yield made
    made.stop()


@pytest.fixture
def network(server: EmbeddedPostgres) -> Iterator[TcpProxy]:
    """What lies between the agent and the source."""
    with tcp_proxy(server.socket_folder / ".s.PGSQL.5432") as proxy:
        yield proxy


@pytest.fixture
def workbench(
    postgres: EmbeddedPostgres, network: TcpProxy, spark: SparkSession, tmp_path: Path
) -> Iterator[Workbench]:
    """The database of that server, reached over that network, and enabled."""
    source = f"postgresql://postgres@127.0.0.1:{network.port}/{SHOP}"
    with databases(postgres) as new_database:
        dsns = iter([source, new_database()])
        with workbenches(lambda: next(dsns), tmp_path, spark) as make:
            yield make()


@pytest.fixture
def captured(
    workbench: Workbench, server: EmbeddedPostgres, new_agent: Callable[..., RunningAgent]
) -> Iterator[tuple[WriteLoad, SourceReplay]]:
    """Tables with a load, captured by an agent; and what the source really did."""
    workbench.sql(SCHEMA)
    for table in TABLES:
        workbench.enable(table.name.removeprefix("public."))
    workbench.engine.change_job(DATABASE, maxtrans=50, pollinginterval=0)
    replay, load = SourceReplay(server.dsn(SHOP)), WriteLoad(server.dsn(SHOP), 1)
    load.transactions(20)
    new_agent()
    until_state(workbench, JobState.RUNNING)
    workbench.engine.sync(DATABASE, SECONDS)
    load.start()
    yield load, replay
    load.stop()


def goes_on(workbench: Workbench, load: WriteLoad, replay: SourceReplay) -> None:
    """Without a hand: it is captured, and it is what the source committed."""
    before, commits = workbench.control.watermarks.get(DATABASE).high, load.committed
    until(lambda: load.committed > commits + 5, "the source goes on")
    until(lambda: workbench.control.watermarks.get(DATABASE).high > before, "something is published")
    load.stop()
    workbench.engine.sync(DATABASE, SECONDS)
    assert job_of(workbench).state is JobState.RUNNING
    check(workbench, replay)


@pytest.mark.parametrize("end", [EmbeddedPostgres.stop, kill_server])
def test_a_source_that_restarts_is_captured_again(
    workbench: Workbench,
    server: EmbeddedPostgres,
    captured: tuple[WriteLoad, SourceReplay],
    end: Callable[[EmbeddedPostgres], None],
) -> None:
    end(server)
    until(lambda: job_of(workbench).state is JobState.FAILED, "the job says so")
    server.start()
    goes_on(workbench, *captured)


def test_a_network_that_is_cut_stalled_and_slow(
    workbench: Workbench, network: TcpProxy, captured: tuple[WriteLoad, SourceReplay]
) -> None:
    load, replay = captured
    network.cut()
    # Had the pause gone on doubling, the next try would come in half a minute.
    until(lambda: "Retrying: attempt 8 " in job_of(workbench).message, "it is tried again and again")
    assert job_of(workbench).state is JobState.FAILED
    network.mend()
    back = time.monotonic()
    until_state(workbench, JobState.RUNNING)
    assert time.monotonic() - back < RECOVERY_SECONDS
    for trouble in (network.stall, lambda: network.slow(0.05)):
        trouble()
        commits = load.committed
        until(lambda commits=commits: load.committed > commits + 20, "the source goes on")
        network.mend()
    goes_on(workbench, load, replay)


def test_a_source_whose_disk_was_full_is_captured_again(
    disk: OwnDisk,
    workbench: Workbench,
    server: EmbeddedPostgres,
    captured: tuple[WriteLoad, SourceReplay],
) -> None:
    """It refuses writes and, where its log needs another segment, ends; its own people start it again."""
    load, replay = captured
    disk.fill()
    with suppress(psycopg.OperationalError), psycopg.connect(server.dsn(SHOP), autocommit=True) as connection:
        while True:
            connection.execute("SELECT pg_logical_emit_message(false, 'filler', repeat('x', 1000000))")
    until(lambda: job_of(workbench).state is JobState.FAILED, "the job says so")
    disk.empty()
    server.start()
    goes_on(workbench, load, replay)


def break_off(workbench: Workbench, captured: tuple[WriteLoad, SourceReplay]) -> Watermarks:
    """The load ends, capture has all there is, and the test lets go of the source; what is published then."""
    load, _ = captured
    load.stop()
    workbench.engine.sync(DATABASE, SECONDS)
    workbench.connection.close()
    return workbench.control.watermarks.get(DATABASE)


def copy_files(folder: Path, to: Path) -> None:
    """With their owner, who is not the one of the tests where these are run by root."""
    shutil.copytree(folder, to, symlinks=True)
    owner = folder.stat()
    for path in (to, *to.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def told(workbench: Workbench) -> list[str]:
    """The words with which capture stopped, each time."""
    errors = workbench.control.errors.list(DATABASE)
    return [error.error_message for error in errors if error.error_number == LogBroken.number]


def is_broken(workbench: Workbench) -> str:
    """The words with which capture stopped, in time."""
    begun = time.monotonic()
    until(lambda: bool(told(workbench)), "capture says that the log is broken")
    assert time.monotonic() - begun < REFUSAL_SECONDS
    return told(workbench)[-1]


def stays_broken(workbench: Workbench, marks: Watermarks) -> str:
    """Tried again, nothing more is published: validity intervals end where they did. The fix that is told."""
    until(lambda: len(told(workbench)) > 1, "it is tried again")
    assert workbench.control.watermarks.get(DATABASE).high == marks.high
    found = until_it_is(workbench, CaptureState.STALLED)
    assert str(LogBroken.number) in found.why
    assert found.fix.startswith(f"highwater disable -d {DATABASE}; highwater enable -d {DATABASE} ")
    return found.fix


def begins_anew(workbench: Workbench, server: EmbeddedPostgres, fix: str) -> None:
    """The fix as pasted, and what is committed after it is captured."""
    done = paste(workbench, fix)
    assert done.returncode == 0, done.stderr
    with psycopg.connect(server.dsn(SHOP), autocommit=True) as connection:
        connection.execute("INSERT INTO note VALUES ('after the fix')")
    workbench.engine.sync(DATABASE, SECONDS)
    assert [row["body"] for row in workbench.rows("public_note")] == ["after the fix"]
    until_state(workbench, JobState.RUNNING)


def test_a_source_put_back_to_an_earlier_state_is_not_gone_on_with(
    workbench: Workbench,
    server: EmbeddedPostgres,
    network: TcpProxy,
    captured: tuple[WriteLoad, SourceReplay],
    tmp_path: Path,
) -> None:
    """A copy of its files, its slot too; it has grown beyond where capture was when it is seen again."""
    load, _ = captured
    network.cut()
    server.stop()
    copy_files(server.folder, tmp_path / "backup")
    server.start()
    network.mend()
    commits = load.committed
    until(lambda: load.committed > commits + 20, "the source goes on")
    marks = break_off(workbench, captured)
    network.cut()
    server.stop()
    shutil.rmtree(server.folder)
    (tmp_path / "backup").rename(server.folder)
    server.start()
    with psycopg.connect(server.dsn(SHOP), autocommit=True) as connection:
        beyond = f"SELECT pg_current_wal_flush_lsn() - '0/0' > {marks.scanned.position + 100_000}"
        while connection.execute(beyond.encode()).fetchone() != (True,):
            connection.execute("INSERT INTO note SELECT 'another history' FROM generate_series(1, 100)")
    network.mend()
    assert "put back to an earlier state" in is_broken(workbench)
    begins_anew(workbench, server, stays_broken(workbench, marks))


@pytest.mark.parametrize(
    ("again", "words"), [(False, "does not exist"), (True, "it was moved on or made anew")], ids=str
)
def test_a_slot_that_is_dropped_under_a_running_capture_and_made_anew(
    workbench: Workbench,
    server: EmbeddedPostgres,
    network: TcpProxy,
    captured: tuple[WriteLoad, SourceReplay],
    again: bool,
    words: str,
) -> None:
    """Capture keeps its connections, and what was committed in between is in no slot of its own."""
    marks = break_off(workbench, captured)
    network.stall()
    with psycopg.connect(server.dsn(SHOP), autocommit=True) as connection:
        connection.execute("SELECT pg_drop_replication_slot(%s)", [slot_name(SHOP)])
        connection.execute("INSERT INTO note VALUES ('in no slot')")
        if again:
            connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot_name(SHOP)])
            connection.execute("INSERT INTO note VALUES ('in the other slot')")
    network.mend()
    assert words in is_broken(workbench)
    begins_anew(workbench, server, stays_broken(workbench, marks))


def test_a_slot_that_has_lost_its_log_is_said_and_mended_as_pasted(
    workbench: Workbench,
    server: EmbeddedPostgres,
    network: TcpProxy,
    captured: tuple[WriteLoad, SourceReplay],
) -> None:
    """max_slot_wal_keep_size is overrun while nobody reads."""
    marks = break_off(workbench, captured)
    network.cut()
    with psycopg.connect(server.dsn(SHOP), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        connection.execute("SELECT pg_reload_conf()")
        lost = "SELECT wal_status = 'lost' FROM pg_replication_slots WHERE slot_name = %s"
        while connection.execute(lost, [slot_name(SHOP)]).fetchone() != (True,):
            connection.execute("INSERT INTO uncaptured (body) VALUES ('beyond')")
            connection.execute("SELECT pg_switch_wal()")
            connection.execute("CHECKPOINT")
        connection.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
        connection.execute("SELECT pg_reload_conf()")
    network.mend()
    assert "has lost WAL it needs" in is_broken(workbench)
    begins_anew(workbench, server, stays_broken(workbench, marks))


def test_another_server_under_the_name_of_the_source_is_not_read(
    workbench: Workbench,
    server: EmbeddedPostgres,
    network: TcpProxy,
    captured: tuple[WriteLoad, SourceReplay],
) -> None:
    marks = break_off(workbench, captured)
    network.cut()
    server.stop()
    shutil.rmtree(server.folder)
    server.start()
    server.ensure_database(SHOP)
    with psycopg.connect(server.dsn(SHOP), autocommit=True) as connection:
        connection.execute(SCHEMA)
        connection.execute("CREATE PUBLICATION highwater FOR ALL TABLES")
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot_name(SHOP)])
        connection.execute("INSERT INTO note VALUES ('elsewhere')")
    network.mend()
    assert "was read before" in is_broken(workbench)
    stays_broken(workbench, marks)
