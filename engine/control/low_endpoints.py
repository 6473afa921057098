"""Low endpoints of capture instances, moved by cleanup and never past a client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection, func, select, update

from engine.control.clients import clients_of, forget
from engine.control.connections import Connections
from engine.control.leases import Lease, hold
from engine.control.schema import change_tables, clients
from engine.errors import LowWatermarkPassesClient
from engine.model.client import Client, HeldInstance
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanError

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class RaisedEndpoints:
    """How many low endpoints moved, and those that clients keep behind."""

    raised: int
    held: tuple[HeldInstance, ...]


class LowEndpointRepository:
    """``start_lsn`` of cdc.change_tables: it goes up, never down.

    Rows are locked before clients are looked at: a client that registers meanwhile begins where the low
    endpoint is afterwards.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def raise_all(
        self, lease: Lease, low: Lsn, now: datetime, rounded: Mapping[Lsn, Lsn | None] | None = None
    ) -> RaisedEndpoints:
        """Moves every low endpoint of a database that is below ``low`` up to it, in one transaction.

        One whose slowest client has come less far moves to the commit LSN that ``rounded`` has for what
        that client has acknowledged: the last one up to there; it stays where ``rounded`` has none.
        Instances that have not been met in the log have no low endpoint. Raises LeaseLost; then nothing
        has moved.
        """
        with self._connections.begin() as connection:
            key = hold(connection, lease.database, lease.token, lease.job_type)
            starts = _locked(connection, change_tables.c.database_id == key)
            slowest = slowest_of(clients_of(connection, key))
            raised, held = 0, []
            for object_id, start in starts.items():
                target, waiting = low_endpoint_after(start, low, slowest.get(object_id), rounded or {})
                if waiting is not None:
                    held.append(waiting)
                raised += _raise(connection, object_id, target)
            _note(connection, tuple(starts), low, now)
        return RaisedEndpoints(raised, tuple(sorted(held, key=lambda each: each.capture_instance)))

    def raise_one(
        self, object_id: int, low: Lsn, passed: Callable[[Client], ScanError] | None = None
    ) -> None:
        """Moves one low endpoint up to ``low``; nothing where it is higher, or the instance is gone.

        passed: clients that have come less far are dropped, each with the error row that it makes. Without
        it LowWatermarkPassesClient is raised, and nothing has moved.
        """
        with self._connections.begin() as connection:
            starts = _locked(connection, change_tables.c.object_id == object_id)
            if object_id not in starts:
                return
            query = select(change_tables.c.database_id).where(change_tables.c.object_id == object_id)
            key = connection.execute(query).scalar_one()
            for of, client in clients_of(connection, key):
                if of == object_id and (client.acknowledged_lsn or Lsn.ZERO) < low:
                    if passed is None:
                        raise LowWatermarkPassesClient(
                            low, client.name, client.capture_instance, client.acknowledged_lsn
                        )
                    forget(connection, key, object_id, client.name, passed(client))
            _raise(connection, object_id, low)


def _locked(connection: Connection, which: object) -> dict[int, Lsn]:
    """Low endpoints by object id, none of which anybody moves before the transaction ends."""
    has_one = change_tables.c.start_lsn.is_not(None)
    query = select(change_tables.c.object_id, change_tables.c.start_lsn).where(which, has_one)  # type: ignore[arg-type]
    rows = connection.execute(query.order_by(change_tables.c.object_id).with_for_update())
    return {row.object_id: row.start_lsn for row in rows}


def slowest_of(found: Iterable[tuple[Key, Client]]) -> dict[Key, Client]:
    """Of each instance, the client that has come least far; by what instances are told apart by."""
    slowest: dict[Key, Client] = {}
    for instance, client in found:
        known = slowest.get(instance)
        if known is None or (client.acknowledged_lsn or Lsn.ZERO) < (known.acknowledged_lsn or Lsn.ZERO):
            slowest[instance] = client
    return slowest


def low_endpoint_after(
    start: Lsn, low: Lsn, slowest: Client | None, rounded: Mapping[Lsn, Lsn | None]
) -> tuple[Lsn, HeldInstance | None]:
    """Where a low endpoint at ``start`` goes by a cleanup up to ``low``, and who keeps it behind. Pure.

    rounded: as in `LowEndpointRepository.raise_all`.
    """
    reached = Lsn.MAX if slowest is None else slowest.acknowledged_lsn or Lsn.ZERO
    if slowest is None or reached >= low:
        return max(start, low), None
    target = max(start, rounded.get(reached) or start)
    return target, HeldInstance(slowest.capture_instance, slowest.name, slowest.acknowledged_lsn, target)


def _raise(connection: Connection, object_id: int, low: Lsn) -> int:
    mine = (change_tables.c.object_id == object_id) & (change_tables.c.start_lsn < low)
    return connection.execute(update(change_tables).where(mine).values(start_lsn=low)).rowcount


def _note(connection: Connection, object_ids: Sequence[int], low: Lsn, now: datetime) -> None:
    """Each client's row says whether cleanup waits for it, and since when."""
    of = clients.c.object_id.in_(object_ids)
    behind = clients.c.acknowledged_lsn.is_(None) | (clients.c.acknowledged_lsn < low)
    since = func.coalesce(clients.c.held_since, now)
    connection.execute(update(clients).where(of, behind).values(held_lsn=low, held_since=since))
    connection.execute(update(clients).where(of, ~behind).values(held_lsn=None, held_since=None))
