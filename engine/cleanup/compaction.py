"""Compaction and vacuum of the tables of one database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import structlog

from engine.control import ControlDatabase
from engine.lake.compaction import Compactor
from engine.lake.deletion import CHANGE_KEY, MAPPING_KEY
from engine.lake.failures import LakeFailed
from engine.lake.tables import Lake
from engine.model.compaction import CompactionOutcome

_log = structlog.get_logger(__name__)

VACUUM_PAUSE = 3600
"""Seconds between two vacuums of a table, which list its folder: what they delete has waited for hours."""


class Compaction:
    """Change tables and cdc.lsn_time_mapping: few files, and none that nobody reads.

    hours: files that no version of so many last hours refers to are deleted: a reader that began before is
    done. In the process that captures: two that write a table's log would not see each other.
    """

    def __init__(self, control: ControlDatabase, lake: Lake, compactor: Compactor, hours: int) -> None:
        self._control = control
        self._lake = lake
        self._compactor = compactor
        self._hours = hours
        self._vacuumed: dict[str, float] = {}

    def run(self, database: str, stop: Callable[[], bool] = lambda: False) -> CompactionOutcome:
        """Compacts and vacuums table by table, until ``stop``; one that fails stops no other."""
        compacted = written = 0
        vacuumed: list[int | None] = []
        failures: list[str] = []
        for path, order, is_there in self._tables(database):
            if stop():
                break
            try:
                done = self._compactor.compact(path, order, is_there, stop)
                compacted, written = compacted + done.before, written + done.after
                if is_there():
                    vacuumed.append(self._vacuum(path))
            except LakeFailed as error:
                if is_there():
                    _log.error("compaction failed", database=database, path=path, error=str(error))
                    failures.append(str(error))
        looked = [deleted for deleted in vacuumed if deleted is not None]
        unused = sum(looked) if looked or not vacuumed else None
        return CompactionOutcome(compacted, written, unused, stop(), tuple(failures))

    def _vacuum(self, path: str) -> int | None:
        """Files deleted; None where it is too soon to look for any again."""
        now = time.monotonic()
        if now - self._vacuumed.get(path, -VACUUM_PAUSE) < VACUUM_PAUSE:
            return None
        deleted = self._compactor.vacuum(path, self._hours)
        self._vacuumed[path] = now
        return deleted

    def _tables(self, database: str) -> Iterator[tuple[str, Sequence[str], Callable[[], bool]]]:
        """Path, what orders its rows, and whether the table still is to be there."""
        for instance in self._control.instances.list(database):
            name = instance.capture_instance
            if instance.start_lsn is not None:
                there = lambda name=name: self._control.instances.get(database, name) is not None  # noqa: E731
                yield self._lake.change_table(database, name), CHANGE_KEY, there
        if self._is_enabled(database):
            path = self._lake.lsn_time_mapping(database)
            yield path, MAPPING_KEY, lambda: self._is_enabled(database)

    def _is_enabled(self, database: str) -> bool:
        return self._control.watermarks.identity(database) is not None
