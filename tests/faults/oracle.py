"""The rows that change tables must have, computed row by row from what the source committed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.faults.source_replay import Change, Image, Transaction

Row = dict[str, Any]
Parse = Callable[[str], Any]


@dataclass(frozen=True)
class Table:
    """A table as the oracle knows it: how its values read, and its row identifier."""

    name: str
    columns: Mapping[str, Parse]
    key: tuple[str, ...] = ()

    @property
    def capture_instance(self) -> str:
        return self.name.replace(".", "_")


def number(text: str) -> Decimal:
    return Decimal(text)


def boolean(text: str) -> bool:
    return text == "t"


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def expected_rows(transactions: Sequence[Transaction], table: Table) -> list[Row]:
    """Change rows of the table in order: start LSN, command, operation."""
    rows: list[Row] = []
    for transaction in transactions:
        before, counter = -1, 0
        for command, change in enumerate(transaction.changes, 1):
            counter = counter + 1 if change.position == before else 0
            before = change.position
            if change.table == table.name:
                rows += _rows(table, transaction.commit, change, counter, command)
    return rows


def _rows(table: Table, commit: int, change: Change, counter: int, command: int) -> list[Row]:
    old, new = _values(table, change.old), _values(table, change.new)
    operations, mask = ((1, old), (2, new)), (1 << len(table.columns)) - 1
    if old is not None and new is not None:
        changed = [name for name in table.columns if old[name] != new[name]]
        if not changed:
            return []
        if not set(changed) & set(table.key):
            operations = ((3, old), (4, new))
            mask = sum(1 << place for place, name in enumerate(table.columns) if name in changed)
    return [
        {
            "__$start_lsn": f"0x{commit:016X}0000",
            "__$end_lsn": None,
            "__$seqval": f"0x{change.position:016X}{counter:04X}",
            "__$operation": operation,
            "__$update_mask": mask.to_bytes(-(-len(table.columns) // 8), "big"),
            **image,
            "__$command_id": command,
        }
        for operation, image in operations
        if image is not None
    ]


def _values(table: Table, image: Image | None) -> Row | None:
    if image is None:
        return None
    texts = {name: image[name] for name in table.columns}
    return {name: None if text is None else table.columns[name](text) for name, text in texts.items()}


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Rows as a consumer orders them."""
    keys = ("__$start_lsn", "__$command_id", "__$seqval", "__$operation")
    return sorted(rows, key=lambda row: tuple(row[key] for key in keys))


def difference(expected: Sequence[Row], found: Sequence[Row]) -> str | None:
    """Where two lists of rows first differ, in words; None when they are equal, columns and order too."""
    for place, (wanted, got) in enumerate(zip(expected, found, strict=False)):
        if list(wanted.items()) != list(got.items()):
            return f"row {place} is {got}, not {wanted}"
    if len(expected) != len(found):
        longer = "lost" if len(expected) > len(found) else "too many"
        return (
            f"{len(found)} rows, not {len(expected)}: {longer} from row {min(len(expected), len(found))} on"
        )
    return None
