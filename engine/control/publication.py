"""Publishing: the one transaction that makes a scan's changes visible in all change tables at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func
from sqlalchemy.dialects.postgresql import insert

from engine.control.connections import Connections
from engine.control.ddl_history import record_ddl
from engine.control.instances import alter_instance, end_instances, recognise_instance
from engine.control.leases import hold
from engine.control.notifications import PUBLISHED, notify
from engine.control.schema import watermarks
from engine.control.sessions import save_session
from engine.model.capture_instance import CaptureInstance
from engine.model.ddl_history import DdlEntry
from engine.model.lsn import Lsn
from engine.model.scan_session import ScanSession
from engine.sources.base import LogIdentity


@dataclass(frozen=True, slots=True)
class Publication:
    """What a scan cycle publishes. ``token`` is the lease's; None keeps the value there is.

    high, checkpoint, scanned, last_commit_time: as in `Watermarks`.
    recognised: instances met in the log, with start_lsn; rows that are missing are inserted.
    ended: object ids of instances whose end was met in the log; their folders are gone already.
    altered: instances whose source table was altered, as they are now; ddl: rows of cdc.ddl_history.
    session: the scan session as it stands now.
    """

    database: str
    token: int
    high: Lsn | None
    checkpoint: Lsn | None
    scanned: Lsn | None
    last_commit_time: datetime | None
    identity: LogIdentity
    recognised: tuple[CaptureInstance, ...] = ()
    ended: tuple[int, ...] = ()
    altered: tuple[CaptureInstance, ...] = ()
    ddl: tuple[DdlEntry, ...] = ()
    session: ScanSession | None = None


def publish(connections: Connections, publication: Publication) -> None:
    """Commits a publication and notifies PUBLISHED.

    Raises LeaseLost when the token is no longer the lease's: then nothing has changed. The row lock
    keeps a successor waiting until this transaction has ended.
    """
    with connections.begin() as connection:
        key = hold(connection, publication.database, publication.token)
        for instance in publication.recognised:
            recognise_instance(connection, key, instance)
        for instance in publication.altered:
            alter_instance(connection, instance)
        record_ddl(connection, publication.ddl)
        if publication.ended:
            end_instances(connection, key, publication.ended)
        _raise_watermarks(connection, key, publication)
        if publication.session is not None:
            save_session(connection, key, publication.session)
        notify(connection, PUBLISHED, publication.database)


def _raise_watermarks(connection: Connection, key: int, publication: Publication) -> None:
    values = {
        "high": publication.high,
        "checkpoint": publication.checkpoint,
        "scanned": publication.scanned,
        "last_commit_time": publication.last_commit_time,
    }
    given: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    given |= {
        "published_at": func.clock_timestamp(),
        "system_identifier": publication.identity.system_identifier,
        "timeline": publication.identity.timeline,
        "slot": publication.identity.slot,
    }
    statement = insert(watermarks).values(database_id=key, **given)
    connection.execute(statement.on_conflict_do_update(index_elements=[watermarks.c.database_id], set_=given))
