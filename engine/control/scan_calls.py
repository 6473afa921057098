"""Calls of sys.sp_cdc_scan: whoever calls writes a row, and an agent scans, for it alone has Spark.

A call lives as long as its caller: the row counts only while the caller's session holds the advisory
lock with the row's number, which the server releases at once when that process dies.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Row,
    Select,
    delete,
    insert,
    literal_column,
    not_,
    select,
    update,
)

from engine.control.connections import Connections, database_id
from engine.control.notifications import JOBS, REPORTED, notify
from engine.control.schema import databases, scan_calls
from engine.errors import CdcError, ControlUnreachable
from engine.model.job import CaptureParameters
from engine.model.scan_call import ReportedError, ScanCall

_LOCK_CLASS = 0x4857_7363  # "HWsc"
_CALLER_LIVES: ColumnElement[bool] = literal_column(
    "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted"
    f" AND classid = {_LOCK_CLASS} AND objid = dbo.scan_calls.call_id"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))",
    Boolean,
)


class ScanCallRepository:
    """Calls as rows. A new or withdrawn one notifies JOBS, an ended one REPORTED."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @contextmanager
    def placed(self, database: str, parameters: CaptureParameters) -> Iterator[int]:
        """Places a call for the length of the ``with``; gives its number. Raises UnknownDatabase."""
        with closing(self._connections.connect(autocommit=True)) as caller:
            [number] = caller.execute("SELECT nextval('dbo.scan_calls_call_id_seq')").fetchone() or (0,)
            # Before the row is seen: one without its lock is taken for abandoned.
            caller.execute("SELECT pg_advisory_lock(%s, %s::integer)", (_LOCK_CLASS, number))
            self._insert(number, database, parameters)
            try:
                yield number
            finally:
                # A server that is away has released the lock, and an agent clears the row away.
                with suppress(ControlUnreachable):
                    self._delete(number, database)

    def get(self, call_id: int) -> ScanCall | None:
        """One call, whether or not its caller lives."""
        with self._connections.read() as connection:
            row = connection.execute(_calls().where(scan_calls.c.call_id == call_id)).one_or_none()
        return None if row is None else _call(row)

    def list(self) -> list[ScanCall]:
        """Calls whose callers live, in the order of calling."""
        with self._connections.read() as connection:
            rows = connection.execute(_calls().where(_CALLER_LIVES).order_by(scan_calls.c.call_id))
            return [_call(row) for row in rows]

    def claim(self, call_id: int) -> bool:
        """Takes a call for an agent; False when another has it."""
        mine = (scan_calls.c.call_id == call_id, scan_calls.c.claimed.is_(False))
        with self._connections.begin() as connection:
            return connection.execute(update(scan_calls).where(*mine).values(claimed=True)).rowcount == 1

    def withdraw(self, call: ScanCall) -> None:
        """Asks the agent to end the scan after its cycle."""
        with self._connections.begin() as connection:
            mine = scan_calls.c.call_id == call.call_id
            connection.execute(update(scan_calls).where(mine).values(wanted=False))
            notify(connection, JOBS, call.database)

    def end(self, call: ScanCall, error: CdcError | None) -> None:
        """Says that the scan is over, and what ended it. A call whose caller has gone is no error."""
        said: dict[str, object] = {"ended": True}
        if error is not None:
            said |= {
                "error_number": error.number,
                "error_severity": error.severity,
                "error_state": error.state,
                "error_message": str(error),
            }
        with self._connections.begin() as connection:
            mine = scan_calls.c.call_id == call.call_id
            connection.execute(update(scan_calls).where(mine).values(said))
            notify(connection, REPORTED, call.database)

    def forget_abandoned(self) -> None:
        """Deletes the rows that callers left behind when they died."""
        with self._connections.begin() as connection:
            connection.execute(delete(scan_calls).where(not_(_CALLER_LIVES)))

    def _insert(self, call_id: int, database: str, parameters: CaptureParameters) -> None:
        with self._connections.begin() as connection:
            values = {
                "call_id": call_id,
                "database_id": database_id(connection, database),
                **asdict(parameters),
            }
            connection.execute(insert(scan_calls).values(values))
            notify(connection, JOBS, database)

    def _delete(self, call_id: int, database: str) -> None:
        with self._connections.begin() as connection:
            connection.execute(delete(scan_calls).where(scan_calls.c.call_id == call_id))
            notify(connection, JOBS, database)


def _calls() -> Select[Any]:
    return select(scan_calls, databases.c.name).join(databases)


def _call(row: Row[Any]) -> ScanCall:
    error = None
    if row.error_number is not None:
        error = ReportedError(row.error_number, row.error_severity, row.error_state, row.error_message)
    return ScanCall(
        call_id=row.call_id,
        database=row.name,
        parameters=CaptureParameters(row.maxtrans, row.maxscans, row.continuous, row.pollinginterval),
        wanted=row.wanted,
        claimed=row.claimed,
        ended=row.ended,
        error=error,
    )
