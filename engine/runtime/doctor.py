"""`highwater doctor`: what a home needs of the machine and of its sources, each finding with its fix."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from engine.control.database import ControlDatabase
from engine.errors import CdcError
from engine.model.source_database import SourceDatabase
from engine.runtime.embedded_postgres import control_dsn, embedded_server
from engine.runtime.home import Home
from engine.runtime.jars import COORDINATE, delta_jars
from engine.runtime.java import find_java
from engine.runtime.ports import port_is_free
from engine.runtime.supervisor import port_taken
from engine.runtime.unready import Unready
from engine.settings import Settings
from engine.sources.registry import Sources

PYTHON = (3, 11)

_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;]+)$")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: what was found, and what to do about it where something is to be done."""

    subject: str
    passed: bool
    found: str
    fix: str = ""


def examine(settings: Settings, environ: Mapping[str, str]) -> Iterator[Check]:
    """All checks, each as soon as it is made."""
    home = Home(settings.home)
    yield _python()
    yield _packages()
    yield _checked("Java", lambda: _java(environ))
    yield _checked(
        "Delta jars", lambda: f"{len(delta_jars(settings.jars))} of {COORDINATE} in {settings.jars}"
    )
    yield _checked("Home", lambda: _home(home, settings))
    yield _checked("Port", lambda: _port(home, settings))
    yield _postgres(settings)
    yield from _sources(home, settings)


def _checked(subject: str, look: Callable[[], str]) -> Check:
    try:
        return Check(subject, True, look())
    except Unready as problem:
        return Check(subject, False, problem.problem, problem.fix)
    except CdcError as error:
        return Check(subject, False, str(error))


def _python() -> Check:
    found = f"{sys.version.split()[0]} in {sys.prefix}"
    fits = sys.version_info[:2] >= PYTHON
    return Check("Python", fits, found, "" if fits else "Highwater needs Python 3.11 or newer.")


def _packages() -> Check:
    try:
        pins = [found for line in requires("highwater") or [] if (found := _PINNED.match(line))]
    except PackageNotFoundError:
        return Check("Packages", False, "Highwater itself is not installed.", "Install it: make setup")
    wrong = [text for name, pin in (found.groups() for found in pins) if (text := _mismatch(name, pin))]
    if wrong:
        return Check("Packages", False, "; ".join(wrong), "Install what is pinned: make setup")
    return Check("Packages", True, f"{len(pins)} as pinned")


def _mismatch(name: str, pin: str) -> str | None:
    try:
        found = version(name)
    except PackageNotFoundError:
        return f"{name} is missing"
    return None if found == pin else f"{name} is {found}, not {pin}"


def _java(environ: Mapping[str, str]) -> str:
    java = find_java(environ)
    return f"{java.version} from {java.origin}"


def _home(home: Home, settings: Settings) -> str:
    if not home.exists:
        return f"{home.folder} is not there yet: highwater start makes it"
    home.prepare(settings.minimum_free_bytes)
    return f"{home.folder}, {shutil.disk_usage(home.folder).free / 2**30:,.1f} GiB free"


def _port(home: Home, settings: Settings) -> str:
    dashboard = home.processes().get("dashboard")
    if dashboard is not None:
        return f"{dashboard.facts.get('port')} is this home's dashboard, process {dashboard.pid}"
    if not port_is_free(settings.port):
        raise port_taken(settings.port)
    return f"{settings.port} on 127.0.0.1 is free"


def _postgres(settings: Settings) -> Check:
    server = embedded_server(settings)
    if settings.control_dsn is not None:
        return Check("PostgreSQL", True, "the control database is on another server (control_dsn)")
    if server.pid is None:
        return Check("PostgreSQL", True, "the embedded server is stopped: highwater start")
    return Check(
        "PostgreSQL",
        True,
        f"the embedded server runs, process {server.pid}, socket in {server.socket_folder}",
    )


def _sources(home: Home, settings: Settings) -> Iterator[Check]:
    """The settings and privileges of each registered source."""
    if settings.control_dsn is None and embedded_server(settings).pid is None:
        return
    control = ControlDatabase.open(control_dsn(settings))
    try:
        sources = Sources(home.secret)
        for database in control.sources.list():
            yield from _source(sources, database)
    except CdcError as error:
        yield Check(
            "Control database", False, str(error), "Start everything again: highwater stop, highwater start"
        )
    finally:
        control.close()


def _source(sources: Sources, database: SourceDatabase) -> Iterator[Check]:
    subject = f"Source '{database.name}'"
    try:
        problems = sources.admin(database).check()
    except CdcError as error:
        yield Check(
            subject, False, str(error), "Check that the server runs and that the DSN is right: highwater dsn"
        )
        return
    for problem in problems:
        yield Check(f"{subject}, {problem.subject}", not problem.fatal, problem.problem, problem.fix)
    if not problems:
        yield Check(subject, True, "settings and privileges are as capture needs them")
