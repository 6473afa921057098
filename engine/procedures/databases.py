"""Registering, enabling and disabling databases (reference/procedures.md, 1)."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import quote

from engine.control import DISABLING, REPORTED, ControlDatabase, Lease
from engine.errors import (
    CdcError,
    DatabaseAlreadyEnabled,
    DatabaseExists,
    DatabaseNotEnabled,
    DatabaseStillEnabled,
    EnabledElsewhere,
    NameInvalid,
    ObjectsNotCreated,
    SameDatabase,
    SourceUnfit,
    SourceUnreachable,
    SyncTimeout,
    UnknownDatabase,
)
from engine.model.job import JobType
from engine.model.source_database import SourceDatabase
from engine.sources.base import SourceAdmin, SourceProblem
from engine.sources.registry import Sources
from engine.sources.sql_session import SqlSession

KIND = "postgresql"
DSN_SHAPE = "postgresql://user:password@host:5432/database"
MAX_NAME = 128
EXCLUSIVE_SECONDS = 60.0
"""How long disabling waits for the capture process to let go of the log."""


class Secrets(Protocol):
    """Where passwords of sources are kept: the home."""

    def secret(self, name: str) -> str | None:
        """The password kept under a database's name."""
        ...

    def keep_secret(self, name: str, value: str) -> None:
        """Keeps a password."""
        ...

    def forget_secret(self, name: str) -> None:
        """Keeps none any more."""
        ...


class Databases:
    """Source databases of one home."""

    def __init__(self, control: ControlDatabase, sources: Sources, secrets: Secrets) -> None:
        self._control = control
        self._sources = sources
        self._secrets = secrets

    def get(self, name: str | None) -> SourceDatabase:
        """One database; without a name, the only one there is. Raises UnknownDatabase."""
        known = self._control.sources.list()
        if name is None:
            if len(known) == 1:
                return known[0]
            raise UnknownDatabase("", f"{_listed(known)} Name one with -d.")
        found = next((database for database in known if database.name == name), None)
        if found is None:
            raise UnknownDatabase(name, _listed(known))
        return found

    def enabled(self, name: str) -> SourceDatabase:
        """A database that is enabled. Raises UnknownDatabase, DatabaseNotEnabled."""
        database = self.get(name)
        if not database.is_cdc_enabled:
            raise DatabaseNotEnabled(name)
        return database

    def admin(self, name: str) -> SourceAdmin:
        """The source's administration. Raises UnknownDatabase."""
        return self._sources.admin(self.get(name))

    def sql_session(self, name: str, role: str | None = None, *, read_only: bool = False) -> SqlSession:
        """A session with SQL at the source; see `Sources.sql_session`. Raises UnknownDatabase."""
        return self._sources.sql_session(self.get(name), role, read_only=read_only)

    def connect(self, name: str, dsn: str) -> list[SourceProblem]:
        """Registers a source that can be captured; what could be better is returned.

        Registering it again changes its DSN and password, provided that the DSN leads to the same database.
        Raises NameInvalid, SourceUnreachable, SourceUnfit, DatabaseExists; then nothing has changed.
        """
        _check_name(name)
        plain, password = self._split_dsn(name, dsn)
        candidate = SourceDatabase(0, name, KIND, plain, False, datetime.now(UTC))
        admin = Sources(lambda _: password).admin(candidate)
        problems = list(admin.check())
        _raise_fatal(name, problems)
        try:
            self._check_owner(name, admin)
        except EnabledElsewhere as error:
            problems.append(SourceProblem("home", str(error), "", fatal=False))
        known = self._control.sources.get(name)
        if known is None:
            self._control.sources.add(name, KIND, plain)
        elif known.dsn != plain:
            if known.is_cdc_enabled and not admin.is_enabled():
                raise DatabaseExists(name, known.dsn)
            self._control.sources.set_dsn(name, plain)
        if password is None:
            self._secrets.forget_secret(name)
        else:
            self._secrets.keep_secret(name, password)
        if known is not None and known.is_cdc_enabled and self._upgraded(name, admin):
            return [*admin.check(), *(problem for problem in problems if problem.subject == "home")]
        return problems

    def _upgraded(self, name: str, admin: SourceAdmin) -> bool:
        """Whether what an earlier version made at the source could be, and was, brought up to this one."""
        try:
            return admin.upgrade(self._control.instances.list(name))
        except ObjectsNotCreated:
            return False  # `SourceAdmin.check` says so, and what to do

    def _split_dsn(self, name: str, dsn: str) -> tuple[str, str | None]:
        """The DSN without its password, and the password. Raises SourceUnreachable."""
        try:
            return self._sources.split_dsn(dsn)
        except SourceUnreachable as error:
            _, reason = error.args
            raise SourceUnreachable(name, f"{reason}. Write it like {DSN_SHAPE}") from error

    def dsn(self, name: str) -> str:
        """The libpq URI of a source, with its password. Raises UnknownDatabase."""
        database = self.get(name)
        password = self._secrets.secret(name)
        return database.dsn if password is None else with_password(database.dsn, password)

    def enable(self, name: str) -> None:
        """sys.sp_cdc_enable_db. Makes no job: those come with the first table.

        Raises DatabaseAlreadyEnabled (severity 10), SourceUnfit, EnabledElsewhere, CdcSchemaExists,
        ObjectsNotCreated.
        """
        database = self.get(name)
        if database.is_cdc_enabled:
            raise DatabaseAlreadyEnabled(name)
        admin = self._sources.admin(database)
        _raise_fatal(name, admin.check())
        self._check_owner(name, admin)
        admin.enable_database(self._control.identity())
        self._control.sources.set_enabled(name, True)

    def disable(self, name: str, force: bool = False) -> None:
        """sys.sp_cdc_disable_db: its instances, change tables and jobs go; gating roles stay.

        It takes the database's lease first, so no capture process reads the log meanwhile. Where this home
        has not enabled the database, what an enabling that was cut short made is taken back, and what came
        along with a copy of an enabled database: the original keeps all of its own. What another home
        captures goes only with ``force``. Raises DatabaseNotEnabled, SameDatabase, EnabledElsewhere,
        SourceUnreachable, ObjectsNotDropped; then the capture job goes on as before.
        """
        database = self.get(name)
        try:
            self._disable(database, force)
        except SourceUnreachable as error:
            _, reason = error.args
            raise SourceUnreachable(name, f"{reason.rstrip('.')}. {_way_out(name)}") from error

    def _disable(self, database: SourceDatabase, force: bool) -> None:
        name, admin = database.name, self._sources.admin(database)
        if not database.is_cdc_enabled:
            if not admin.has_own_schema():
                raise DatabaseNotEnabled(name)
            self._check_is_another(name, admin)
            if not force:
                self._check_owner(name, admin)
        instances = self._control.instances.list(name)
        with self._alone(name):
            admin.disable_database(instances)
            self._control.disable_database(name)

    def _check_owner(self, name: str, admin: SourceAdmin) -> None:
        """Raises EnabledElsewhere where another home captures the database."""
        if admin.owner() not in ("", self._control.identity()):
            raise EnabledElsewhere(name, shlex.quote(name))

    def _check_is_another(self, name: str, admin: SourceAdmin) -> None:
        """Raises SameDatabase where it is enabled under another name. One that can't be reached is not it."""
        place = admin.place()
        for other in self._control.sources.list():
            if other.is_cdc_enabled and self._place(other) == place:
                raise SameDatabase(name, other.name)

    def _place(self, database: SourceDatabase) -> str | None:
        try:
            return self._sources.admin(database).place()
        except SourceUnreachable:
            return None

    def disconnect(self, name: str, force: bool = False) -> list[SourceProblem]:
        """Forgets a source with everything kept of it; what may be left of us there is returned.

        An enabled database is to be disabled first, which ``force`` tries too, and then goes on without:
        the source may be gone for good. Raises UnknownDatabase, DatabaseStillEnabled; then nothing has
        changed.
        """
        database = self.get(name)
        admin, instances = self._sources.admin(database), self._control.instances.list(name)
        words = self._kept_there(database, admin, force)
        self._control.remove_database(name)
        self._secrets.forget_secret(name)
        if words is None:
            return []
        return [
            SourceProblem("source", words, _clean_later(name), fatal=False),
            *admin.remains(instances),
        ]

    def _kept_there(self, database: SourceDatabase, admin: SourceAdmin, force: bool) -> str | None:
        """Why something of us may be left at the source, once disabling was tried; None where nothing is.

        Where this home has not enabled the database, what is there may be another home's: it stays.
        """
        name = database.name
        try:
            in_place = admin.is_enabled()
        except SourceUnreachable as error:
            if not database.is_cdc_enabled:
                return None
            if not force:
                raise DatabaseStillEnabled(name, f"{_words(error)}. {_way_out(name)}") from error
            return f"{_words(error)}. Should it be back, it can be cleaned:"
        if not database.is_cdc_enabled:
            words = "The source is enabled, though not by this home. If no other home captures it:"
            return words if in_place else None
        if not force:
            raise DatabaseStillEnabled(name, f"Disable it first: highwater disable -d {shlex.quote(name)}")
        try:
            self.disable(name)
        except CdcError as error:
            return f"{_words(error)}. Some of this may be left at the source; when that is mended:"
        return None

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Stops the capture job and keeps every other reader of the log away. Undone when the body fails."""
        job = self._control.jobs.get(name)
        with self._control.listen(REPORTED) as listener:
            if job is not None and job.wanted:
                self._control.jobs.want(name, JobType.CAPTURE, False)
            lease: Lease | None = None
            try:
                deadline = time.monotonic() + EXCLUSIVE_SECONDS
                while lease is None:
                    lease = self._control.leases.acquire(name, DISABLING, int(EXCLUSIVE_SECONDS))
                    if lease is None and time.monotonic() > deadline:
                        raise SyncTimeout(
                            f"Stopping capture of '{name}'",
                            EXCLUSIVE_SECONDS,
                            "another process still reads its log",
                        )
                    if lease is None:
                        # The end of a lease is not announced, only that of its job.
                        listener.wait(0.25)
                yield
            except CdcError:
                if job is not None and job.wanted:
                    self._control.jobs.want(name, JobType.CAPTURE, True)
                raise
            finally:
                if lease is not None:
                    self._control.leases.release(lease)


def _way_out(name: str) -> str:
    return f"If it is gone for good: highwater disconnect {shlex.quote(name)} --force"


def _words(error: CdcError) -> str:
    """An error's text without its full stop."""
    return str(error).rstrip(".")


def _clean_later(name: str) -> str:
    """What cleans a source exactly, should it be reached again."""
    name = shlex.quote(name)
    return f"highwater connect {name} DSN; highwater disable -d {name}  # or as its superuser:"


def with_password(dsn: str, password: str) -> str:
    """A libpq URI with a password in its place."""
    secret = quote(password, safe="")
    scheme, separator, rest = dsn.partition("://")
    login, at, place = rest.partition("@")
    if at and "/" not in login and "?" not in login:
        return f"{scheme}{separator}{login}:{secret}@{place}"
    return f"{dsn}{'&' if '?' in dsn else '?'}password={secret}"


def _check_name(name: str) -> None:
    printable = all(character.isprintable() and character not in "/\\" for character in name)
    if not 0 < len(name) <= MAX_NAME or not printable or name != name.strip() or name in (".", ".."):
        raise NameInvalid(name)


def _raise_fatal(name: str, problems: Sequence[SourceProblem]) -> None:
    fatal = [f"{problem.problem} {problem.fix}" for problem in problems if problem.fatal]
    if fatal:
        raise SourceUnfit(name, fatal)


def _listed(known: Sequence[SourceDatabase]) -> str:
    if not known:
        return "None is registered: highwater connect NAME DSN."
    return f"Registered: {', '.join(database.name for database in known)}."
