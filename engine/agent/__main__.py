"""``python -m engine.agent --home DIR``: the agent's process."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import structlog

from engine.agent.agent import Agent
from engine.agent.leased_job import utc_now
from engine.capture.crash_points import CrashPoints
from engine.control.database import ControlDatabase
from engine.errors import CdcError
from engine.lake.publisher import Publisher
from engine.lake.spark import ConnectEndpoint, build_session, connect_port, jvm_is_alive
from engine.lake.tables import Lake
from engine.model.scan_report import Told, tell_nobody
from engine.monitoring.status import processes_of
from engine.runtime.embedded_postgres import control_dsn
from engine.runtime.home import Home
from engine.runtime.jars import delta_jars
from engine.runtime.unready import Unready
from engine.settings import Settings
from engine.sources.registry import Sources

_log = structlog.get_logger(__name__)


def main() -> int:
    """Runs the agent of a home until SIGTERM or SIGINT; the exit code."""
    parser = argparse.ArgumentParser(description="Runs the capture jobs of a Highwater home.")
    parser.add_argument("--home", type=Path, help="folder of the home (HIGHWATER_HOME)")
    arguments = parser.parse_args()
    settings = Settings(home=arguments.home) if arguments.home else Settings()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        run(settings, stop)
    except CdcError as error:
        print(error.line(), file=sys.stderr)
        return 1
    except Unready as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def run(settings: Settings, stop: Event) -> None:
    """Opens everything the agent works with, says so in the home, and runs it."""
    home = Home(settings.home)
    home.prepare()
    control = ControlDatabase.open(control_dsn(settings))
    control.migrate()
    spark = build_session(
        settings.master,
        settings.driver_memory,
        delta_jars(settings.jars),
        ConnectEndpoint(0, home.connect_token),
        settings.spark_settings,
    )
    try:
        with tracing(settings) as told, serving_metrics(settings, home, control) as url:
            agent = Agent(
                control,
                Sources(home.secret),
                Publisher(spark),
                Lake(settings.lake),
                settings,
                holder=f"{socket.gethostname()}:{home.folder}",
                clock=utc_now,
                crash=CrashPoints.from_environment(os.environ),
                spark_is_alive=jvm_is_alive,
                told=told,
            )
            served: dict[str, Any] = {} if url is None else {"metrics_url": url}
            home.record("agent", connect_port=connect_port(), **served)
            agent.run(stop)
    finally:
        home.forget("agent")
        control.close()
        # A JVM that ends at this very moment, by the same signal, has nothing left to stop.
        with suppress(OSError):
            if jvm_is_alive():
                spark.stop()


@contextmanager
def tracing(settings: Settings) -> Iterator[Told]:
    """Who is to be told of scan sessions: the endpoint for traces that the settings name, or nobody."""
    if settings.traces_endpoint is None:
        yield tell_nobody
        return
    from engine.monitoring.scan_traces import ScanTraces

    traces = ScanTraces(settings.traces_endpoint)
    try:
        yield traces.told
    finally:
        traces.close()


@contextmanager
def serving_metrics(settings: Settings, home: Home, control: ControlDatabase) -> Iterator[str | None]:
    """Serves ``/metrics`` where the settings say so; its URL, None where the port is taken."""
    if settings.metrics_port is None:
        yield None
        return
    from engine.agent.metrics_server import MetricsServer

    address, port = settings.metrics_address, settings.metrics_port
    lake = Lake(settings.lake)
    server = MetricsServer(control, Sources(home.secret), lambda: processes_of(home), utc_now, lake)
    with server:
        try:
            server.serve(address, port)
        except OSError as error:
            _log.error("metrics not served", address=address, port=port, error=str(error))
            yield None
        else:
            yield f"http://{address}:{port}/metrics"


if __name__ == "__main__":
    sys.exit(main())
