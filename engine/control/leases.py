"""Leases: one capture process for a database, ever (error 22903 for a second)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import BigInteger, case, cast, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from engine.control.connections import Connections, database_id
from engine.control.schema import databases, leases

DISABLING = "sp_cdc_disable_db"
"""Holder of a lease that keeps agents away while a database is disabled."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to capture a database. ``token`` grows with each holder: an older one publishes nothing.

    ``expires`` is by the control server's clock, UTC.
    """

    database: str
    holder: str
    token: int
    expires: datetime


@dataclass(frozen=True, slots=True)
class LeaseState:
    """Who last held a lease, and whether it still stands by the control server's clock."""

    database: str
    holder: str
    expires: datetime
    current: bool


class LeaseRepository:
    """Leases by database; time is the control server's, so clocks of agents do not matter."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def acquire(self, database: str, holder: str, seconds: int) -> Lease | None:
        """Takes the lease when it is free, expired or the same holder's; None while another holds it.

        Every acquisition has a new, higher token. Raises UnknownDatabase.
        """
        with self._connections.begin() as connection:
            expires = func.clock_timestamp() + literal(timedelta(seconds=seconds))
            new = insert(leases).values(
                database_id=database_id(connection, database),
                holder=holder,
                # Above every token of a database that had this name and was forgotten.
                token=cast(func.extract("epoch", func.clock_timestamp()) * 1_000_000, BigInteger),
                seconds=seconds,
                expires=expires,
            )
            statement = new.on_conflict_do_update(
                index_elements=[leases.c.database_id],
                set_={
                    "holder": holder,
                    "token": leases.c.token + 1,
                    "seconds": seconds,
                    "expires": expires,
                },
                where=or_(leases.c.holder == holder, leases.c.expires <= func.clock_timestamp()),
            ).returning(leases.c.token, leases.c.expires)
            row = connection.execute(statement).one_or_none()
        return None if row is None else Lease(database, holder, row.token, row.expires)

    def renew(self, lease: Lease) -> bool:
        """Prolongs a lease by its seconds; False when another has taken it since."""
        length = leases.c.seconds * literal(timedelta(seconds=1))
        return self._set(lease, func.clock_timestamp() + length)

    def release(self, lease: Lease) -> None:
        """Gives the lease up; one that is no longer ours stays as it is."""
        self._set(lease, func.clock_timestamp())

    def list(self) -> list[LeaseState]:
        """Every lease there was, by database."""
        current = case((leases.c.expires > func.clock_timestamp(), True), else_=False)
        query = select(databases.c.name, leases.c.holder, leases.c.expires, current).join(databases)
        with self._connections.read() as connection:
            rows = connection.execute(query.order_by(databases.c.name)).all()
        return [LeaseState(*row) for row in rows]

    def _set(self, lease: Lease, expires: object) -> bool:
        key = select(databases.c.database_id).where(databases.c.name == lease.database).scalar_subquery()
        mine = (leases.c.database_id == key, leases.c.token == lease.token)
        with self._connections.begin() as connection:
            return connection.execute(update(leases).where(*mine).values(expires=expires)).rowcount == 1
