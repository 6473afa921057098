"""`highwater start`: starts what a home needs, keeps it running, stops it in reverse.

PostgreSQL, the dashboard and the search for Java start together; the agent follows as soon as there is
a control database, and the demo is filled while Spark starts. Whatever ends by itself is started again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event, Thread

import psutil

from engine.control.database import ControlDatabase
from engine.demo import install
from engine.monitoring.agent_watch import AgentWatch
from engine.runtime.child import LONGEST_PAUSE, Child, EndedEarlyError, keep_running
from engine.runtime.embedded_postgres import (
    CONTROL_DATABASE,
    DEMO_DATABASE,
    EmbeddedPostgres,
    control_dsn,
    embedded_server,
)
from engine.runtime.home import Home
from engine.runtime.jars import delta_jars
from engine.runtime.java import Java, find_java
from engine.runtime.login import check_address
from engine.runtime.ports import page_answers, port_is_free
from engine.runtime.processes import AGENT_AWAY_SINCE, ProcessRecord
from engine.runtime.unready import Unready
from engine.settings import PREFIX, Settings

STOP_ORDER = ("dashboard", "agent")
STOP_SECONDS: Mapping[str, float] = {"dashboard": 10.0, "agent": 60.0}
READY_SECONDS = 300.0
"""Spark's first start on a slow machine takes its time; a process that dies is noticed at once."""
PATIENCE_SECONDS = 12.0
"""How long the URL waits for the agent."""
_LOOK = 0.05
_WATCH = 0.5


@dataclass(frozen=True, slots=True)
class Choices:
    """What `highwater start` was asked for."""

    dashboard: bool = True
    demo: bool = True


class Supervisor:
    """The processes of one home. ``say`` gets a line a step."""

    def __init__(
        self,
        settings: Settings,
        choices: Choices,
        say: Callable[[str], None],
        environ: Mapping[str, str],
    ) -> None:
        self._settings = settings
        self._choices = choices
        self._say = say
        self._environ = environ
        self._home = Home(settings.home)
        self._children: dict[str, Child] = {}
        self._server: EmbeddedPostgres | None = None
        self._server_stop = Event()
        self._agent_watch = AgentWatch(lambda: ControlDatabase.open(control_dsn(settings)), say)

    def check(self) -> None:
        """Raises Unready when the home is served already, or the dashboard's port is another program's.

        Nothing is made: a start that fails here leaves no trace.
        """
        self._home.check_unused()
        leftover = self._home.processes().get("dashboard")
        if leftover is None or leftover.facts.get("port") != self._settings.port:
            self._check_port()
        if "agent" not in self._home.processes():
            self._check_metrics_port()

    def run(self, stop: Event) -> None:
        """Starts everything, returns when ``stop`` is set and everything has ended.

        Raises Unready, HomeTooNew and other CdcErrors; nothing runs then.
        """
        self.check()
        self._home.prepare(self._settings.minimum_free_bytes)
        with self._home.lock():
            end_leftovers(self._home, self._say)
            self._check_port()
            self._record(ready=False)
            try:
                self._start(stop)
                self._watch(stop)
            finally:
                self._stop()
                self._home.forget("supervisor")

    def _check_port(self) -> None:
        if not self._choices.dashboard:
            return
        check_address(self._home.folder, self._settings.address)
        if not port_is_free(self._settings.port, self._settings.address):
            raise port_taken(self._settings.port)

    def _check_metrics_port(self) -> None:
        port = self._settings.metrics_port
        if port is not None and not port_is_free(port, self._settings.metrics_address):
            raise Unready(
                f"Port {port} on {self._settings.metrics_address} is in use by another program.",
                f"Choose another: highwater start --metrics-port {port % 65535 + 1} ({PREFIX}METRICS_PORT).",
            )

    def _record(self, **facts: object) -> None:
        port = self._settings.port if self._choices.dashboard else None
        self._home.record("supervisor", None, port=port, **facts)

    # Starting

    def _start(self, stop: Event) -> None:
        begun = time.monotonic()
        self._say(f"Starting Highwater in {self._home.folder}")
        with ThreadPoolExecutor(2) as pool:
            java = pool.submit(self._find_java)
            server = pool.submit(self._start_server)
            if self._choices.dashboard:
                self._start_dashboard()
            found = java.result()
            server.result()
        self._start_agent(found)
        self._prepare_databases()
        self._wait_until_ready(stop, begun)

    def _wait_until_ready(self, stop: Event, begun: float) -> None:
        """Says of each child when it is ready, and the URL when the page answers.

        The page waits for the agent, but not for a slow one: it shows most things without.
        """
        pending = dict(self._checks)
        address_due = self._choices.dashboard
        while not stop.is_set() and (pending or address_due):
            for name in [name for name, ready in pending.items() if ready()]:
                del pending[name]
                self._children[name].keep()
                self._step(f"{name.capitalize()} (process {self._children[name].pid})", begun)
            waited = time.monotonic() - begun
            if address_due and "dashboard" not in pending and (not pending or waited > PATIENCE_SECONDS):
                address_due = False
                self._say_address(pending)
            self._check_children(pending, waited)
            if pending:
                stop.wait(_LOOK)
        if not stop.is_set():
            self._record(ready=True)
            self._agent_watch.start()
            if not self._choices.dashboard:
                self._say("Ready   (Ctrl-C stops everything)")

    def _say_address(self, pending: Mapping[str, object]) -> None:
        also = "; the agent still starts" if pending else ""
        self._say(f"Open http://localhost:{self._settings.port}   (Ctrl-C stops everything{also})")

    def _check_children(self, pending: Mapping[str, object], waited: float) -> None:
        """Raises Unready with the last words of a child that ended, or was not ready in time."""
        for child in (self._children[name] for name in pending):
            if child.exit_code is not None:
                raise Unready(
                    f"The {child.name} does not start: {child.last_words()}", f"Its log: {child.log}"
                )
            if waited > READY_SECONDS:
                raise Unready(
                    f"The {child.name} was not ready after {READY_SECONDS:g} s.", f"Its log: {child.log}"
                )

    @property
    def _checks(self) -> dict[str, Callable[[], bool]]:
        checks: dict[str, Callable[[], bool]] = {"agent": self._agent_is_ready}
        if self._choices.dashboard:
            checks["dashboard"] = lambda: page_answers(self._settings.port, self._settings.address)
        return checks

    def _find_java(self) -> Java:
        begun = time.monotonic()
        java = find_java(self._environ)
        jars = delta_jars(self._settings.jars)
        self._step(f"Java {java.version} from {java.origin}, {len(jars)} jars of Delta", begun)
        return java

    def _start_server(self) -> None:
        """The embedded server, unless nothing of this home is in it."""
        if self._settings.control_dsn is not None and not self._choices.demo:
            self._say("PostgreSQL: control_dsn names another server; the embedded one is not needed")
            return
        begun = time.monotonic()
        self._server = embedded_server(self._settings)
        self._server.start()
        self._record_server()
        self._server.ensure_database(CONTROL_DATABASE)
        Thread(target=self._keep_server, args=(self._server,), name="postgres", daemon=True).start()
        self._step(f"PostgreSQL in {self._server.folder}", begun)

    def _keep_server(self, server: EmbeddedPostgres) -> None:
        def run() -> None:
            try:
                if server.pid is None:
                    server.start()
                    self._record_server()
            except Unready as error:
                self._say(str(error))
                raise EndedEarlyError from error
            _wait_for_end(server, self._server_stop)
            if not self._server_stop.is_set():
                self._say(f"PostgreSQL ended and is started again. Its log: {server.log}")

        keep_running(run, self._server_stop)

    def _record_server(self) -> None:
        assert self._server is not None
        self._home.record("postgres", self._server.pid, socket=str(self._server.socket_folder))

    def _start_agent(self, java: Java) -> None:
        command = [sys.executable, "-m", "engine.agent", "--home", str(self._home.folder)]
        environment = dict(java.environment(self._environ))
        if self._settings.metrics_port is not None:
            environment[f"{PREFIX}METRICS_PORT"] = str(self._settings.metrics_port)
        self._start_child("agent", command, environment, lambda _: None)

    def _start_dashboard(self) -> None:
        port = self._settings.port
        command = [sys.executable, "-m", "dashboard", "--home", str(self._home.folder), "--port", str(port)]
        command += ["--address", self._settings.address]

        def record(pid: int) -> None:
            self._home.record("dashboard", pid, port=port, url=f"http://localhost:{port}")

        self._start_child("dashboard", command, self._environ, record)

    def _start_child(
        self, name: str, command: list[str], environ: Mapping[str, str], started: Callable[[int], None]
    ) -> None:
        environment = {**environ, "HIGHWATER_HOME": str(self._home.folder), "PYTHONUNBUFFERED": "1"}
        log = self._home.log / f"{name}.log"
        child = Child(name, command, environment, log, self._say, started)
        self._children[name] = child
        child.start()

    def _prepare_databases(self) -> None:
        begun = time.monotonic()
        control = ControlDatabase.open(control_dsn(self._settings))
        try:
            control.migrate()
            self._step("Control database", begun)
            if self._choices.demo:
                self._prepare_demo(control)
        finally:
            control.close()

    def _prepare_demo(self, control: ControlDatabase) -> None:
        """The demo company in a database of its own; a source to be enabled, not enabled."""
        assert self._server is not None
        begun = time.monotonic()
        self._server.ensure_database(DEMO_DATABASE)
        dsn = self._server.dsn(DEMO_DATABASE)
        install(dsn)
        registered = control.sources.get(DEMO_DATABASE)
        if registered is None:
            control.sources.add(DEMO_DATABASE, "postgresql", dsn)
        elif registered.dsn != dsn and f"/{DEMO_DATABASE}?host=" in registered.dsn:
            control.sources.set_dsn(DEMO_DATABASE, dsn)  # the home was moved
        self._step(f"Demo company in source '{DEMO_DATABASE}'", begun)

    def _agent_is_ready(self) -> bool:
        record = self._home.processes().get("agent")
        return record is not None and record.pid == self._children["agent"].pid

    def _step(self, what: str, begun: float) -> None:
        self._say(f"  {what}: {time.monotonic() - begun:.1f} s")

    # Watching

    def _watch(self, stop: Event) -> None:
        """Until ``stop``: keeps logs from growing, and says in the record since when the agent is away."""
        was_serving = True
        while not stop.wait(_WATCH):
            try:
                for child in self._children.values():
                    child.limit_log()
                serves = self._agent_is_ready()
                if serves != was_serving:
                    was_serving = serves
                    away = {} if serves else {AGENT_AWAY_SINCE: datetime.now(UTC).isoformat()}
                    self._record(ready=True, **away)
            except OSError as error:  # a full disk, which must not end what still runs
                self._say(f"The supervisor cannot write below {self._home.folder}: {error}")
                stop.wait(LONGEST_PAUSE)

    # Stopping

    def _stop(self) -> None:
        begun = time.monotonic()
        self._say("Stopping")
        self._agent_watch.stop()
        for name in STOP_ORDER:
            if child := self._children.get(name):
                child.stop(STOP_SECONDS[name])
                self._home.forget(name)
        self._server_stop.set()
        if self._server is not None:
            self._server.stop()
            self._home.forget("postgres")
        self._say(f"Stopped: {time.monotonic() - begun:.1f} s")


def end_leftovers(home: Home, say: Callable[[str], None]) -> bool:
    """Ends the dashboard and agent that a killed supervisor left behind; whether there were any."""
    living = home.processes()
    found = [name for name in STOP_ORDER if name in living]
    for name in found:
        say(f"Ending the {name} of an earlier start (process {living[name].pid})")
        end_process(living[name], STOP_SECONDS[name])
        home.forget(name)
    return bool(found)


def end_process(record: ProcessRecord, seconds: float) -> None:
    """SIGTERM, and SIGKILL after ``seconds``; returns when the process is gone."""
    if not record.alive:
        return
    try:
        process = psutil.Process(record.pid)
        process.terminate()
        _, left = psutil.wait_procs([process], timeout=seconds)
        for each in left:
            each.kill()
        psutil.wait_procs(left, timeout=10)
    except psutil.NoSuchProcess:
        return


def port_taken(port: int) -> Unready:
    """The port of the dashboard is somebody else's."""
    return Unready(
        f"Port {port} on 127.0.0.1 is in use by another program.",
        f"Choose another: highwater start --port {port + 1 if port < 65535 else 8501} (or HIGHWATER_PORT).",
    )


def _wait_for_end(server: EmbeddedPostgres, stop: Event) -> None:
    """Returns when the server has ended, or soon after ``stop``."""
    pid = server.pid
    if pid is None:
        return
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return
    while not stop.is_set() and process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        try:
            process.wait(timeout=0.5)
            return
        except psutil.TimeoutExpired:
            continue
