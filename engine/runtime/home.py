"""The folder below which everything of one installation lies; two of them run side by side.

::

    home.json       which version of this layout it is
    highwater.toml  settings, if somebody wrote any
    pg/             the embedded PostgreSQL: control database and demo
    lake/           Delta tables
    secrets/        the Connect token and the passwords of sources, one file each, mode 0600
    run/            a record of each living process, and the lock of `highwater start`
    log/            what processes wrote
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from engine.errors import HomeTooNew
from engine.runtime.processes import ProcessRecord
from engine.runtime.unready import Unready
from engine.settings import SETTINGS_FILE

VERSION = 1
_CONNECT_TOKEN = "connect-token"  # nosec B105
_ENTRIES = frozenset({"home.json", SETTINGS_FILE, "pg", "lake", "run", "log", "secrets"})


class Home:
    """One home. Nothing is touched before `prepare`, and nothing outside ``folder`` ever."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().resolve()
        self.postgres = self.folder / "pg"
        self.lake = self.folder / "lake"
        self.run = self.folder / "run"
        self.log = self.folder / "log"
        self.secrets = self.folder / "secrets"

    def prepare(self, minimum_free: int = 0) -> None:
        """Makes the folders where they are missing.

        minimum_free: bytes of disk space that must be left. Raises HomeTooNew, and Unready when the
        folder is somebody else's, not writable, or short of space.
        """
        try:
            self._check_is_ours()
            self._check_space(minimum_free)
            self.folder.mkdir(parents=True, exist_ok=True)
            for folder in (self.lake, self.run, self.log, self.secrets):
                folder.mkdir(mode=0o700, exist_ok=True)  # others' data: for this user alone
            self._check_writable()
            if not self._version_file.exists():
                _write(self._version_file, json.dumps({"version": VERSION}), 0o644)
        except OSError as error:
            raise Unready(
                f"The home {self.folder} cannot be used: {error.strerror or error}.",
                "Choose a folder you may write to: --home DIR or HIGHWATER_HOME.",
            ) from error

    @property
    def exists(self) -> bool:
        """Whether something was ever started here."""
        return self._version_file.exists()

    # Secrets

    @property
    def connect_token(self) -> str:
        """What a client of the agent's Spark session must show; made once."""
        token = self.secret(_CONNECT_TOKEN)
        if token is None:
            self.keep_secret(_CONNECT_TOKEN, secrets.token_hex(32))
            token = self.secret(_CONNECT_TOKEN)
            assert token is not None
        return token

    def secret(self, name: str) -> str | None:
        """The secret kept under ``name`` (a source's password under the source's name)."""
        try:
            return self._secret_file(name).read_bytes().decode()
        except FileNotFoundError:
            return None

    def keep_secret(self, name: str, value: str) -> None:
        """Keeps ``value`` readable for this user only."""
        self.secrets.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(self._secret_file(name), value, 0o600)

    def forget_secret(self, name: str) -> None:
        """Nothing is kept under ``name`` any more."""
        self._secret_file(name).unlink(missing_ok=True)

    # Processes

    def record(self, process: str, pid: int | None = None, **facts: object) -> None:
        """Says that ``process`` runs: its pid (this one's by default) and what others must know.

        Facts may be given anew; since when it runs stays as it was said first.
        """
        record = ProcessRecord.of(os.getpid() if pid is None else pid, facts)
        self.run.mkdir(parents=True, exist_ok=True)
        file = self.run / f"{process}.json"
        known = ProcessRecord.read(file)
        if known is not None and (known.pid, known.birth) == (record.pid, record.birth):
            record = replace(record, started=known.started)
        _write(file, record.as_json(), 0o644)

    def forget(self, process: str) -> None:
        """Removes the record of a process that ended."""
        (self.run / f"{process}.json").unlink(missing_ok=True)

    def processes(self) -> dict[str, ProcessRecord]:
        """The processes that live, by name; a record whose pid is another's now is no process."""
        found = {}
        for file in sorted(self.run.glob("*.json")):
            record = ProcessRecord.read(file)
            if record is not None and record.alive:
                found[file.stem] = record
        return found

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held by the one supervisor of this home; the system lets go of it when that dies.

        Raises Unready when another one holds it.
        """
        self.run.mkdir(parents=True, exist_ok=True)
        with (self.run / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise self._in_use() from error
            yield

    def check_unused(self) -> None:
        """Raises Unready when a supervisor serves this home. Nothing is made."""
        if "supervisor" in self.processes():
            raise self._in_use()

    def _in_use(self) -> Unready:
        supervisor = self.processes().get("supervisor")
        which = "" if supervisor is None else f", process {supervisor.pid}"
        port = None if supervisor is None else supervisor.facts.get("port")
        where = "" if port is None else f", http://localhost:{port}"
        return Unready(
            f"Highwater already runs on the home {self.folder}{which}{where}.",
            "Stop it first: highwater stop",
        )

    @property
    def _version_file(self) -> Path:
        return self.folder / "home.json"

    def _secret_file(self, name: str) -> Path:
        encoded = quote(name, safe="")
        if len(encoded) > 200:  # file names end at 255 bytes
            encoded = hashlib.sha256(name.encode()).hexdigest()
        return self.secrets / f"{encoded}.secret"

    def _check_is_ours(self) -> None:
        if self.exists:
            version = self._written_version()
            if version > VERSION:
                raise HomeTooNew(f"The home {self.folder}", f"layout {version}, this one knows {VERSION}")
        elif self.folder.exists():
            foreign = sorted(entry.name for entry in self.folder.iterdir() if entry.name not in _ENTRIES)
            if foreign:
                raise Unready(
                    f"{self.folder} is not a home of Highwater: it holds {foreign[0]}.",
                    "Choose an empty or new folder: --home DIR or HIGHWATER_HOME.",
                )

    def _written_version(self) -> int:
        try:
            return int(json.loads(self._version_file.read_text(encoding="utf-8"))["version"])
        except (ValueError, KeyError, TypeError) as error:
            raise Unready(
                f"{self._version_file} does not say which version of Highwater wrote it.",
                f'Restore it, or write {{"version": {VERSION}}} into it if it was damaged.',
            ) from error

    def _check_writable(self) -> None:
        for folder in (self.folder, self.lake, self.run, self.log, self.secrets):
            probe = folder / f".writable-{os.getpid()}"
            probe.touch()
            probe.unlink()

    def _check_space(self, minimum: int) -> None:
        place = next(folder for folder in (self.folder, *self.folder.parents) if folder.exists())
        free = shutil.disk_usage(place).free
        if free < minimum:
            raise Unready(
                f"The disk of the home {self.folder} has {free / 2**20:,.0f} MiB free; "
                f"Highwater wants {minimum / 2**20:,.0f} MiB at least.",
                "Free some, choose another disk with --home DIR, or lower minimum_free_bytes "
                f"in {SETTINGS_FILE}.",
            )


def _write(path: Path, text: str, mode: int) -> None:
    """The whole file or none of it, whoever reads at that moment."""
    new = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
