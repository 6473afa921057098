"""Whether a log is durable in whole records. Pure.

A server flushes its log record by record, but its WAL writer also page by page: the flush position may then
lie within a record. Were that a commit, a slot that is moved there would never give its transaction: decoding
leaves out what begins below the slot's position.
"""

from __future__ import annotations

from dataclasses import dataclass

_PAGE_HEADER, _SEGMENT_HEADER = 24, 40
"""Bytes before the first record of a page, and of a segment's first page."""


@dataclass(frozen=True, slots=True)
class LogPages:
    """How a server divides its log, in bytes."""

    page: int
    segment: int

    def ends_record(self, flushed: int, inserted: int) -> bool:
        """Whether a record is known to end at ``flushed``; inserted: where the next one went, asked before.

        Only a page's end tells nothing, unless the next record goes right behind the header that follows.
        """
        header = _PAGE_HEADER if flushed % self.segment else _SEGMENT_HEADER
        return bool(flushed % self.page) or inserted == flushed + header
