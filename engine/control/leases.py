"""Leases: one capture process for a database, ever (error 22903 for a second), and one that cleans it up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import BigInteger, Connection, case, cast, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from engine.control.connections import Connections, database_id
from engine.control.schema import databases, leases
from engine.errors import LeaseLost

DISABLING = "sp_cdc_disable_db"
"""Holder of a lease that keeps agents away while a database is disabled."""


class LeaseOf(StrEnum):
    """What a lease gives the right to: one agent at a time for each, of each database."""

    CAPTURE = "capture"
    """To read the log."""
    CLEANUP = "cleanup"
    STEP = "step"
    """To run the script that a capture job has in the place of its scan."""


HELD_SECONDS = 3
"""How long a transaction that holds a lease may rest between two statements."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run a database's job. ``token`` grows with each holder: an older one changes nothing.

    ``expires`` is by the control server's clock, UTC.
    """

    database: str
    holder: str
    token: int
    expires: datetime
    job_type: LeaseOf = LeaseOf.CAPTURE


@dataclass(frozen=True, slots=True)
class LeaseState:
    """Who last held a lease, and whether it still stands by the control server's clock."""

    database: str
    holder: str
    expires: datetime
    current: bool


_LENGTH = leases.c.seconds * literal(timedelta(seconds=1))
_FROZEN = func.set_config("idle_in_transaction_session_timeout", f"{HELD_SECONDS}s", True)


class LeaseRepository:
    """Leases by database; time is the control server's, so clocks of agents do not matter."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def acquire(
        self, database: str, holder: str, seconds: int, job_type: LeaseOf = LeaseOf.CAPTURE
    ) -> Lease | None:
        """Takes the lease when it is free, expired or the same holder's; None while another holds it.

        Every acquisition has a new, higher token. One that ends later than its length allows, because the
        server's clock was set back, is cut to its length: a holder that lives renews it, and a dead one's
        stands in nobody's way for as long as the clock was set back. Raises UnknownDatabase.
        """
        # One statement that stands alone: an agent that is frozen in the middle holds no lock.
        now = func.clock_timestamp()
        is_ours = or_(leases.c.holder == holder, leases.c.expires <= now)
        with self._connections.read() as connection:
            expires = now + literal(timedelta(seconds=seconds))
            new = insert(leases).values(
                database_id=database_id(connection, database),
                job_type=job_type,
                holder=holder,
                # Above every token of a database that had this name and was forgotten.
                token=cast(func.extract("epoch", now) * 1_000_000, BigInteger),
                seconds=seconds,
                expires=expires,
            )
            statement = new.on_conflict_do_update(
                index_elements=[leases.c.database_id, leases.c.job_type],
                set_={
                    "holder": case((is_ours, holder), else_=leases.c.holder),
                    "token": leases.c.token + case((is_ours, 1), else_=0),
                    "seconds": case((is_ours, seconds), else_=leases.c.seconds),
                    "expires": case((is_ours, expires), else_=now + _LENGTH),
                },
                where=or_(is_ours, leases.c.expires > now + _LENGTH),
            ).returning(leases.c.holder, leases.c.token, leases.c.expires)
            row = connection.execute(statement).one_or_none()
        if row is None or row.holder != holder:
            return None
        return Lease(database, holder, row.token, row.expires, job_type)

    def renew(self, lease: Lease) -> bool:
        """Prolongs a lease by its seconds; False when another has taken it since."""
        return self._set(lease, func.clock_timestamp() + _LENGTH)

    def release(self, lease: Lease) -> None:
        """Gives the lease up; one that is no longer ours stays as it is."""
        self._set(lease, func.clock_timestamp())

    def list(self) -> list[LeaseState]:
        """Every lease to capture there was, by database."""
        current = case((leases.c.expires > func.clock_timestamp(), True), else_=False)
        query = select(databases.c.name, leases.c.holder, leases.c.expires, current).join(databases)
        query = query.where(leases.c.job_type == LeaseOf.CAPTURE).order_by(databases.c.name)
        with self._connections.read() as connection:
            rows = connection.execute(query).all()
        return [LeaseState(*row) for row in rows]

    def holders(self, database: str) -> dict[LeaseOf, str]:
        """Who holds which lease of a database now."""
        query = (
            select(leases.c.job_type, leases.c.holder)
            .join(databases)
            .where(databases.c.name == database, leases.c.expires > func.clock_timestamp())
        )
        with self._connections.read() as connection:
            return {LeaseOf(row.job_type): row.holder for row in connection.execute(query)}

    def held_by_another(self, database: str, holder: str) -> bool:
        """Whether another than ``holder`` has the lease to capture a database now."""
        return self.holders(database).get(LeaseOf.CAPTURE, holder) != holder

    def _set(self, lease: Lease, expires: object) -> bool:
        key = select(databases.c.database_id).where(databases.c.name == lease.database).scalar_subquery()
        mine = (
            leases.c.database_id == key,
            leases.c.job_type == lease.job_type,
            leases.c.token == lease.token,
        )
        with self._connections.read() as connection:
            return connection.execute(update(leases).where(*mine).values(expires=expires)).rowcount == 1


def hold(connection: Connection, database: str, token: int, job_type: LeaseOf = LeaseOf.CAPTURE) -> int:
    """Locks a lease until the caller's transaction ends; returns the database's id.

    A successor waits for that, but not for a process that is frozen in the middle: the server ends its
    transaction. Raises LeaseLost when the token is no longer the lease's.
    """
    lease = connection.execute(
        select(leases.c.database_id, leases.c.token, _FROZEN)
        .join(databases)
        .where(databases.c.name == database, leases.c.job_type == job_type)
        .with_for_update(of=leases)
    ).one_or_none()
    if lease is None or lease.token != token:
        raise LeaseLost(database, token)
    return int(lease.database_id)
