"""Which instances capture, as the log tells it while it is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import structlog

from engine.capture.alterations import altered, retypes
from engine.capture.change_rows import Captured
from engine.model.capture_instance import CaptureInstance
from engine.model.ddl_history import DdlEntry
from engine.sources.base import (
    InstanceDisabled,
    InstanceEnabled,
    LogPiece,
    LogTransaction,
    TableAltered,
    TableDropped,
)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a section's events did. begun: instances that begin in it; altered: others, before and after."""

    begun: tuple[CaptureInstance, ...]
    altered: tuple[tuple[CaptureInstance, CaptureInstance], ...]


class CapturedInstances:
    """The instances of one database, and what the log said of them since the last publication."""

    def __init__(self, known: Sequence[CaptureInstance], disabled: Collection[int] = ()) -> None:
        """``known``: the control database's; those without a start_lsn wait for the log's word.

        disabled: object ids of instances that are gone although the log has not told of their end yet.
        """
        self._disabled = frozenset(disabled)
        self._captured = {
            instance.object_id: Captured(instance, instance.start_lsn.position)
            for instance in known
            if instance.start_lsn is not None
        }
        self._recognised: dict[int, CaptureInstance] = {}
        self._altered: dict[int, CaptureInstance] = {}
        self._ddl: list[DdlEntry] = []
        self._ended: dict[int, str] = {}

    @property
    def captured(self) -> tuple[Captured, ...]:
        """Instances that capture now."""
        return tuple(self._captured.values())

    @property
    def recognised(self) -> tuple[CaptureInstance, ...]:
        """Instances met in the log and not yet published, with their start_lsn."""
        return tuple(self._recognised.values())

    @property
    def altered(self) -> tuple[CaptureInstance, ...]:
        """Instances published before whose table was altered, as they are now."""
        return tuple(self._altered.values())

    @property
    def ddl(self) -> tuple[DdlEntry, ...]:
        """Rows of cdc.ddl_history met in the log and not yet published."""
        return tuple(self._ddl)

    @property
    def ended(self) -> dict[int, str]:
        """Object ids and names of instances whose end was met in the log and not yet published."""
        return dict(self._ended)

    def take(self, section: LogPiece) -> Taken:
        """Obeys the section's events in order. A table is altered at its beginning only.

        An instance that ends within the section is left out of it altogether: its metadata went when it
        was disabled, so nobody can read the rows.
        """
        begun: dict[int, CaptureInstance] = {}
        changed: list[tuple[CaptureInstance, CaptureInstance]] = []
        for event in section.events:
            transaction = section.transactions[event.transaction]
            if isinstance(event, InstanceEnabled):
                self._begin(event, transaction, begun)
            elif isinstance(event, InstanceDisabled):
                self._end(event.object_id, event.capture_instance)
                begun.pop(event.object_id, None)
            elif isinstance(event, TableDropped):
                for instance in self._of_table(event.source_object_id):
                    _log.info("tracked table dropped", capture_instance=instance.capture_instance)
                    self._end(instance.object_id, instance.capture_instance)
                    begun.pop(instance.object_id, None)
            else:
                changed += self._alter(event, transaction)
        return Taken(tuple(begun.values()), tuple(changed))

    def published(self) -> None:
        """What was met is in the control database now."""
        self._recognised.clear()
        self._altered.clear()
        self._ddl.clear()
        self._ended.clear()

    def is_live(self, capture_instance: str) -> bool:
        """Whether an instance of this name captures."""
        return any(one.instance.capture_instance == capture_instance for one in self._captured.values())

    def _of_table(self, source_object_id: int) -> list[CaptureInstance]:
        instances = [captured.instance for captured in self._captured.values()]
        return [instance for instance in instances if instance.source_object_id == source_object_id]

    def _begin(
        self, event: InstanceEnabled, transaction: LogTransaction, begun: dict[int, CaptureInstance]
    ) -> None:
        number = event.instance.object_id
        if number in self._captured or number in self._disabled:
            # Published before, and the log is read again from an older place; or nobody wants it any more.
            return
        instance = replace(event.instance, start_lsn=transaction.commit_lsn)
        self._captured[instance.object_id] = Captured(instance, transaction.commit_lsn.position)
        self._recognised[instance.object_id] = begun[instance.object_id] = instance

    def _alter(
        self, event: TableAltered, transaction: LogTransaction
    ) -> list[tuple[CaptureInstance, CaptureInstance]]:
        """The table's instances before and after, each with its row of cdc.ddl_history."""
        changed = []
        for before in self._of_table(event.source_object_id):
            after = altered(before, event)
            self._captured[before.object_id] = replace(self._captured[before.object_id], instance=after)
            self._altered[before.object_id] = after
            if before.object_id in self._recognised:
                self._recognised[before.object_id] = after
            self._ddl.append(
                DdlEntry(
                    source_object_id=event.source_object_id,
                    object_id=before.object_id,
                    required_column_update=retypes(event, before),
                    ddl_command=event.ddl,
                    ddl_lsn=transaction.commit_lsn,
                    ddl_time=transaction.commit_time,
                    columns_before=before.source_columns,
                    columns_after=event.columns,
                )
            )
            changed.append((before, after))
        return changed

    def _end(self, object_id: int, capture_instance: str) -> None:
        self._captured.pop(object_id, None)
        self._recognised.pop(object_id, None)
        self._altered.pop(object_id, None)
        self._ddl = [entry for entry in self._ddl if entry.object_id != object_id]
        self._ended[object_id] = capture_instance
