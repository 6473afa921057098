"""Clients of capture instances: cleanup never passes the slowest one. Ours; the original has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from engine.control import ControlDatabase
from engine.errors import (
    ClientNameInvalid,
    ClientUnknown,
    ExpiryInvalid,
    ObjectDenied,
    ParameterEmpty,
)
from engine.lake.tables import Lake
from engine.model.client import EXPIRES_AFTER, Client, ClientLag
from engine.model.lsn import Lsn
from engine.monitoring.client_forecasts import CommitFacts, commit_facts
from engine.procedures.databases import Databases
from engine.procedures.read_rule import ReadRule

MAX_NAME = 128
LONGEST_SILENCE = timedelta(days=36_500)


class Clients:
    """Registers clients, takes their acknowledgements, tells how far they are behind."""

    def __init__(
        self, control: ControlDatabase, databases: Databases, lake: Lake, clock: Callable[[], datetime]
    ) -> None:
        self._control = control
        self._databases = databases
        self._lake = lake
        self._clock = clock
        self._readers = ReadRule(databases)

    def register(
        self,
        database: str,
        name: str,
        capture_instance: str,
        expires_after: timedelta | None = EXPIRES_AFTER,
    ) -> Client:
        """Begins at the low endpoint; one that is there keeps its place and gets the limit given."""
        source = self._databases.enabled(database).name
        _check_name(name)
        if not capture_instance:
            raise ParameterEmpty("@capture_instance")
        if expires_after is not None and not timedelta(seconds=1) <= expires_after <= LONGEST_SILENCE:
            raise ExpiryInvalid(expires_after)
        client = self._control.clients.register(source, capture_instance, name, expires_after, self._clock())
        if client is None:
            raise ObjectDenied
        return client

    def acknowledge(
        self, database: str, name: str, capture_instance: str, lsn: Lsn | None, principal: str | None
    ) -> Client:
        """The client has everything up to ``lsn``; whoever may read the instance may say so."""
        source = self._databases.enabled(database).name
        instance = self._control.instances.get(source, capture_instance)
        if instance is None or not self._readers.allows(instance, principal):
            raise ObjectDenied
        if lsn is None:
            raise ParameterEmpty("@lsn")
        return self._control.clients.acknowledge(source, capture_instance, name, lsn, self._clock())

    def drop(self, database: str, name: str, capture_instance: str) -> None:
        """Cleanup no longer waits for it."""
        source = self._databases.get(database).name
        if not self._control.clients.drop(source, capture_instance, name):
            raise ClientUnknown(name, capture_instance)

    def list(self, database: str, capture_instance: str | None = None) -> Sequence[Client]:
        """Clients as they were last heard of."""
        return self._control.clients.list(self._databases.get(database).name, capture_instance)

    def lags(self, database: str, capture_instance: str | None = None) -> Sequence[ClientLag]:
        """How far each is behind, and what becomes of it."""
        source = self._databases.get(database).name
        clients = self._control.clients.list(source, capture_instance)
        facts = commit_facts(self._control, self._lake, source, clients)
        return [self._lag(client, facts) for client in clients]

    def _lag(self, client: Client, facts: CommitFacts) -> ClientLag:
        lsn, high = client.acknowledged_lsn, facts.high
        time, last = facts.time(lsn), facts.time(high)
        ahead = facts.forecast(client, self._clock())
        if lsn is None or high is None:
            return ClientLag(client, None, None, None, time, ahead)
        seconds = None if time is None or last is None else max(0.0, (last - time).total_seconds())
        behind = max(0, high.position - lsn.position)
        return ClientLag(client, behind, self._rows(client, lsn, high), seconds, time, ahead)

    def _rows(self, client: Client, lsn: Lsn, high: Lsn) -> int | None:
        instance = self._control.instances.get(client.database, client.capture_instance)
        from engine.query.client_lag import rows_after  # imports Arrow

        return None if instance is None else rows_after(self._lake, instance, lsn, high)


def _check_name(name: str) -> None:
    if not name or len(name) > MAX_NAME or name != name.strip() or not name.isprintable():
        raise ClientNameInvalid(name)
