"""What the engine needs of a source, in the engine's words.

A log is read in *pieces*: columnar batches of row images in log order. Scalars are `Lsn`;
inside a piece positions are numpy arrays of the log's own 8-byte positions (``Lsn.at(position)``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.model.capture_instance import CaptureInstance
from engine.model.lsn import Lsn
from engine.model.table_shape import ShapeColumn


@dataclass(frozen=True, slots=True)
class ReadLimit:
    """Bounds of one read: whole transactions, and about how many bytes a piece may hold in memory."""

    maxtrans: int
    piece_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogTransaction:
    """A committed transaction of the log. Times are UTC; ``begin_time`` None where the log has none.

    ``begin_lsn`` is the position of the first record read of it.
    ``tran_id`` is the source's transaction id, big-endian bytes.
    """

    commit_lsn: Lsn
    begin_lsn: Lsn
    begin_time: datetime | None
    commit_time: datetime
    tran_id: bytes


@dataclass(frozen=True, slots=True, eq=False)
class LogTransactions(Sequence[LogTransaction]):
    """Transactions as columns: a log may hold tens of thousands in a piece. Items are made when asked for.

    commit, begin: uint64, positions of the LSNs. commit_time: int64, microseconds since 1970 (UTC).
    tran_id: bytes of one width (``V4``). Slices are views. Times of begin are not known: None.
    """

    commit: NDArray[np.uint64]
    begin: NDArray[np.uint64]
    commit_time: NDArray[np.int64]
    tran_id: NDArray[np.void]

    @classmethod
    def of(cls, transactions: Sequence[LogTransaction]) -> LogTransactions:
        """Any transactions as columns; their begin times are left out."""
        if isinstance(transactions, LogTransactions):
            return transactions
        microsecond = timedelta(microseconds=1)
        width = max((len(transaction.tran_id) for transaction in transactions), default=4)
        return cls(
            np.array([transaction.commit_lsn.position for transaction in transactions], np.uint64),
            np.array([transaction.begin_lsn.position for transaction in transactions], np.uint64),
            np.array([(each.commit_time - _EPOCH) // microsecond for each in transactions], np.int64),
            np.array([transaction.tran_id for transaction in transactions], f"V{width}"),
        )

    def where(self, taken: NDArray[np.bool_]) -> LogTransactions:
        """Those that ``taken`` marks."""
        return LogTransactions(
            self.commit[taken], self.begin[taken], self.commit_time[taken], self.tran_id[taken]
        )

    def __len__(self) -> int:
        return len(self.commit)

    @overload
    def __getitem__(self, index: int) -> LogTransaction: ...

    @overload
    def __getitem__(self, index: slice) -> LogTransactions: ...

    def __getitem__(self, index: int | slice) -> LogTransaction | LogTransactions:
        if isinstance(index, slice):
            return LogTransactions(
                self.commit[index], self.begin[index], self.commit_time[index], self.tran_id[index]
            )
        return LogTransaction(
            commit_lsn=Lsn.at(int(self.commit[index])),
            begin_lsn=Lsn.at(int(self.begin[index])),
            begin_time=None,
            commit_time=_EPOCH + timedelta(microseconds=int(self.commit_time[index])),
            tran_id=self.tran_id[index].tobytes(),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self.commit.tobytes())


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LogColumn:
    """A column of a relation as the log describes it; types as in ShapeColumn."""

    name: str
    source_type: str
    lake_type: str
    type_id: str = ""


@dataclass(frozen=True, slots=True)
class ColumnNumbers:
    """Columns of a table now: ``names`` with their numbers, and numbers of those that were dropped."""

    names: Mapping[str, int]
    dropped: Set[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Relation:
    """A table's shape at one place of the log."""

    source_object_id: int
    schema: str
    table: str
    columns: tuple[LogColumn, ...]


@dataclass(frozen=True, slots=True)
class RelationChanges:
    """Row images of one relation shape, in log order, all arrays of one length n.

    operation: uint8, 1 delete, 2 insert, 3 before and 4 after an update; a 3 is followed by its 4.
    transaction: int32, index into the piece's ``transactions``.
    command: int32, 1-based ordinal of the change within its transaction over all tables (3 and 4 share it).
    position: uint64, log position of the change; counter: uint16, tells changes at one position apart.
    images: n rows, one typed column for each of ``relation.columns`` (Arrow type of its ``lake_type``).
    without_old: how many updates and deletes came without their whole old row.
    """

    relation: Relation
    operation: NDArray[np.uint8]
    transaction: NDArray[np.int32]
    command: NDArray[np.int32]
    position: NDArray[np.uint64]
    counter: NDArray[np.uint16]
    images: pa.RecordBatch
    without_old: int = 0

    def __len__(self) -> int:
        return len(self.operation)


@dataclass(frozen=True, slots=True)
class InstanceEnabled:
    """The log's word that a capture instance begins; its start_lsn is that transaction's commit LSN.

    ``instance`` is the whole definition (start_lsn None): the log alone is enough to restore it.
    """

    transaction: int
    command: int
    instance: CaptureInstance


@dataclass(frozen=True, slots=True)
class InstanceDisabled:
    """The log's word that a capture instance ends: changes of later transactions are not captured."""

    transaction: int
    command: int
    capture_instance: str
    object_id: int


@dataclass(frozen=True, slots=True)
class TableAltered:
    """The log's word that a table has another shape from here on.

    ``ddl`` is the statement's text, empty where it is not known. ``command``: the number of changes of
    the transaction that came before.
    """

    transaction: int
    command: int
    source_object_id: int
    schema: str
    table: str
    columns: tuple[ShapeColumn, ...]
    ddl: str


@dataclass(frozen=True, slots=True)
class TableDropped:
    """The log's word that a table is gone, and with it every instance of it."""

    transaction: int
    command: int
    source_object_id: int
    ddl: str


LogEvent = InstanceEnabled | InstanceDisabled | TableAltered | TableDropped


@dataclass(frozen=True, slots=True)
class LogPiece:
    """Part of a read, in commit order.

    transactions: those with changes or events here, ascending by commit LSN; transactions without
    any (other databases' or uncaptured tables') do not occur. Often LogTransactions: use its columns.
    open_tail: the last transaction goes on in the next piece; then the piece after begins with it.
    record_count: log records (messages) that the piece was made from.
    """

    transactions: Sequence[LogTransaction]
    changes: tuple[RelationChanges, ...]
    events: tuple[LogEvent, ...]
    open_tail: bool
    record_count: int


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """Which log this is: continuity holds only while it stays the same."""

    system_identifier: str
    timeline: int
    slot: str


@dataclass(frozen=True, slots=True)
class SlotState:
    """What the source says of the log kept for us. Bytes; None where the source does not say.

    ``wal_status`` is reserved, extended, unreserved or lost; ``active_pid`` the backend reading it.
    safe_wal_size: what may still be written before log that is needed may go; limit_bytes: how much log a
    slot may hold at most; both None without such a limit. disk_free_bytes: on the server's disk, None where
    that is another machine's. blocked_by: sessions that hold a lock which a reader of ours waits for.
    """

    slot: str
    confirmed: Lsn
    restart: Lsn
    retained_bytes: int
    wal_status: str
    safe_wal_size: int | None
    active_pid: int | None
    limit_bytes: int | None = None
    disk_free_bytes: int | None = None
    blocked_by: tuple[int, ...] = ()


class LogSource(Protocol):
    """A source's log, read by one capture process at a time. Not thread-safe."""

    def identity(self) -> LogIdentity:
        """The log's identity now. Raises SourceUnreachable, LogBroken when the slot is gone or lost."""
        ...

    def log_end(self) -> Lsn:
        """The end of what is durable in the log now, in whole records: above all that is committed."""
        ...

    def has_grown(self, since: Lsn) -> bool:
        """Whether the log has grown beyond a `log_end` of before: cheaper than to ask for a new one."""
        ...

    def check_goes_on(self, checkpoint: Lsn | None, scanned: Lsn) -> None:
        """Raises LogBroken unless the log still is what was read up to ``scanned``, and gives all since.

        checkpoint: the last commit that was published.
        """
        ...

    def read(self, after: Lsn, upto: Lsn, limit: ReadLimit) -> Iterator[LogPiece]:
        """Transactions with ``after`` < commit LSN, committed before ``upto``, at most ``limit.maxtrans``.

        Ends early when the limit is reached: then `exhausted` is False and the next read goes on
        (cheaply when its ``after`` is where this one ended).
        """
        ...

    @property
    def exhausted(self) -> bool:
        """Whether the last finished read came to ``upto``, rather than to its limit."""
        ...

    def column_ids(self, source_object_id: int) -> ColumnNumbers:
        """The table's columns as the source has them now; empty when it is gone."""
        ...

    def tells_ddl(self) -> bool:
        """Whether the log tells of DDL on tracked tables, as TableAltered."""
        ...

    def confirm(self, upto: Lsn) -> None:
        """Everything up to the log position ``upto`` is durable: the source may truncate its log.

        ``upto`` is the commit LSN of the last published transaction, or a log end that a read exhausted.
        """
        ...

    def slot_state(self) -> SlotState:
        """What the source keeps for this reader."""
        ...

    def close(self) -> None:
        """Gives up connections."""
        ...


GONE = "dropped by hand"
"""Subject of the problem that what enabling made is not there any more."""


@dataclass(frozen=True, slots=True)
class SourceProblem:
    """Something to change at the source: what is wrong, and the statement or setting that mends it.

    ``fatal`` is False where capture works all the same, only less well.
    """

    subject: str
    problem: str
    fix: str
    fatal: bool = True


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a source table; types as in ShapeColumn. ``column_id`` is the source's own number.

    ``is_logged`` is False for a generated column that the log does not hold.
    """

    name: str
    column_id: int
    source_type: str
    lake_type: str
    nullable: bool
    is_computed: bool
    is_logged: bool = True
    type_id: str = ""


@dataclass(frozen=True, slots=True)
class SourceIndex:
    """An index that may identify rows. ``columns`` in index order."""

    name: str
    columns: tuple[str, ...]
    is_primary_key: bool
    is_unique: bool
    is_valid: bool


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table that could be tracked. ``row_estimate`` is the source's own, -1 when never analysed."""

    source_object_id: int
    schema: str
    name: str
    columns: tuple[SourceColumn, ...]
    indexes: tuple[SourceIndex, ...]
    row_estimate: int
    is_partitioned: bool = False

    @property
    def shape(self) -> tuple[ShapeColumn, ...]:
        """Its columns as a shape that the log's can be compared with."""
        return tuple(
            ShapeColumn(
                column.column_id,
                column.name,
                column.source_type,
                column.lake_type,
                column.is_logged,
                column.type_id,
            )
            for column in self.columns
        )

    @property
    def primary_key(self) -> SourceIndex | None:
        """The primary key, where there is one."""
        return next((index for index in self.indexes if index.is_primary_key), None)


@dataclass(frozen=True, slots=True)
class Privileges:
    """What a role of the source may do there, as far as capture instances ask.

    is_sysadmin: a superuser, or a member of one's role. is_owner: sysadmin, or a member of the database
    owner's role, or of a role named db_owner where there is one.
    selectable: object ids of instances whose captured columns the role may all SELECT; columns that the
    source table no longer has do not count. member_of: gating roles that it is a member of.
    """

    is_owner: bool = False
    is_sysadmin: bool = False
    selectable: frozenset[int] = frozenset()
    member_of: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UnseenTransactions:
    """Transactions whose changes a snapshot does not have: those that had not ended, or not begun, by then.

    ranges: their ``tran_id``, from and to, both included and of one length.
    """

    ranges: tuple[tuple[bytes, bytes], ...]

    def __contains__(self, tran_id: object) -> bool:
        return isinstance(tran_id, bytes) and any(low <= tran_id <= high for low, high in self.ranges)


class TableSnapshot(Protocol):
    """A table's rows as one snapshot of the source has them: the work of an exact set of transactions.

    A place in the log alone does not say which: a commit is in the log a moment before others see its rows,
    and for as long as it waits for a standby.
    """

    @property
    def end(self) -> Lsn:
        """A place in the log that the commits of all its transactions are below."""
        ...

    @property
    def unseen(self) -> UnseenTransactions:
        """Whose commits it does not have, also where they are below ``end``."""
        ...

    @property
    def has_row_security(self) -> bool:
        """Whether a policy of the source decides which rows a role sees."""
        ...

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows in no order, once. Raises what `SourceAdmin.snapshot` raises."""
        ...


class SourceAdmin(Protocol):
    """What enabling, disabling and inspecting need of a source. Opens short connections of its own."""

    def server(self) -> str:
        """Kind and version in words: ``PostgreSQL 18.1``. Raises SourceUnreachable."""
        ...

    def check(self) -> Sequence[SourceProblem]:
        """What keeps this database from being captured; empty when nothing does."""
        ...

    def tracking_problems(self, instances: Sequence[CaptureInstance]) -> Sequence[SourceProblem]:
        """What keeps tracked tables from being captured as they should: they are gone, or were changed."""
        ...

    def tables(self) -> Sequence[SourceTable]:
        """Every table of the database that could be tracked, by schema and name."""
        ...

    def table(self, schema: str, name: str) -> SourceTable | None:
        """One table; None when it is not there."""
        ...

    def table_names(self, source_object_ids: Sequence[int]) -> Mapping[int, tuple[str, str]]:
        """Schema and name that tables have now; those that are gone are not in it."""
        ...

    def is_enabled(self) -> bool:
        """Whether the source's side of enable_database is in place."""
        ...

    def has_own_schema(self) -> bool:
        """Whether schema ``cdc`` is one that enable_database made, here or where this is a copy of."""
        ...

    def tablespaces(self) -> Sequence[str]:
        """Names of tablespaces, which are what filegroups are. Raises SourceUnreachable."""
        ...

    def place(self) -> str:
        """Which running database this is: the same text for two DSNs only where both lead to the same one."""
        ...

    def owner(self) -> str:
        """For whom the database was enabled, while its slot is there; empty where nobody knows."""
        ...

    def enable_database(self, owner: str = "") -> None:
        """Schema ``cdc`` with its trigger functions, publication and slot; all or nothing.

        owner: who enables it, a word without blanks. Raises CdcSchemaExists (22906), and
        DatabaseNotEnabled's siblings 22908/22830 with the source's error.
        """
        ...

    def disable_database(self, instances: Sequence[CaptureInstance]) -> None:
        """Takes back enable_database and whatever tracking of ``instances`` left on tables.

        Whether the slot and schema are there or not: what is missing is no error.
        """
        ...

    def upgrade(self, instances: Sequence[CaptureInstance]) -> bool:
        """Brings what an earlier version made by enable_database up to this one; False when it is.

        instances: all of the database. Raises ObjectsNotCreated; then nothing has changed, and `check` and
        `tracking_problems` say what to do.
        """
        ...

    def remains(self, instances: Sequence[CaptureInstance]) -> Sequence[SourceProblem]:
        """What `enable_database` and tracking ``instances`` made there, and how to remove it by hand.

        The source is not asked: it may be gone.
        """
        ...

    def create_role(self, role: str) -> None:
        """A gating role when the source has none of that name. Raises RoleNotCreated (22944)."""
        ...

    def enable_table(self, instance: CaptureInstance) -> None:
        """One source transaction: full row images, publication, TRUNCATE guard, and the word in the log.

        The log's word carries the whole ``instance``; `LogSource.read` returns it as InstanceEnabled.
        Raises TableNotMarked (22832) with the source's error; then nothing has changed.
        """
        ...

    def disable_table(self, instance: CaptureInstance, last_of_table: bool) -> None:
        """The word in the log that ``instance`` ends; the last takes the table's tracking back.

        A table that has been dropped is no error. Raises TableNotUnmarked (22833).
        """
        ...

    def refuses_ddl(self) -> bool:
        """Whether the source refuses DDL that capture could not survive, and tells the log of the rest."""
        ...

    def mark(self) -> Lsn:
        """A durable place in the log: everything committed before the call is below it.

        Raises ObjectsGone where what enabling made was dropped: what was committed may not be captured.
        """
        ...

    def snapshot(self, instance: CaptureInstance) -> AbstractContextManager[TableSnapshot]:
        """The source table as it is now, open within: the captured columns as change rows have them.

        Batches have a column of the lake's type for each captured one that the log has, named by its place
        among the captured ones, from ``0`` on: computed and dropped ones are left out. Raises RowsNotTold
        where the table can't be read or has other columns, SourceUnreachable.
        """
        ...

    def privileges(self, principal: str, instances: Sequence[CaptureInstance]) -> Privileges:
        """What a role may do with the tables of ``instances`` and their gating roles; nothing if unknown."""
        ...
