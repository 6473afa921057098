"""Which instances capture, as the log tells it while it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.capture.change_rows import Captured
from engine.model.capture_instance import CaptureInstance
from engine.sources.base import InstanceDisabled, InstanceEnabled, LogEvent, LogPiece


class CapturedInstances:
    """The instances of one database, and what the log said of them since the last publication."""

    def __init__(self, known: Sequence[CaptureInstance]) -> None:
        """``known``: the control database's; those without a start_lsn wait for the log's word."""
        self._captured = {
            instance.object_id: Captured(instance, instance.start_lsn.position)
            for instance in known
            if instance.start_lsn is not None
        }
        self._recognised: dict[int, CaptureInstance] = {}
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
    def ended(self) -> dict[int, str]:
        """Object ids and names of instances whose end was met in the log and not yet published."""
        return dict(self._ended)

    def take(self, piece: LogPiece) -> tuple[CaptureInstance, ...]:
        """Obeys the piece's events in order; the instances that begin in it.

        An instance that ends within the piece is left out of it altogether: its metadata went when it
        was disabled, so nobody can read the rows.
        """
        begun: dict[int, CaptureInstance] = {}
        for event in piece.events:
            self._obey(event, piece, begun)
        return tuple(begun.values())

    def published(self) -> None:
        """What was met is in the control database now."""
        self._recognised.clear()
        self._ended.clear()

    def is_live(self, capture_instance: str) -> bool:
        """Whether an instance of this name captures."""
        return any(one.instance.capture_instance == capture_instance for one in self._captured.values())

    def _obey(self, event: LogEvent, piece: LogPiece, begun: dict[int, CaptureInstance]) -> None:
        if isinstance(event, InstanceEnabled):
            if event.instance.object_id in self._captured:
                # Published before; the log is read again from an older place.
                return
            start = piece.transactions[event.transaction].commit_lsn
            instance = replace(event.instance, start_lsn=start)
            self._captured[instance.object_id] = Captured(instance, start.position)
            self._recognised[instance.object_id] = begun[instance.object_id] = instance
        else:
            self._end(event)
            begun.pop(event.object_id, None)

    def _end(self, event: InstanceDisabled) -> None:
        self._captured.pop(event.object_id, None)
        self._recognised.pop(event.object_id, None)
        self._ended[event.object_id] = event.capture_instance
