"""Which transaction each message belongs to, and which place in it: all messages of a block at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import LogRecordsNotProcessed
from engine.model.lsn import Lsn
from engine.sources.base import LogTransaction, LogTransactions
from engine.sources.postgres.pgoutput import (
    BEGIN,
    BEGIN_LENGTH,
    COMMIT,
    DELETE,
    INSERT,
    KINDS,
    MESSAGE,
    RELATION,
    UPDATE,
    MessageBlock,
)

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECONDS_TO_2000 = 946_684_800_000_000
_EARLIEST = -_MICROSECONDS_TO_2000
_LATEST = 252_455_616_000_000_000
"""Of microseconds since 2000: from 1970 to the end of 9999."""
_MOST_AT_ONE_POSITION = 0xFFFF


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction whose commit has not been met: where its next part goes on."""

    transaction: LogTransaction
    commands: int
    position: int
    counter: int


@dataclass(frozen=True, slots=True)
class MarkedBlock:
    """A block with its transactions.

    commit: uint64, commit position of each transaction, ascending; the first may go on from the block before.
    changes: message index of each insert, update or delete; for each its transaction, command, counter,
    relation oid. relations, emitted: indices of R and M messages. order: message index of M -> (transaction,
    command).
    """

    block: MessageBlock
    commit: NDArray[np.uint64]
    begin: NDArray[np.uint64]
    time: NDArray[np.int64]
    xid: NDArray[np.uint32]
    changes: NDArray[np.intp]
    transaction: NDArray[np.int32]
    command: NDArray[np.int32]
    counter: NDArray[np.uint16]
    relation: NDArray[np.uint32]
    relations: NDArray[np.intp]
    emitted: NDArray[np.intp]
    emitted_place: list[tuple[int, int]]
    open_tail: bool

    def log_transactions(self, indices: NDArray[np.intp]) -> LogTransactions:
        """These transactions."""
        return LogTransactions(
            commit=self.commit[indices],
            begin=self.begin[indices],
            commit_time=self.time[indices] + _MICROSECONDS_TO_2000,
            tran_id=self.xid[indices].astype(">u4").view("V4"),
        )

    def log_transaction(self, index: int) -> LogTransaction:
        """One of the transactions."""
        return self.log_transactions(np.array([index]))[0]


class TransactionMarker:
    """Marks block after block of one peek; knows the transaction that the last block left open."""

    def __init__(self) -> None:
        self._open: OpenTransaction | None = None

    def mark(self, block: MessageBlock) -> MarkedBlock:
        """The block's transactions and the place of each change in them.

        Raises LogRecordsNotProcessed where the block is no part of a log.
        """
        kind, carried = block.kind, self._open
        if not KINDS[kind].all():
            raise LogRecordsNotProcessed("the log has a message of a kind that nobody knows")
        begins = np.flatnonzero(kind == BEGIN)
        if (block.length[begins] != BEGIN_LENGTH).any():
            raise LogRecordsNotProcessed("the beginning of a transaction has another length than its fields")
        transaction = np.cumsum(kind == BEGIN, dtype=np.int32)
        if carried is None:
            transaction -= 1
        changes = np.flatnonzero((kind == INSERT) | (kind == UPDATE) | (kind == DELETE))
        owner = transaction[changes]
        if len(owner) and owner[0] < 0:
            raise LogRecordsNotProcessed("the log has a change outside a transaction")
        count = len(begins) + (carried is not None)
        per_transaction = np.bincount(owner, minlength=count)
        before = np.cumsum(per_transaction) - per_transaction
        commands_before = np.zeros(count, np.int64)
        if carried is not None:
            commands_before[0] = carried.commands
        command = np.arange(len(changes)) - before[owner] + commands_before[owner] + 1
        counter = _counters(block.lsn[changes], owner, carried)
        emitted = np.flatnonzero(kind == MESSAGE)
        marked = MarkedBlock(
            block=block,
            commit=_head(carried, "commit_lsn", block.integers(begins, 1, 8), np.uint64),
            begin=_head(carried, "begin_lsn", block.lsn[begins], np.uint64),
            time=_times(carried, block.integers(begins, 9, 8).view(np.int64)),
            xid=_xids(carried, block.integers(begins, 17, 4)),
            changes=changes,
            transaction=owner,
            command=command.astype(np.int32),
            counter=counter,
            relation=block.integers(changes, 1, 4),
            relations=np.flatnonzero(kind == RELATION),
            emitted=emitted,
            emitted_place=_emitted_places(emitted, transaction, changes, before, commands_before),
            open_tail=_is_open(kind, carried),
        )
        _check_transactions(marked)
        self._open = self._left_open(marked, per_transaction, commands_before)
        return marked

    def _left_open(
        self, marked: MarkedBlock, per_transaction: NDArray[Any], commands_before: NDArray[np.int64]
    ) -> OpenTransaction | None:
        if not marked.open_tail:
            return None
        commands = int(commands_before[-1] + per_transaction[-1])
        if per_transaction[-1]:
            position, counter = int(marked.block.lsn[marked.changes[-1]]), int(marked.counter[-1])
        else:
            carried = self._open if len(marked.commit) == 1 else None
            position, counter = (carried.position, carried.counter) if carried else (0, 0)
        return OpenTransaction(marked.log_transaction(len(marked.commit) - 1), commands, position, counter)


def _check_transactions(marked: MarkedBlock) -> None:
    """Whoever looks for a place among them relies on their order, and whoever shows them on their times."""
    if (marked.commit[1:] <= marked.commit[:-1]).any():
        raise LogRecordsNotProcessed("transactions of the log are not in the order of their commits")
    if ((marked.time < _EARLIEST) | (marked.time >= _LATEST)).any():
        raise LogRecordsNotProcessed("a transaction of the log has no time of this world")


def _counters(
    position: NDArray[np.uint64], owner: NDArray[np.int32], carried: OpenTransaction | None
) -> NDArray[np.uint16]:
    """0, 1, 2 … for changes of a transaction that follow each other at one position."""
    index = np.arange(len(position))
    if not len(index):
        return np.zeros(0, np.uint16)
    first = np.ones(len(index), bool)
    first[1:] = (position[1:] != position[:-1]) | (owner[1:] != owner[:-1])
    start = np.maximum.accumulate(np.where(first, index, 0))
    counter = index - start
    if carried is not None and owner[0] == 0 and carried.position == int(position[0]):
        counter[start == 0] += carried.counter + 1
    # A WAL record holds some hundred rows at most; were it more, command ids would still order them.
    return np.minimum(counter, _MOST_AT_ONE_POSITION).astype(np.uint16)


def _emitted_places(
    emitted: NDArray[np.intp],
    transaction: NDArray[np.int32],
    changes: NDArray[np.intp],
    before: NDArray[Any],
    commands_before: NDArray[np.int64],
) -> list[tuple[int, int]]:
    """(transaction, number of changes before it there) of each M message; (-1, 0) outside one."""
    places = []
    for message in emitted.tolist():
        owner = int(transaction[message])
        if owner < 0:
            places.append((-1, 0))
            continue
        command = int(np.searchsorted(changes, message)) - int(before[owner]) + int(commands_before[owner])
        places.append((owner, command))
    return places


def _is_open(kind: NDArray[np.uint8], carried: OpenTransaction | None) -> bool:
    bounds = kind[(kind == BEGIN) | (kind == COMMIT)]
    return bool(bounds[-1] == BEGIN) if len(bounds) else carried is not None


def _head(carried: OpenTransaction | None, field: str, rest: NDArray[Any], dtype: Any) -> NDArray[Any]:
    if carried is None:
        return rest
    first: Lsn = getattr(carried.transaction, field)
    return np.concatenate([np.array([first.position], dtype), rest])


def _times(carried: OpenTransaction | None, rest: NDArray[np.int64]) -> NDArray[np.int64]:
    if carried is None:
        return rest
    microseconds = (carried.transaction.commit_time - _EPOCH) // timedelta(microseconds=1)
    return np.concatenate([np.array([microseconds], np.int64), rest])


def _xids(carried: OpenTransaction | None, rest: NDArray[np.uint32]) -> NDArray[np.uint32]:
    if carried is None:
        return rest
    return np.concatenate([np.array([int.from_bytes(carried.transaction.tran_id, "big")], np.uint32), rest])
