"""``/metrics`` of a home, served by its agent: what was read last, so that a scrape never waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from threading import Event, Thread
from types import TracebackType
from typing import Self

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from engine.control.database import ControlDatabase
from engine.errors import CdcError
from engine.lake.tables import Lake
from engine.monitoring.looks import Look
from engine.monitoring.metrics import Reading, families
from engine.monitoring.status import ProcessStatus, StatusReader
from engine.sources.registry import Sources

_log = structlog.get_logger(__name__)

READ_EVERY = 5.0
"""Seconds between two readings: control database and one short look at each source."""
PATIENCE = 10.0
"""Seconds after which a reading that has not ended is said to get no answer."""


class MetricsServer(Collector):
    """Reads on a thread of its own and serves what it read, within ``with``."""

    def __init__(
        self,
        control: ControlDatabase,
        sources: Sources,
        processes: Callable[[], Sequence[ProcessStatus]],
        clock: Callable[[], datetime],
        lake: Lake,
        read_every: float = READ_EVERY,
        patience: float = PATIENCE,
    ) -> None:
        """``clock`` gives UTC; ``processes`` those of the home."""
        self._control = control
        self._reader = StatusReader(control, sources, processes, clock, lake)
        self._read_every = read_every
        self._patience = patience
        self._reading = Reading(version("highwater"), is_current=False)
        self._read_at = time.monotonic()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="metrics", daemon=True)
        self._serving: Callable[[], None] | None = None

    def serve(self, address: str, port: int) -> int:
        """Starts to listen; the port, which is any free one for 0. Raises OSError where it is taken."""
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        server, thread = start_http_server(port, address, registry)

        def end() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        self._serving = end
        return int(server.server_port)

    def collect(self) -> Iterator[Metric]:
        """The families of the newest reading; an old one says so, whatever keeps the next from coming."""
        age = time.monotonic() - self._read_at
        is_current = self._reading.is_current and age <= self._read_every + 2 * self._patience
        return families(replace(self._reading, is_current=is_current))

    def describe(self) -> Iterator[Metric]:
        """Nothing: which families there are depends on what is there."""
        return iter(())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._serving is not None:
            self._serving()
        self._thread.join()

    def _run(self) -> None:
        look: Look[Reading] | None = None
        while not self._stop.is_set():
            if look is None or look.is_over:
                look = Look(self._read, "metrics reading")
            self._reading = self._answered(look)
            self._read_at = time.monotonic()
            self._stop.wait(self._read_every)

    def _answered(self, look: Look[Reading]) -> Reading:
        """The reading; the last one, marked, where there is no answer."""
        try:
            reading = look.answer(self._patience)
        except CdcError as error:
            _log.warning("metrics not read", error=str(error))
            reading = None
        return reading or replace(self._reading, is_current=False)

    def _read(self) -> Reading:
        status = self._reader.read()
        totals = {
            each.name: total
            for each in status.databases
            if (total := self._control.sessions.aggregate(each.name)) is not None
        }
        return Reading(self._reading.version, is_current=True, status=status, totals=totals)
