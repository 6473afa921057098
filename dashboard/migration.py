"""Changing over from one capture instance to another after DDL: where it stands, by metadata alone. Pure.

Nothing is remembered of who began it: whoever opens the page later goes on where the metadata stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from dashboard.statements import EnableTable
from engine.model.capture_instance import CaptureInstance
from engine.model.client import Client
from engine.model.ddl_history import SchemaChange
from engine.model.lsn import Lsn
from engine.model.table_shape import ShapeColumn

MAX_INSTANCES = 2
MAX_NAME = 100
_VERSION = re.compile(r"_v\d+$")


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One column before and after; a name of None: not there. ``what`` is empty where all is the same."""

    before: str | None
    before_type: str
    after: str | None
    after_type: str
    what: str


def column_changes(before: Sequence[ShapeColumn], after: Sequence[ShapeColumn]) -> list[ColumnChange]:
    """Columns of both shapes in the order of the source's numbers."""
    old, new = ({column.column_id: column for column in shape} for shape in (before, after))
    return [_change(old.get(number), new.get(number)) for number in sorted(old | new)]


def _change(old: ShapeColumn | None, new: ShapeColumn | None) -> ColumnChange:
    if old is None or new is None:
        only = old or new
        assert only is not None
        if old is None:
            return ColumnChange(None, "", only.name, only.source_type, "added")
        return ColumnChange(only.name, only.source_type, None, "", "dropped")
    words = []
    if old.name != new.name:
        words.append("renamed")
    if not new.is_typed_as(old.source_type, old.lake_type, old.type_id):
        words.append("another type")
    return ColumnChange(old.name, old.source_type, new.name, new.source_type, ", ".join(words))


def differences(instance: CaptureInstance, changes: Sequence[SchemaChange]) -> list[ColumnChange]:
    """What the instance captures otherwise than the source has it now, as far as the log was read.

    changes: the database's DDL history. Columns left out when the instance was enabled are no difference.
    """
    left_out = _at_first(instance, changes) - {column.column_id for column in instance.columns}
    captured = [
        ShapeColumn(column.column_id, column.column_name, column.column_type, column.lake_type)
        for column in instance.columns
    ]
    now = [column for column in instance.source_columns if column.column_id not in left_out]
    if not instance.source_columns:
        return []
    return [change for change in column_changes(captured, now) if change.what]


def _at_first(instance: CaptureInstance, changes: Sequence[SchemaChange]) -> set[int]:
    """Numbers of the columns that the source had when the instance was enabled."""
    mine = [each for each in changes if each.history.capture_instance == instance.capture_instance]
    shape = mine[0].columns_before if mine else instance.source_columns
    return {column.column_id for column in shape or ()}


class Step(IntEnum):
    """What is to be done next. The same numbers as on the page."""

    CHANGED = 1
    SECOND = 2
    OVERLAP = 3
    CONSUMERS = 4
    SWITCH = 5
    DROP = 6


STEPS = {
    Step.CHANGED: "What changed",
    Step.SECOND: "Second instance",
    Step.OVERLAP: "Overlap",
    Step.CONSUMERS: "Consumers",
    Step.SWITCH: "Switch",
    Step.DROP: "Drop the old",
}


@dataclass(frozen=True, slots=True)
class Migration:
    """A table on its way. ``new`` is None before the second instance is there.

    differences: of the newest instance to the source. is_crowded: both instances are behind the source, so
    that one must go before a new one can come.
    """

    step: Step
    old: CaptureInstance
    new: CaptureInstance | None
    differences: tuple[ColumnChange, ...]

    @property
    def is_crowded(self) -> bool:
        """Whether there are two instances, and neither is as the source is now."""
        return self.new is not None and bool(self.differences)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to do."""
        return self.new is not None or bool(self.differences)


def migration(
    instances: Sequence[CaptureInstance], changes: Sequence[SchemaChange], high: Lsn | None
) -> Migration:
    """Where a table stands. instances: those of the table, one or two; high: the high watermark."""
    ordered = sorted(instances, key=lambda each: each.object_id)
    old, new = ordered[0], (ordered[1] if len(ordered) == MAX_INSTANCES else None)
    apart = tuple(differences(new or old, changes))
    if new is None:
        return Migration(Step.SECOND if apart else Step.CHANGED, old, None, apart)
    return Migration(Step.CONSUMERS if overlaps(old, new, high) else Step.OVERLAP, old, new, apart)


def overlaps(old: CaptureInstance, new: CaptureInstance, high: Lsn | None) -> bool:
    """Whether there is an LSN that both may be asked for: consumers can change over there."""
    starts = (old.start_lsn, new.start_lsn)
    return high is not None and all(start is not None and start <= high for start in starts)


def clients_of(clients: Sequence[Client], instance: CaptureInstance) -> list[Client]:
    """The registered consumers of an instance."""
    return [each for each in clients if each.capture_instance == instance.capture_instance]


def has_reached(client: Client, place: Lsn) -> bool:
    """Whether a consumer has everything up to ``place``, so that it may go on in another instance there."""
    return client.acknowledged_lsn is not None and client.acknowledged_lsn >= place


def tables_of(instances: Sequence[CaptureInstance]) -> dict[str, list[CaptureInstance]]:
    """Instances by ``schema.table``, by name."""
    found: dict[str, list[CaptureInstance]] = {}
    for each in sorted(instances, key=lambda i: (i.source_schema, i.source_table, i.object_id)):
        found.setdefault(f"{each.source_schema}.{each.source_table}", []).append(each)
    return found


def free_name(instance: CaptureInstance, taken: Sequence[CaptureInstance]) -> str:
    """A name for the second instance: that of the first with the next number."""
    names = {each.capture_instance.lower() for each in taken}
    stem = _VERSION.sub("", instance.capture_instance)
    return next(name for name in _names(stem) if name.lower() not in names)


def _names(stem: str) -> Iterator[str]:
    number = 2
    while True:
        suffix = f"_v{number}"
        yield stem[: MAX_NAME - len(suffix)] + suffix
        number += 1


def wanted_columns(instance: CaptureInstance, changes: Sequence[SchemaChange]) -> list[str]:
    """What a second instance should capture: what the first does, under today's names, and what was added."""
    kept = [name for name in instance.source_names() if name is not None]
    added = [each.after for each in differences(instance, changes) if each.what == "added" and each.after]
    order = [column.name for column in instance.source_columns]
    return sorted({*kept, *added}, key=order.index)


def second(old: CaptureInstance, name: str, columns: Sequence[str]) -> EnableTable:
    """The call that enables the second instance: as the first is, but for its name and columns."""
    everything = [column.name for column in old.source_columns]
    return EnableTable(
        source_schema=old.source_schema,
        source_name=old.source_table,
        capture_instance=name,
        supports_net_changes=old.supports_net_changes,
        role_name=old.role_name,
        index_name=old.index_name,
        captured_columns=None if list(columns) == everything else tuple(columns),
        allow_partition_switch=old.partition_switch,
    )
