"""A PostgreSQL 15 server from Debian's package, with its tools: a source that is not ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

BINARIES = Path("/usr/lib/postgresql/15/bin")


class DebianPostgres:
    """A running server, reached through a socket in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def dsn(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def run(self, program: str, *arguments: str) -> str:
        """Runs one of its programs as the server's user; its standard output."""
        # The server refuses to run as root; the package brings a user for it.
        user = "postgres" if os.geteuid() == 0 else None
        command = [str(BINARIES / program), *arguments]
        done = subprocess.run(
            command, user=user, cwd="/", capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout


@contextmanager
def debian_postgres(settings: Mapping[str, str]) -> Iterator[DebianPostgres]:
    """A new server, gone with its data in the end. A missing package fails the test."""
    assert (BINARIES / "postgres").exists(), f"no PostgreSQL 15 in {BINARIES}: apt-get install postgresql-15"
    # Not below pytest's folder: that is for its user alone, and a socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="pg15-"))
    server, data = DebianPostgres(folder), folder / "data"
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        server.run("initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        lines = {"listen_addresses": "", "unix_socket_directories": str(folder), "fsync": "off", **settings}
        with (data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in lines.items())
        server.run("pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "start")
        try:
            yield server
        finally:
            server.run("pg_ctl", "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
