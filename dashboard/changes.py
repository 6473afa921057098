"""Change rows as people read them: an update's two rows folded into one, its mask decoded. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboard import format as fmt
from dashboard.theme import OPERATIONS, UPDATE, OperationLook
from engine.model.change import Operation
from engine.model.lsn import Lsn
from engine.model.mask import is_bit_set

START_LSN, SEQVAL, OPERATION, UPDATE_MASK = "__$start_lsn", "__$seqval", "__$operation", "__$update_mask"
COMMIT_TIME = "commit_time"
METADATA = (START_LSN, SEQVAL, OPERATION, UPDATE_MASK, COMMIT_TIME)

ARROW = " → "

Place = tuple[str, str]
"""``__$start_lsn`` and ``__$seqval`` of a change; the latter is empty for a net change."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one row. ``old`` is None for an insert, ``new`` for a delete.

    An update read with ``all`` has no ``old``: the function returns only its row 4.
    ``changed`` names the captured columns whose bit is set; for inserts and deletes all bits are set by rule.
    """

    capture_instance: str
    operation: Operation
    start_lsn: str
    seqval: str | None
    mask: bytes | None
    commit_time: datetime | None
    old: Mapping[str, object] | None
    new: Mapping[str, object] | None
    changed: tuple[str, ...]

    @property
    def place(self) -> Place:
        """Where it is in the log: both rows of an update are at one place, as are net changes of a commit."""
        return self.start_lsn, self.seqval or ""

    @property
    def is_update(self) -> bool:
        """Whether both images, or the bits, tell what changed."""
        return self.operation in (Operation.UPDATE_OLD, Operation.UPDATE_NEW)

    @property
    def is_folded(self) -> bool:
        """Whether both rows of an update are here."""
        return self.old is not None and self.new is not None

    @property
    def values(self) -> Mapping[str, object]:
        """The row after the change, or before it where there is no after."""
        return self.new if self.new is not None else self.old or {}

    @property
    def look(self) -> OperationLook:
        """Glyph, word and colour."""
        return (
            UPDATE
            if self.is_update and self.operation is not Operation.UPDATE_OLD
            else OPERATIONS[self.operation]
        )

    def cell(self, column: str) -> str:
        """A column's text: ``old → new`` where the update changed it."""
        if self.is_folded and self.old is not None and self.new is not None and column in self.changed:
            return fmt.cell(self.old.get(column)) + ARROW + fmt.cell(self.new.get(column))
        return fmt.cell(self.values.get(column))

    def key(self, columns: Sequence[str]) -> str:
        """The row identifier as ``column=value``; empty without one."""
        return ", ".join(f"{column}={fmt.cell(self.values.get(column))}" for column in columns)

    def key_values(self, columns: Sequence[str]) -> dict[str, object]:
        """The row identifier, by column."""
        return {column: self.values.get(column) for column in columns}

    def summary(self, columns: Sequence[str], limit: int = 3) -> str:
        """What happened in one line: the changed cells of an update, otherwise the first values."""
        named = [column for column in columns if column in self.changed] if self.is_update else list(columns)
        shown = ", ".join(f"{column} {self.cell(column)}" for column in named[:limit])
        rest = len(named) - limit
        return shown + (f" … {rest} more" if rest > 0 else "")


def place_text(place: Place) -> str:
    """A place as an address has it."""
    return "-".join(place)


def place_of(text: str) -> Place | None:
    """The place that an address has; None for what is none."""
    start, sign, seqval = text.partition("-")
    try:
        return (str(Lsn.parse(start)), str(Lsn.parse(seqval))) if sign else None
    except ValueError:
        return None


def changed_columns(mask: bytes | None, columns: Sequence[str]) -> tuple[str, ...]:
    """The captured columns whose bit is set; ``columns`` in ordinal order."""
    return tuple(name for ordinal, name in enumerate(columns, 1) if is_bit_set(ordinal, mask))


def fold(rows: Sequence[Mapping[str, object]], capture_instance: str, columns: Sequence[str]) -> list[Change]:
    """Changes from rows of a query function, newest first (so a 4 comes right before its 3).

    A row 3 whose 4 is not just before it stands alone; columns as captured, in ordinal order.
    """
    changes: list[Change] = []
    for row in rows:
        change = _change(row, capture_instance, columns)
        if change.operation is Operation.UPDATE_OLD and changes and _belong(changes[-1], change):
            changes[-1] = _fold_pair(changes[-1], change)
        else:
            changes.append(change)
    return changes


def _change(row: Mapping[str, object], capture_instance: str, columns: Sequence[str]) -> Change:
    operation = Operation(int(str(row[OPERATION])))
    mask = row.get(UPDATE_MASK)
    raw = bytes(mask) if isinstance(mask, (bytes, bytearray, memoryview)) else None
    values = {column: row.get(column) for column in columns}
    seqval, commit_time = row.get(SEQVAL), row.get(COMMIT_TIME)
    is_before = operation in (Operation.DELETE, Operation.UPDATE_OLD)
    return Change(
        capture_instance=capture_instance,
        operation=operation,
        start_lsn=str(row[START_LSN]),
        seqval=None if seqval is None else str(seqval),
        mask=raw,
        commit_time=commit_time if isinstance(commit_time, datetime) else None,
        old=values if is_before else None,
        new=None if is_before else values,
        changed=changed_columns(raw, columns),
    )


def _belong(after: Change, before: Change) -> bool:
    return (
        after.operation is Operation.UPDATE_NEW
        and after.old is None
        and (after.start_lsn, after.seqval) == (before.start_lsn, before.seqval)
    )


def _fold_pair(after: Change, before: Change) -> Change:
    return Change(
        capture_instance=after.capture_instance,
        operation=after.operation,
        start_lsn=after.start_lsn,
        seqval=after.seqval,
        mask=after.mask,
        commit_time=after.commit_time,
        old=before.old,
        new=after.new,
        changed=after.changed,
    )


def page_of(rows: Sequence[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    """One page out of ``size`` rows and one look-ahead row, so that no update is torn between pages.

    A row 3 at the top belongs to the page before; the look-ahead row is kept only when it is the
    row 3 of the page's last row.
    """
    page = list(rows[:size])
    ahead = rows[size] if len(rows) > size else None
    if ahead is not None and page and _is_pair(page[-1], ahead):
        page.append(ahead)
    if page and int(str(page[0][OPERATION])) == Operation.UPDATE_OLD:
        page.pop(0)
    return page


def _is_pair(after: Mapping[str, object], before: Mapping[str, object]) -> bool:
    codes = (int(str(after[OPERATION])), int(str(before[OPERATION])))
    same = (after[START_LSN], after.get(SEQVAL)) == (before[START_LSN], before.get(SEQVAL))
    return codes == (Operation.UPDATE_NEW, Operation.UPDATE_OLD) and same
