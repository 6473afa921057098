"""The replication slot: bounded peeks that stream, and moving it on."""

from __future__ import annotations

import select
from dataclasses import dataclass

import psycopg
from psycopg import pq, sql
from psycopg.pq.abc import PGresult

from engine.errors import CdcError, LogBroken, LogRecordsNotProcessed, ScanAlreadyRunning, SourceUnreachable
from engine.model.lsn import Lsn
from engine.sources.base import SlotState
from engine.sources.postgres.connection import Connection, lsn_of, position_text, text_of, unreachable
from engine.sources.postgres.disk import free_bytes
from engine.sources.postgres.pgoutput import MessageBlock, frame

_PEEK = """
COPY (SELECT lsn, data FROM pg_catalog.pg_logical_slot_peek_binary_changes({slot}, {upto}, {changes},
    'proto_version', '1', 'publication_names', {publication}, 'binary', {binary}, 'messages', 'true'))
TO STDOUT (FORMAT binary)
"""

RESTART_LAG = 8 * 1024 * 1024
"""Bytes of log, decoded already, that a peek may decode again."""

_STATE = """
SELECT s.confirmed_flush_lsn::text, s.restart_lsn::text,
       greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn), 0)::bigint,
       s.wal_status, s.safe_wal_size, s.active_pid,
       nullif(pg_size_bytes(current_setting('max_slot_wal_keep_size')), -1),
       CASE WHEN pg_has_role('pg_read_all_settings', 'USAGE') THEN current_setting('data_directory') END,
       extract(epoch FROM pg_postmaster_start_time())::float8,
       ARRAY(SELECT DISTINCT blocker FROM pg_stat_activity a, unnest(pg_blocking_pids(a.pid)) blocker
             WHERE a.datname = current_database() AND a.wait_event_type = 'Lock'
             AND a.application_name LIKE 'highwater log%%' ORDER BY blocker)
FROM pg_replication_slots s WHERE s.slot_name = %s AND s.database = current_database()
"""


_GIVEN_AGAIN = """
WITH given AS (
    SELECT get_byte(data, 0) AS kind, substring(data FROM 2 FOR 8) AS place
    FROM pg_catalog.pg_logical_slot_peek_binary_changes(%(slot)s, %(upto)s::pg_lsn, NULL,
        'proto_version', '1', 'publication_names', %(publication)s, 'messages', 'true')
    WHERE get_byte(data, 0) IN (ascii('B'), ascii('I'), ascii('U'), ascii('D'))
), transactions AS (
    SELECT kind, place, lead(kind, 1, kind) OVER () <> ascii('B') AS has_rows FROM given
)
SELECT count(*) FILTER (WHERE place = %(published)s),
       min(place) FILTER (WHERE has_rows AND place > %(after)s AND place < %(before)s)
FROM transactions WHERE kind = ascii('B')
"""


@dataclass(frozen=True, slots=True)
class SlotName:
    """A slot, the publication read through it, and the database name that errors speak of."""

    slot: str
    publication: str
    database: str


class Peek:
    """The messages of one peek, in blocks, as the server sends them.

    The server decodes all of it first (and spills to its disk), then gives up the slot, so that it may
    be moved on while rows are still being taken. Only what has been taken is in our memory.
    """

    def __init__(self, connection: Connection, name: SlotName, upto: int, changes: int, binary: bool) -> None:
        """Messages of transactions committed before ``upto``; ends with the one that makes ``changes`` full.

        Raises SourceUnreachable; the server's refusals, now or while blocks are taken, are for `log_error`.
        """
        self.upto = upto
        self.changes = changes
        self.rows = 0
        self.finished = False
        self._name = name
        self._pg = connection.pgconn
        query = sql.SQL(_PEEK).format(
            slot=sql.Literal(name.slot),
            upto=sql.Literal(position_text(upto)),
            changes=sql.Literal(changes),
            publication=sql.Literal(_quoted_name(name.publication)),
            binary=sql.Literal("true" if binary else "false"),
        )
        with unreachable(name.database):
            self._pg.send_query(query.as_bytes(connection))
            self._answered()
            result = self._pg.get_result()
            if result is not None and result.status != pq.ExecStatus.COPY_OUT:
                raise self._refused(result)

    @property
    def complete(self) -> bool:
        """Whether the peek came to ``upto`` rather than to its bound; known once ``finished``."""
        return self.finished and self.rows < self.changes

    def block(self, size: int) -> MessageBlock | None:
        """The next messages, about ``size`` bytes; None after the last."""
        while not self.finished:
            with unreachable(self._name.database):
                block = frame(self._take(size))
            if len(block):
                self.rows += len(block)
                return block
        return None

    def _take(self, size: int) -> list[memoryview | bytes]:
        rows: list[memoryview | bytes] = []
        taken, take, keep = 0, self._pg.get_copy_data, rows.append
        while taken < size:
            length, data = take(1)
            if length > 0:
                keep(data)
                taken += length
            elif length == 0:
                self._wait()
            else:
                self._finish()
                break
        return rows

    def _answered(self) -> None:
        while self._pg.flush():
            select.select([], [self._pg.socket], [])
        while self._pg.is_busy():
            self._wait()

    def _wait(self) -> None:
        # Blocks without holding the interpreter lock, unlike libpq's own waiting.
        select.select([self._pg.socket], [], [])
        self._pg.consume_input()

    def _finish(self) -> None:
        self._answered()
        while (result := self._pg.get_result()) is not None:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                raise self._refused(result)
            self._answered()
        self.finished = True

    def _refused(self, result: PGresult) -> Exception:
        while self._pg.get_result() is not None:
            pass
        self.finished = True
        return psycopg.errors.error_from_result(result)


# The slot or the publication is gone; the slot was invalidated; its WAL is no longer there.
_BROKEN = (
    psycopg.errors.UndefinedObject,
    psycopg.errors.ObjectNotInPrerequisiteState,
    psycopg.errors.UndefinedFile,
)

# Its disk is full, its memory used up: it is there, and of no more use than if it were not.
_SHORT_OF_RESOURCES = "53"


def log_error(error: psycopg.Error, database: str) -> CdcError:
    """What the server's refusal means for the log."""
    words = text_of(error).rstrip(".")
    if isinstance(error, psycopg.errors.ObjectInUse):
        return ScanAlreadyRunning(words, database)
    if isinstance(error, _BROKEN):
        return LogBroken(database, words)
    if (error.sqlstate or "").startswith(_SHORT_OF_RESOURCES):
        return SourceUnreachable(database, words)
    return LogRecordsNotProcessed(words)


def _place(lsn: Lsn) -> bytes:
    """As pgoutput writes it."""
    return lsn.position.to_bytes(8, "big")


def _quoted_name(name: str) -> str:
    """A name as SplitIdentifierString reads it."""
    return '"' + name.replace('"', '""') + '"'


class Slot:
    """State of a slot and the ways to change it, over a connection that is not busy with a peek."""

    def __init__(self, connection: Connection, name: SlotName) -> None:
        self._connection = connection
        self._name = name

    def state(self) -> SlotState:
        """Raises LogBroken when there is no such slot."""
        row = self._connection.execute(_STATE, [self._name.slot]).fetchone()
        if row is None:
            raise LogBroken(self._name.database, f"replication slot '{self._name.slot}' does not exist")
        confirmed, restart, retained, wal_status, safe_wal_size, active_pid, limit, *server = row
        folder, started, blockers = server
        return SlotState(
            slot=self._name.slot,
            confirmed=lsn_of(confirmed) if confirmed else Lsn.ZERO,
            restart=lsn_of(restart) if restart else Lsn.ZERO,
            retained_bytes=retained or 0,
            wal_status=wal_status or "lost",
            safe_wal_size=safe_wal_size,
            active_pid=active_pid,
            limit_bytes=limit,
            disk_free_bytes=free_bytes(folder, started),
            blocked_by=tuple(blockers),
        )

    def idle_at(self) -> int | None:
        """The position from which it gives changes; None when it is gone or somebody reads it."""
        row = self._connection.execute(
            "SELECT (confirmed_flush_lsn - '0/0')::bigint FROM pg_replication_slots"
            " WHERE slot_name = %s AND database = current_database() AND active_pid IS NULL",
            [self._name.slot],
        ).fetchone()
        return None if row is None else row[0]

    def check_history(self, after: Lsn, published: Lsn | None, scanned: Lsn) -> None:
        """What the slot gives again must be what it gave: the published commit, no rows after it.

        after, scanned: between these there were no rows. published: None where it is not given again. Raises
        LogBroken.
        """
        row = self._connection.execute(
            _GIVEN_AGAIN,
            {
                "slot": self._name.slot,
                "publication": _quoted_name(self._name.publication),
                # One beyond: a commit may begin where the record before it ends, which would end the peek.
                "upto": position_text(scanned.position + 1),
                "published": None if published is None else _place(published),
                "after": _place(after),
                "before": _place(scanned),
            },
        ).fetchone()
        assert row is not None
        met, unknown = row
        words = "the source was put back to an earlier state and has gone on from there"
        if published is not None and not met:
            raise LogBroken(self._name.database, f"{words}: the commit at {published} is not in its log")
        if unknown is not None:
            place = Lsn.at(int.from_bytes(unknown, "big"))
            raise LogBroken(self._name.database, f"{words}: the commit at {place} is new below {scanned}")

    def advance(self, upto: int) -> None:
        """Moves the slot to ``upto`` unless it is there or farther already; never beyond what is durable."""
        self._connection.execute(
            "SELECT pg_replication_slot_advance("
            "slot_name, least(%(upto)s::pg_lsn, pg_current_wal_flush_lsn())) "
            "FROM pg_replication_slots WHERE slot_name = %(slot)s AND confirmed_flush_lsn < "
            "least(%(upto)s::pg_lsn, pg_current_wal_flush_lsn())",
            {"upto": position_text(upto), "slot": self._name.slot},
        )

    def let_restart_follow(self) -> int:
        """Writes a word into the log from which decoding can begin, where the slot lags far behind it.

        Each peek decodes from the last such word before the confirmed position; the server itself writes
        one every 15 seconds. Nothing is written where the role may not, or before PostgreSQL 16. A
        transaction that stays open holds the place back all the same. Returns the position up to which
        that has been seen to.
        """
        row = self._connection.execute(
            "SELECT (restart_lsn - '0/0')::bigint, (confirmed_flush_lsn - '0/0')::bigint "
            "FROM pg_replication_slots WHERE slot_name = %s",
            [self._name.slot],
        ).fetchone()
        restart, confirmed = row or (0, 0)
        if confirmed - restart <= RESTART_LAG:
            return int(restart)
        allowed = self._connection.execute(
            "SELECT has_function_privilege(p.oid, 'EXECUTE') FROM pg_proc p "
            "WHERE p.proname = 'pg_log_standby_snapshot' AND p.pronamespace = 'pg_catalog'::regnamespace"
        ).fetchone()
        if allowed is not None and allowed[0]:
            self._connection.execute("SELECT pg_log_standby_snapshot()")
        return int(confirmed)
