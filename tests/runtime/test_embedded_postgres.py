"""The embedded server: starts whatever happened to it before, and keeps what was committed."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from engine.runtime.embedded_postgres import EmbeddedPostgres, control_dsn
from engine.runtime.unready import Unready
from engine.settings import Settings


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    made = EmbeddedPostgres(tmp_path_factory.mktemp("embedded") / "pg")
    made.start()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def running(server: EmbeddedPostgres) -> None:
    server.start()


def one(server: EmbeddedPostgres, query: str) -> object:
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        row = connection.execute(query).fetchone()  # type: ignore[call-overload]
    return row[0] if row else None


def kill(server: EmbeddedPostgres) -> None:
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def test_it_is_durable_and_decodes(server: EmbeddedPostgres) -> None:
    assert one(server, "SHOW fsync") == "on"
    assert one(server, "SHOW wal_level") == "logical"
    assert one(server, "SHOW listen_addresses") == ""


def test_starting_a_running_server_attaches_to_it(server: EmbeddedPostgres) -> None:
    other = EmbeddedPostgres(server.folder)
    other.start()
    assert other.pid == server.pid


def test_a_database_is_made_once(server: EmbeddedPostgres) -> None:
    assert server.ensure_database("made once")
    assert not server.ensure_database("made once")
    with psycopg.connect(server.dsn("made once")) as connection:
        assert connection.info.dbname == "made once"


def test_what_was_committed_before_a_kill_is_there_after_it(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 10000) AS id")
        kill(server)
    server.start()
    assert one(server, "SELECT count(*) FROM kept") == 10000


def test_a_session_that_outlives_a_killed_server_does_not_keep_it_down(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        backend = connection.info.backend_pid
        psutil.Process(backend).suspend()
        kill(server)
        server.start()
        assert not psutil.pid_exists(backend) or psutil.Process(backend).status() == psutil.STATUS_ZOMBIE
    assert one(server, "SELECT 1") == 1


def test_a_pid_file_that_names_another_process_is_no_running_server(server: EmbeddedPostgres) -> None:
    lines = (server.folder / "postmaster.pid").read_text().splitlines()
    server.stop()
    (server.folder / "postmaster.pid").write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    assert server.pid is None
    server.start()
    assert server.pid not in (None, os.getpid())


def test_stopping_twice_is_no_error(server: EmbeddedPostgres) -> None:
    server.stop()
    assert server.pid is None
    server.stop()


def test_alter_system_outlives_a_restart(server: EmbeddedPostgres) -> None:
    one(server, "SELECT 1")
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET work_mem = '5MB'")
    server.stop()
    server.start()
    assert one(server, "SHOW work_mem") == "5MB"


def test_settings_win_over_ours(server: EmbeddedPostgres) -> None:
    server.stop()
    EmbeddedPostgres(server.folder, {"max_connections": "50"}).start()
    assert one(server, "SHOW max_connections") == "50"


def test_a_setting_it_does_not_know_is_told_in_its_own_words(server: EmbeddedPostgres) -> None:
    server.stop()
    with pytest.raises(Unready, match="no_such_setting"):
        EmbeddedPostgres(server.folder, {"no_such_setting": "1"}).start()


def test_peeking_at_a_slot_leaves_its_log_as_it_is(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute("SELECT pg_create_logical_replication_slot('quiet', 'pgoutput')")
        connection.execute("CREATE PUBLICATION quiet")
        before = server.log.stat().st_size
        options = "'quiet', NULL, NULL, 'proto_version', '1', 'publication_names', 'quiet'"
        connection.execute(f"SELECT * FROM pg_logical_slot_peek_binary_changes({options})")  # type: ignore[arg-type]
        connection.execute("SELECT pg_drop_replication_slot('quiet')")
        assert server.log.stat().st_size == before


def test_data_of_another_version_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pg").mkdir()
    (tmp_path / "pg" / "PG_VERSION").write_text("12\n")
    with pytest.raises(Unready, match="PostgreSQL 12"):
        EmbeddedPostgres(tmp_path / "pg").start()


def test_a_path_too_long_for_a_socket_is_no_hindrance(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / ("long" * 30) / "a home" / "pg", {"fsync": "off"})
    server.socket_folder.mkdir()
    server.socket_folder.chmod(0o777)
    try:
        server.start()
        assert one(server, "SELECT 1") == 1
        assert stat.S_IMODE(server.socket_folder.stat().st_mode) == 0o700
    finally:
        server.stop()
        server.socket_folder.rmdir()


def test_only_its_own_user_reaches_it(server: EmbeddedPostgres) -> None:
    assert one(server, "SHOW listen_addresses") == ""
    assert stat.S_IMODE(server.socket_folder.stat().st_mode) == 0o700
    assert server.socket_folder.stat().st_uid == server.folder.stat().st_uid


def test_a_socket_folder_that_another_laid_is_not_taken(tmp_path: Path) -> None:
    """The server asks nobody for a password: whoever may enter the folder is its superuser."""
    server = EmbeddedPostgres(tmp_path / ("laid" * 30) / "a home" / "pg", {"fsync": "off"})
    folder = server.socket_folder
    folder.symlink_to(tmp_path)
    try:
        with pytest.raises(Unready, match="belongs to another user"):
            server.start()
    finally:
        folder.unlink()
    if os.geteuid() == 0:
        folder.mkdir()
        os.chown(folder, 65534, 65534)
        try:
            with pytest.raises(Unready, match="belongs to another user"):
                server.start()
            assert folder.stat().st_uid == 65534
        finally:
            folder.rmdir()


def test_an_interrupted_first_start_is_done_again(tmp_path: Path) -> None:
    half = tmp_path / "pg.new"
    half.mkdir()
    (half / "half").touch()
    server = EmbeddedPostgres(tmp_path / "pg", {"fsync": "off"})
    try:
        server.start()
        assert one(server, "SELECT 1") == 1
        assert not half.exists()
    finally:
        server.stop()


def test_the_control_database_is_the_homes_own_unless_said_otherwise(tmp_path: Path) -> None:
    own = control_dsn(Settings(home=tmp_path))
    assert own == f"postgresql://postgres@/msdb?host={tmp_path}/pg"
    other = "postgresql://me@host/msdb"
    assert control_dsn(Settings(home=tmp_path, control_dsn=other)) == other
