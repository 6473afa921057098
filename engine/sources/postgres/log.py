"""The log of a PostgreSQL database, read through a logical replication slot of pgoutput."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psycopg
import structlog

from engine.errors import LogBroken, LogRecordsNotProcessed, SourceUnreachable
from engine.model.lsn import Lsn
from engine.sources.base import ColumnNumbers, LogIdentity, LogPiece, ReadLimit, SlotState
from engine.sources.postgres.connection import (
    Connection,
    any_bytes,
    configure,
    connect,
    is_unencoded,
    text_of,
    unreachable,
)
from engine.sources.postgres.log_messages import WRITE_MARK
from engine.sources.postgres.names import DDL_TRIGGER
from engine.sources.postgres.pieces import PieceDecoder, ShapedBlock, Shapes, understood
from engine.sources.postgres.record_end import LogPages
from engine.sources.postgres.server_values import PostgresValues
from engine.sources.postgres.slot import RESTART_LAG, Peek, Slot, SlotName, log_error
from engine.sources.postgres.transactions import TransactionMarker
from engine.sources.postgres.types import TypeCatalog
from engine.sources.postgres.words import Words

_log = structlog.get_logger(__name__)

CHANGES_A_PEEK = 500_000
"""Messages that one peek decodes at most (to a transaction's end): about a second of the server's time."""

_SCAN_SETTINGS = {"work_mem": "64MB", "logical_decoding_work_mem": "128MB"}


class PostgresLog:
    """`LogSource` over one slot. Two connections: one streams a peek, one asks and advances."""

    def __init__(self, dsn: str, slot: str, publication: str, database: str | None = None) -> None:
        """``database`` is the name that errors and log lines speak of; the DSN's own where it is None."""
        name = database or str(psycopg.conninfo.conninfo_to_dict(dsn).get("dbname", dsn))
        self._dsn = dsn
        self._name = SlotName(slot, publication, name)
        self._control_connection: Connection | None = None
        self._stream_connection: Connection | None = None
        self._reading: _Reading | None = None
        self._exhausted = False
        self._binary = True
        self._texts_upto: int | None = None
        self._commits: set[int] = set()
        self._rows_unconfirmed = 0
        self._restart_cared_for = 0
        self._slot_at: int | None = None

    # Facts

    def identity(self) -> LogIdentity:
        """The log's identity now. Raises SourceUnreachable, LogBroken when the slot is gone or lost."""
        with self._reaching():
            state = self._slot().state()
            if state.wal_status == "lost":
                raise LogBroken(self._name.database, f"replication slot '{state.slot}' has lost WAL it needs")
            row = (
                self._control()
                .execute(
                    "SELECT system_identifier::text, "
                    "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int "
                    "FROM pg_control_system()"
                )
                .fetchone()
            )
        assert row is not None
        return LogIdentity(system_identifier=row[0], timeline=row[1], slot=state.slot)

    def log_end(self) -> Lsn:
        """The end of what is durable in the log now, in whole records: above all that is committed.

        Where the server's own position may lie within a record, a mark of ours makes durable what is there.
        """
        with self._reaching():
            inserted, flushed = self._positions()
            if self._pages.ends_record(flushed, inserted):
                return Lsn.at(flushed)
            self._control().execute(WRITE_MARK)
            inserted_after, flushed = self._positions()
            return Lsn.at(flushed if self._pages.ends_record(flushed, inserted_after) else inserted)

    def has_grown(self, since: Lsn) -> bool:
        """Whether there is anything in the log, durable, beyond a `log_end` of before."""
        with self._reaching():
            return self._positions()[1] > since.position

    def check_goes_on(self, checkpoint: Lsn | None, scanned: Lsn) -> None:
        """Raises LogBroken unless the log is the one that was read up to ``scanned``, and gives all since.

        checkpoint: the last commit that was published. A source that was put back to an earlier state, with
        its slot, grows beyond both positions again sooner or later, but with other transactions: where the
        slot gives that stretch once more, the published commit must be in it, and no other change after it.
        """
        with self._reaching(), any_bytes(self._control()):
            confirmed = self._slot().state().confirmed
            _, flushed = self._positions()
            # One beyond: a commit that is published is confirmed with its first byte.
            if confirmed.position > scanned.position + 1:
                words = f"slot gives changes from {confirmed} on, but only {scanned} was reached"
                raise LogBroken(self._name.database, words)
            if flushed < scanned.position:
                words = f"the log ends at {Lsn.at(flushed)}, but {scanned} was read before"
                raise LogBroken(self._name.database, words)
            self._slot_at = confirmed.position
            if confirmed < scanned:
                self._check_publication()
                published = checkpoint if checkpoint is not None and checkpoint >= confirmed else None
                self._slot().check_history(checkpoint or Lsn.ZERO, published, scanned)

    def _positions(self) -> tuple[int, int]:
        """Where the next record goes, and up to where the log is durable."""
        row = (
            self._control()
            .execute(
                "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint,"
                " (pg_current_wal_flush_lsn() - '0/0')::bigint"
            )
            .fetchone()
        )
        assert row is not None
        return row[0], row[1]

    def column_ids(self, source_object_id: int) -> ColumnNumbers:
        """The table's columns as the source has them now; empty when it is gone."""
        with self._reaching(), any_bytes(self._control()):
            rows = (
                self._control()
                .execute(
                    "SELECT attname, attnum, attisdropped FROM pg_attribute"
                    " WHERE attrelid = %s AND attnum > 0",
                    [source_object_id],
                )
                .fetchall()
            )
        return ColumnNumbers(
            {name: number for name, number, dropped in rows if not dropped},
            frozenset(number for _, number, dropped in rows if dropped),
        )

    def tells_ddl(self) -> bool:
        """Whether the event trigger that tells the log of DDL is there."""
        with self._reaching():
            row = (
                self._control()
                .execute(
                    "SELECT EXISTS (SELECT FROM pg_event_trigger"
                    " WHERE evtname = %s AND evtenabled IN ('O', 'A'))",
                    [DDL_TRIGGER],
                )
                .fetchone()
            )
        assert row is not None
        return bool(row[0])

    def slot_state(self) -> SlotState:
        """What the source keeps for this reader."""
        with self._reaching():
            return self._slot().state()

    @property
    def exhausted(self) -> bool:
        """Whether the last finished read came to ``upto``, rather than to its limit."""
        return self._exhausted

    # Reading

    def read(self, after: Lsn, upto: Lsn, limit: ReadLimit) -> Iterator[LogPiece]:
        """Transactions with ``after`` < commit LSN, committed before ``upto``, at most ``limit.maxtrans``.

        What a peek brought beyond the limit is kept for a read that goes on where this one ended. A read
        may also end early, where a peek came to its bound: `exhausted` is False then too.
        Raises ScanAlreadyRunning, LogBroken, SourceUnreachable.
        """
        self._exhausted = False
        given = after.position
        self._return_to_binary(given)
        left, found, changes = limit.maxtrans, False, CHANGES_A_PEEK + self._rows_unconfirmed
        if self._reading is not None and not self._reading.may_go_on(given):
            self._drop()
        while left > 0:
            reading = self._reading or self._peek(given, upto.position, changes)
            try:
                shaped = self._next_block(reading, limit.piece_bytes)
            except psycopg.errors.UndefinedFunction as error:
                if not self._binary:
                    raise LogRecordsNotProcessed(text_of(error)) from error
                self._read_texts(text_of(error))
                continue
            if self._binary and self._catalog().has_gone:
                # Only decoding, which sees the catalog of the time, can still give such a value's text.
                self._drop()
                self._read_texts("a type of a published column has been dropped")
                self._texts_upto = self.log_end().position
                continue
            if shaped is None:
                self._reading = None
                self._exhausted = reading.peek.complete and reading.peek.upto >= upto.position
                if self._exhausted or (found and not reading.peek.complete):
                    return
                changes *= 2
                continue
            if not reading.takes(given, upto.position, left):
                self._exhausted = True
                return
            with self._reaching(), understood():
                piece = self._decoder().piece(shaped, *reading.taken)
            if not piece.transactions:
                continue
            found = True
            left -= len(piece.transactions) - piece.open_tail
            self._commits.add(piece.transactions[-1].commit_lsn.position)
            yield piece
            # A peek that follows within this read must not give these again.
            whole = piece.transactions[: len(piece.transactions) - piece.open_tail]
            given = whole[-1].commit_lsn.position if whole else given

    def _peek(self, after: int, upto: int, changes: int) -> _Reading:
        with self._reaching():
            self._check_publication()
            self._check_slot()
            peek = Peek(self._stream(), self._name, upto, changes, self._binary)
        self._reading = _Reading(peek, Shapes(self._catalog()), self._words, after)
        return self._reading

    def _check_publication(self) -> None:
        """Raises LogBroken when it is gone: a server from 18 on reads the log past what it published."""
        query = "SELECT FROM pg_publication WHERE pubname = %s"
        if self._control().execute(query, [self._name.publication]).fetchone() is None:
            raise LogBroken(self._name.database, f"publication '{self._name.publication}' does not exist")

    def _check_slot(self) -> None:
        """Raises LogBroken when somebody else moved it on, or dropped and made it anew, between two peeks.

        It would give what follows, and what was committed before would be left out. Where it is gone, or
        another reads it, the peek itself is refused.
        """
        confirmed = self._slot().idle_at()
        if confirmed is None:
            return
        if self._slot_at is None:
            self._slot_at = confirmed
        if confirmed > self._slot_at:
            places = f"changes from {Lsn.at(confirmed)} on, but only {Lsn.at(self._slot_at)} was read"
            raise LogBroken(self._name.database, f"slot gives {places}: it was moved on or made anew")

    def _next_block(self, reading: _Reading, piece_bytes: int) -> ShapedBlock | None:
        """The block that has transactions to hand out; None when the peek is used up."""
        before = reading.peek.rows
        with self._reaching(), understood():
            shaped = reading.block(max(piece_bytes // 2, 1))
        self._rows_unconfirmed += reading.peek.rows - before
        return shaped

    def _read_texts(self, reason: str) -> None:
        """From now on values come as text: a column's type has no binary form, or one nobody can read."""
        _log.warning("log is read as text", database=self._name.database, reason=reason)
        self._binary = False

    def _return_to_binary(self, after: int) -> None:
        """Above the log's end at which a type was found dropped, nothing is of that type."""
        if self._texts_upto is None or after < self._texts_upto:
            return
        self._drop()
        self._catalog().has_gone = False
        self._binary, self._texts_upto = True, None

    def confirm(self, upto: Lsn) -> None:
        """Everything up to the log position ``upto`` is durable: the source may truncate its log.

        The slot gives again what commits at or after the position it is moved to, so for a commit LSN
        it is moved one byte beyond. A commit LSN read before a restart is not known for one: that
        transaction is decoded once more, and left out by ``after``.
        """
        position = upto.position
        target = position + 1 if position in self._commits else position
        with self._reaching():
            slot = self._slot()
            if self._slot_at is not None:  # before: the answer may be lost on its way
                self._slot_at = max(self._slot_at, target)
            slot.advance(target)
            if position - self._restart_cared_for > RESTART_LAG:
                self._restart_cared_for = slot.let_restart_follow()
        self._commits = {commit for commit in self._commits if commit > position}
        self._rows_unconfirmed = 0

    def close(self) -> None:
        """Gives up connections."""
        self._drop()
        for connection in (self._control_connection, self._stream_connection):
            if connection is not None:
                connection.close()
        self._control_connection = self._stream_connection = None

    # Connections

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """After any error half a peek can't be gone on with; a lost connection is not the only one lost."""
        try:
            with unreachable(self._name.database):
                yield
        except psycopg.errors.UndefinedFunction:
            self._drop()
            raise
        except psycopg.Error as error:
            standby = self._is_standby()
            self.close()
            if standby:
                words = "the server is a standby now: give the DSN of the primary"
                raise SourceUnreachable(self._name.database, words) from error
            raise log_error(error, self._name.database) from error
        except BaseException:
            self.close()
            raise

    def _is_standby(self) -> bool:
        """Whether the server became one, say by a failover: then it refuses what it did before."""
        connection = self._control_connection
        if connection is None or connection.closed:
            return False
        row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
        return bool(row and row[0])

    def _drop(self) -> None:
        """Forgets the peek; a connection in the middle of one is of no use any more."""
        if (
            self._reading is not None
            and not self._reading.peek.finished
            and self._stream_connection is not None
        ):
            self._stream_connection.close()
            self._stream_connection = None
        self._reading = None

    def _stream(self) -> Connection:
        if self._stream_connection is None or self._stream_connection.closed:
            self._stream_connection = connect(self._dsn, self._name.database, "highwater log reader")
            with self._reaching():
                configure(self._stream_connection, _SCAN_SETTINGS)
                if is_unencoded(self._stream_connection):
                    # As UTF-8 the server would refuse to give what it never checked.
                    configure(self._stream_connection, {"client_encoding": "SQL_ASCII"})
        return self._stream_connection

    def _control(self) -> Connection:
        if self._control_connection is None or self._control_connection.closed:
            self._control_connection = connect(self._dsn, self._name.database, "highwater log control")
            # A mark makes the log durable here; standbys are for those to wait for who need them.
            configure(self._control_connection, {"synchronous_commit": "local"})
            self._pages = _log_pages(self._control_connection)
            self._catalog_of = TypeCatalog(self._control_connection)
            self._words = Words(self._control_connection, self._name.database)
            server = PostgresValues(self._control_connection, self._name.database)
            self._decoder_of = PieceDecoder(
                server, self._name.database, not is_unencoded(self._control_connection)
            )
        return self._control_connection

    def _slot(self) -> Slot:
        return Slot(self._control(), self._name)

    def _catalog(self) -> TypeCatalog:
        self._control()
        return self._catalog_of

    def _decoder(self) -> PieceDecoder:
        self._control()
        return self._decoder_of


def _log_pages(connection: Connection) -> LogPages:
    query = "SELECT setting::int FROM pg_settings WHERE name = ANY(%s) ORDER BY name"
    [page], [segment] = connection.execute(query, [["wal_block_size", "wal_segment_size"]]).fetchall()
    return LogPages(page, segment)


class _Reading:
    """A peek being handed out: its current block and how far that has been given."""

    def __init__(self, peek: Peek, shapes: Shapes, words: Words, after: int) -> None:
        self.peek = peek
        self.taken = (0, 0)
        self._shapes = shapes
        self._words = words
        self._marker = TransactionMarker()
        self._shaped: ShapedBlock | None = None
        self._given = after
        self._inside = False

    def may_go_on(self, after: int) -> bool:
        """Whether a read from ``after`` finds here all it needs: nothing above it has been given."""
        return after >= self._given and not self._inside

    def block(self, size: int) -> ShapedBlock | None:
        """The block with transactions left; None when the peek has no more."""
        if self._shaped is None or self.taken[1] == len(self._shaped.marked.commit):
            goes_on = self._shaped is not None and self._shaped.open_tail
            block = self.peek.block(size)
            if block is None:
                return None
            self._shaped = ShapedBlock.of(self._marker.mark(block), self._shapes, self._words, goes_on)
            self.taken = (0, 0)
        return self._shaped

    def takes(self, after: int, upto: int, left: int) -> bool:
        """Sets ``taken`` to the transactions to hand out next; False when they commit at ``upto`` or on."""
        assert self._shaped is not None
        marked, filled, start = self._shaped.marked, self._shaped.filled, self.taken[1]
        first = max(start, int(np.searchsorted(marked.commit, after, "right")))
        end = int(np.searchsorted(marked.commit, upto, "left"))
        place = int(np.searchsorted(filled, first)) + left
        if place < len(filled):
            end = min(end, int(filled[place]))
        if end <= start:
            return len(marked.commit) == 0
        self.taken = (min(first, end), end)
        self._inside = self._shaped.open_tail and end == len(marked.commit)
        # An open transaction's commit is not given until its last part is.
        whole = end - self._inside
        if whole > 0:
            self._given = max(self._given, int(marked.commit[whole - 1]))
        return True
