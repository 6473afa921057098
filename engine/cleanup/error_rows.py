"""What cleanup leaves in sys.dm_cdc_errors: rows that belong to no scan session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from engine.control import ControlDatabase
from engine.errors import CdcError, ClientDropped
from engine.model.client import Client
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanError


def error_row(error: CdcError, low: Lsn, now: datetime) -> ScanError:
    """A row for an error that was met on the way to low endpoint ``low``."""
    return ScanError(
        session_id=0,
        phase_number=0,
        entry_time=now,
        error_number=error.number,
        error_severity=error.severity,
        error_state=error.state,
        error_message=str(error),
        start_lsn=low.groups,
        begin_lsn=Lsn.ZERO.groups,
        sequence_value=Lsn.ZERO.groups,
    )


def drop_stale(control: ControlDatabase, database: str, now: datetime) -> Sequence[Client]:
    """Drops clients that were silent for longer than their limit, each with an error row (50084)."""

    def told(client: Client) -> ScanError:
        words = f"nothing was heard of it since {client.acknowledged_at:%Y-%m-%d %H:%M:%S} UTC."
        return client_row(client, words, now)

    return control.clients.drop_stale(database, now, told)


def client_row(client: Client, why: str, now: datetime) -> ScanError:
    """The row for a client that is dropped and did not ask for it; ``why`` is a sentence."""
    reached = client.acknowledged_lsn
    error = ClientDropped(client.name, client.capture_instance, why, reached or "nothing")
    return error_row(error, reached or Lsn.ZERO, now)
