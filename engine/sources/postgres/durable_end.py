"""Up to where a log is durable in whole records. Pure.

A server flushes its log record by record, but its WAL writer also page by page: the flush position may then
lie within a record. Were that a commit, a slot that is moved there would never give its transaction: decoding
leaves out what begins below the slot's position.
"""

from __future__ import annotations

_PAGE_HEADER, _SEGMENT_HEADER = 24, 40
"""Bytes before the first record of a page, and of a segment's first page."""
_KEPT = 64


class DurableEnd:
    """The newest end of a record that is known to be durable, from what the server says now and then."""

    def __init__(self, page_bytes: int, segment_bytes: int) -> None:
        self._page_bytes = page_bytes
        self._segment_bytes = segment_bytes
        self._inserted: list[int] = []
        self._end: int | None = None

    def seen(self, inserted: int, flushed: int) -> int | None:
        """The end by two positions asked for at once: where the next record goes, up to where all is durable.

        None while neither says more than that it is somewhere before ``flushed``.
        """
        if inserted not in self._inserted[-1:]:
            self._inserted.append(inserted)
        whole = [position for position in self._inserted if position <= flushed]
        self._inserted = [position for position in self._inserted if position > flushed][:_KEPT]
        header = _PAGE_HEADER if flushed % self._segment_bytes else _SEGMENT_HEADER
        if flushed % self._page_bytes or inserted - flushed == header:
            whole.append(flushed)
        self._end = max([*whole, self._end or 0]) or None
        return self._end
