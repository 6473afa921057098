"""Clients: consumers that cleanup waits for, and how far they have come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.model.lsn import Lsn

EXPIRES_AFTER = timedelta(days=7)
"""How long a client may be silent unless it is told otherwise: two retentions of a cleanup job and a day."""


@dataclass(frozen=True, slots=True)
class Client:
    """One consumer of one capture instance. Times are UTC.

    acknowledged_lsn: it has everything up to here, itself included; at first the low endpoint that the
    instance had, None where it had none yet. acknowledged_at: its last sign of life. expires_after: how
    long it may be silent; None for ever. earlier_lsn, earlier_at: an acknowledgement some time before, to
    tell its pace. held_lsn: where cleanup would have liked to move the low endpoint when it last met this
    client; held_since: since when it has been kept from it.
    """

    database: str
    capture_instance: str
    name: str
    acknowledged_lsn: Lsn | None
    acknowledged_at: datetime
    registered_at: datetime
    expires_after: timedelta | None
    earlier_lsn: Lsn | None
    earlier_at: datetime
    held_lsn: Lsn | None = None
    held_since: datetime | None = None

    @property
    def expires_at(self) -> datetime | None:
        """From when on it counts as stale, unless it is heard of before; None for never."""
        return None if self.expires_after is None else self.acknowledged_at + self.expires_after

    def is_expired(self, now: datetime) -> bool:
        """Whether it has been silent for too long."""
        return self.expires_at is not None and self.expires_at <= now

    @property
    def holds_cleanup(self) -> bool:
        """Whether cleanup, when it last ran, would have gone further without it."""
        return self.held_lsn is not None


@dataclass(frozen=True, slots=True)
class HeldInstance:
    """A low endpoint that stays behind: ``client`` is the slowest of the instance's clients."""

    capture_instance: str
    client: str
    acknowledged_lsn: Lsn | None
    low_endpoint: Lsn | None

    def __str__(self) -> str:
        reached = "nothing yet" if self.acknowledged_lsn is None else f"what is up to {self.acknowledged_lsn}"
        return f"{self.capture_instance} waits for client '{self.client}', which has acknowledged {reached}."


@dataclass(frozen=True, slots=True)
class ClientForecast:
    """What becomes of a client if all goes on as it does. UTC; None where it does not come to that.

    passed_at: when cleanup by retention would have to wait for it; in the past where it waits already.
    expires_at: when it is dropped, unless it is heard of before.
    """

    passed_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class ClientLag:
    """How far a client is behind what is published.

    lag_bytes: of the source's log; lag_rows: of the change table; acknowledged_time: when the
    acknowledged transaction was committed (or the first one after it that is known); lag_seconds: from there
    to the last captured commit. None where it is not known, for lack of an acknowledgement.
    """

    client: Client
    lag_bytes: int | None
    lag_rows: int | None
    lag_seconds: float | None
    acknowledged_time: datetime | None
    forecast: ClientForecast
