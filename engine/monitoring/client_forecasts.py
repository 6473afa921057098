"""When cleanup comes to each client of a database, by commit times in the lake."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from engine.cleanup.forecast import forecast
from engine.control.database import ControlDatabase
from engine.lake.tables import Lake
from engine.model.client import Client, ClientForecast
from engine.model.job import JobType
from engine.model.lsn import Lsn

KNOWN_SECONDS = 30.0
"""So long a forecast is good: pages ask every few seconds, and each answer reads files."""

ClientKey = tuple[str, str]
"""Capture instance and name."""


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What a forecast goes by. times: of known commits; retention: minutes, None without a job."""

    high: Lsn | None = None
    times: Mapping[Lsn, datetime] = field(default_factory=dict)
    retention: int | None = None

    def time(self, lsn: Lsn | None) -> datetime | None:
        """When the transaction at an LSN was committed."""
        return None if lsn is None else self.times.get(lsn)

    def forecast(self, client: Client, now: datetime) -> ClientForecast:
        """What becomes of a client."""
        reached, earlier = self.time(client.acknowledged_lsn), self.time(client.earlier_lsn)
        return forecast(client, reached, earlier, self.time(self.high), self.retention, now)


def commit_facts(
    control: ControlDatabase, lake: Lake, database: str, clients: Sequence[Client]
) -> CommitFacts:
    """Of what these clients have acknowledged, and of the last captured commit. Raises as `commit_times`."""
    high = control.watermarks.get(database).high
    if not clients or high is None:
        return CommitFacts(high)
    from engine.query.client_lag import commit_times  # imports Arrow

    known = {lsn for each in clients for lsn in (each.acknowledged_lsn, each.earlier_lsn) if lsn}
    times = commit_times(lake, database, known | {high}, high)
    job = control.jobs.get(database, JobType.CLEANUP)
    return CommitFacts(high, times, None if job is None else job.configured.retention)


class ClientForecasts:
    """Remembers the forecasts of each database for a while."""

    def __init__(self, control: ControlDatabase, lake: Lake, clock: Callable[[], datetime]) -> None:
        self._control = control
        self._lake = lake
        self._clock = clock
        self._known: dict[str, tuple[float, Mapping[ClientKey, ClientForecast]]] = {}

    def of(self, database: str) -> Mapping[ClientKey, ClientForecast]:
        """Forecasts by client. Raises what the lake raises; see `commit_times`."""
        at, known = self._known.get(database, (-KNOWN_SECONDS, {}))
        if time.monotonic() - at < KNOWN_SECONDS:
            return known
        clients = self._control.clients.list(database)
        facts, now = commit_facts(self._control, self._lake, database, clients), self._clock()
        found = {(each.capture_instance, each.name): facts.forecast(each, now) for each in clients}
        self._known[database] = (time.monotonic(), found)
        return found
