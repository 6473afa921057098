"""highwater start, stop, status, doctor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.cli.failures import reported
from engine.cli.session import DEFAULT_HOME, HomeOption

if TYPE_CHECKING:
    from engine.runtime.home import Home
    from engine.settings import Settings

EXIT_CODES = {"healthy": 0, "attention": 1, "failing": 2}


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(start)
    app.command()(stop)
    app.command()(status)
    app.command()(doctor)


def start(
    home: HomeOption = DEFAULT_HOME,
    detach: Annotated[bool, typer.Option("--detach", help="Return when everything is ready.")] = False,
    no_dashboard: Annotated[bool, typer.Option("--no-dashboard", help="PostgreSQL and agent only.")] = False,
    no_demo: Annotated[bool, typer.Option("--no-demo", help="Make no demo source.")] = False,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The dashboard's, on 127.0.0.1; 8501 by default.")
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Serve /metrics for Prometheus on 127.0.0.1; off by default."),
    ] = None,
) -> None:
    """Start PostgreSQL, the agent and the dashboard; Ctrl-C stops them."""
    with reported():
        from engine.runtime.supervisor import Choices, Supervisor
        from engine.settings import Settings

        ports: dict[str, Any] = {"port": port, "metrics_port": metrics_port}
        settings = Settings(home=home, **{name: each for name, each in ports.items() if each is not None})
        choices = Choices(dashboard=not no_dashboard, demo=not no_demo)
        supervisor = Supervisor(settings, choices, _say, os.environ)
        if detach:
            supervisor.check()
            flags = _flags(no_dashboard, no_demo)
            if settings.metrics_port is not None:
                flags.append(f"--metrics-port={settings.metrics_port}")
            _start_detached(settings, [f"--port={settings.port}", *flags])
        else:
            supervisor.run(_stop_on_signals())


def stop(home: HomeOption = DEFAULT_HOME) -> None:
    """Stop everything that runs on the home; data stay."""
    with reported():
        from engine.runtime.embedded_postgres import embedded_server
        from engine.runtime.home import Home
        from engine.runtime.supervisor import end_leftovers
        from engine.settings import Settings

        settings = Settings(home=home)
        place = Home(settings.home)
        stopped = _stop_supervisor(place)
        stopped = end_leftovers(place, _say) or stopped
        server = embedded_server(settings)
        if server.pid is not None:
            server.stop()
            place.forget("postgres")
            stopped = True
        _say(f"{'Stopped' if stopped else 'Nothing runs'}: {place.folder}")


def status(
    home: HomeOption = DEFAULT_HOME,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show databases, jobs and processes. Exit code: 0 healthy, 1 attention, 2 failing."""
    with reported():
        from engine.cli.home_status import as_text, home_status
        from engine.settings import Settings

        found = home_status(Settings(home=home))
        typer.echo(json.dumps(found, ensure_ascii=False, default=str) if as_json else as_text(found))
    raise typer.Exit(EXIT_CODES[str(found["verdict"])])


def doctor(home: HomeOption = DEFAULT_HOME) -> None:
    """Check Python, Java, jars, ports, disk and PostgreSQL; each finding with its fix."""
    with reported():
        from engine.runtime.doctor import examine
        from engine.settings import Settings

        failed = False
        for check in examine(Settings(home=home), os.environ):
            failed = failed or not check.passed
            typer.echo(f"{'ok  ' if check.passed else 'FAIL'} {check.subject}: {check.found}")
            if check.fix:
                typer.echo("".join(f"       {line}\n" for line in check.fix.splitlines()), nl=False)
    raise typer.Exit(1 if failed else 0)


def _say(line: str) -> None:
    print(line, flush=True)


def _flags(no_dashboard: bool, no_demo: bool) -> list[str]:
    return ["--no-dashboard"] * no_dashboard + ["--no-demo"] * no_demo


def _stop_on_signals() -> Event:
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup means it
            signal.signal(number, lambda *_: stop.set())
    return stop


def _stop_supervisor(home: Home) -> bool:
    """Asks the supervisor to stop and waits for it; whether there was one."""
    record = home.processes().get("supervisor")
    if record is None:
        return False
    os.kill(record.pid, signal.SIGTERM)
    while record.alive:
        time.sleep(0.05)
    return True


def _start_detached(settings: Settings, flags: list[str]) -> None:
    """Runs ``highwater start`` in a session of its own and shows what it says until it is ready."""
    from engine.runtime.home import Home

    home = Home(settings.home)
    home.prepare(settings.minimum_free_bytes)
    log, errors = home.log / "supervisor.log", home.log / "supervisor-errors.log"
    command = [sys.executable, "-m", "engine", "start", "--home", str(home.folder), *flags]
    with log.open("wb") as output, errors.open("wb") as wrong, log.open() as said, errors.open() as failed:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=wrong, start_new_session=True
        )
        while True:
            ended = process.poll()
            record = home.processes().get("supervisor")
            ready = record is not None and record.pid == process.pid and record.facts.get("ready")
            typer.echo(said.read(), nl=False)
            typer.echo(failed.read(), nl=False, err=True)
            if ended is not None:
                raise typer.Exit(ended or 1)
            if ready:
                return
            time.sleep(0.1)
