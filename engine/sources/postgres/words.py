"""Words of Highwater's own in the log, told from what others may write there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import structlog

from engine.sources.postgres.connection import Connection
from engine.sources.postgres.log_messages import PREFIX, Word, from_json
from engine.sources.postgres.names import SCHEMA
from engine.sources.postgres.pgoutput import emitted_message
from engine.sources.postgres.transactions import MarkedBlock

_log = structlog.get_logger(__name__)

_OURS = re.compile(rf"{PREFIX}(\.[0-9a-f]{{64}})?")
"""An earlier version's, or one with its seal (enable.sql)."""


@dataclass(frozen=True, slots=True)
class _Said:
    transaction: int
    command: int
    prefix: str
    content: bytes
    tran_id: int
    lsn: str


class Words:
    """Reads them; the source says which have its seal."""

    def __init__(self, connection: Connection, database: str) -> None:
        """``database`` is the name that log lines speak of."""
        self._connection = connection
        self._database = database

    def told(self, marked: MarkedBlock) -> Iterator[tuple[int, int, Word]]:
        """The block's words with their transactions (indices) and places in them.

        What is none of ours is logged and left out: anybody may write into a log. Raises psycopg.Error.
        """
        said = list(_said(marked))
        for one, is_own in zip(said, self._are_own(said), strict=True):
            if not is_own:
                self._left_out(one, "not written by Highwater: it lacks the seal")
                continue
            try:
                word = from_json(one.content)
            except ValueError as error:
                self._left_out(one, str(error))
                continue
            yield one.transaction, one.command, word

    def _left_out(self, one: _Said, error: str) -> None:
        _log.error("message in the log not understood", database=self._database, lsn=one.lsn, error=error)

    def _are_own(self, said: Sequence[_Said]) -> Sequence[bool]:
        if not said:
            return []
        function = f"{SCHEMA}.are_own_words(text[], bigint[], bytea[])"
        row = self._connection.execute("SELECT to_regprocedure(%s) IS NOT NULL", [function]).fetchone()
        if row is None or not row[0]:
            # Enabled by an earlier version, which nobody could upgrade yet: `fitness` says so.
            return [one.prefix == PREFIX for one in said]
        row = self._connection.execute(
            f"SELECT {SCHEMA}.are_own_words(%s::text[], %s::bigint[], %s::bytea[])",
            [
                [one.prefix for one in said],
                [one.tran_id for one in said],
                [sha256(one.content).digest() for one in said],
            ],
        ).fetchone()
        assert row is not None
        return [bool(is_own) for is_own in row[0]]


def _said(marked: MarkedBlock) -> Iterator[_Said]:
    """Messages that look like words of ours; others' are no business of this log's reader."""
    for index, (transaction, command) in zip(marked.emitted.tolist(), marked.emitted_place, strict=True):
        emitted = emitted_message(marked.block.data(index))
        if emitted.transactional and _OURS.fullmatch(emitted.prefix):
            owner = marked.log_transaction(transaction)
            yield _Said(
                transaction,
                command,
                emitted.prefix,
                emitted.content,
                int.from_bytes(owner.tran_id, "big"),
                str(owner.commit_lsn),
            )
