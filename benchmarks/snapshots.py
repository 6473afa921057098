"""Rows of custom_snapshots as weeks of collecting leave them: a file a day, the last hour's one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.collector.views import SESSIONS, SLOTS, TABLE_SIZES, CollectedView

INTERVAL = 300
"""Seconds between two snapshots."""
A_DAY = 86_400 // INTERVAL
_MOMENT = pa.timestamp("us", "UTC")
_RESTART = 10 * A_DAY
"""Snapshots from one start of the agent to the next."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Snapshots:
    """``count`` snapshots from ``start``, a midnight, of these databases; ids count from 1.

    sessions: new ones of a database in each, beside session 0 and the one that was the newest before.
    """

    start: datetime
    count: int
    databases: Sequence[str]
    sessions: int

    def parts(self) -> Iterator[tuple[int, int]]:
        """First snapshot and the one after the last, of each file."""
        hour = self.count - 12
        for first in range(0, hour, A_DAY):
            yield first, min(first + A_DAY, hour)
        yield from ((number, number + 1) for number in range(max(hour, 0), self.count))

    def moment(self, snapshots: Numbers) -> pa.Array:
        """When they were taken."""
        return self._at(snapshots * INTERVAL)

    def session_rows(self, first: int, end: int) -> pa.Table:
        """What the part has of sys.dm_cdc_log_scan_sessions."""
        snapshot, database, place = self._places(first, end, self.sessions + 2)
        session = np.where(place == 0, 0, snapshot * self.sessions + place - 1)
        began = snapshot * INTERVAL + (place - 2) * INTERVAL // max(self.sessions, 1)
        began = np.where(place == 0, 0, began).clip(0)
        commands = np.where(place == 0, snapshot, session % 97)
        values: dict[str, Any] = {
            "session_id": session,
            "start_time": self._at(began),
            "end_time": self._at(began + 4),
            "duration": session % 5,
            "scan_phase": pa.array(np.where(place == 0, "Aggregate", "Done")),
            "tran_count": commands // 3 + 1,
            "command_count": commands,
            "log_record_count": commands + 4,
            "latency": session % 11,
        }
        text = pa.array([f"{each:08X}:00000000:0000" for each in session], pa.string())
        others = {pa.string(): text, _MOMENT: self._at(began)}
        return self._table(SESSIONS, snapshot, database, values, others)

    def slot_rows(self, first: int, end: int) -> pa.Table:
        """What the part has of highwater.cdc_slot: the log held swings with the hours."""
        snapshot, database, _ = self._places(first, end, 1)
        held = (snapshot % 144 + database) * 1_000_000
        return self._table(SLOTS, snapshot, database, {"retained_bytes": held})

    def size_rows(self, first: int, end: int, instances: Sequence[str]) -> pa.Table:
        """What the part has of highwater.cdc_table_sizes: each database has these, all grow."""
        snapshot, database, place = self._places(first, end, len(instances))
        names = pa.array(instances)
        values = {
            "table_name": pa.array([f"{name}_CT" for name in instances]).take(pa.array(place)),
            "capture_instance": names.take(pa.array(place)),
            "row_count": snapshot * (place + 1),
            "file_count": place + 1,
            "size_bytes": snapshot * (place + 1) * 40,
        }
        return self._table(TABLE_SIZES, snapshot, database, values)

    def _places(self, first: int, end: int, width: int) -> tuple[Numbers, Numbers, Numbers]:
        """Snapshot, database and place within its rows, of each row."""
        grid = np.indices((end - first, len(self.databases), width)).reshape(3, -1)
        return grid[0] + first, grid[1], grid[2]

    def _at(self, seconds: Numbers) -> pa.Array:
        return pa.array((seconds + int(self.start.timestamp())) * 1_000_000, pa.int64()).cast(_MOMENT)

    def _table(
        self,
        view: CollectedView,
        snapshot: Numbers,
        database: Numbers,
        values: Mapping[str, Any],
        others: Mapping[pa.DataType, Any] | None = None,
    ) -> pa.Table:
        """others: what columns of a type have that are not among ``values``; else nothing, numbers 0."""
        zero = np.zeros(len(snapshot), np.int64)
        start = self._at(snapshot // _RESTART * _RESTART * INTERVAL)
        common = {
            "database_name": pa.array(self.databases).take(pa.array(database)),
            "snapshot_time": self.moment(snapshot),
            "snapshot_id": snapshot + 1,
            "collection_item_id": zero + 1,
            "engine_start": start,
            "agent_start": start,
            "interval_seconds": zero + INTERVAL,
            "snapshot_date": self.moment(snapshot).cast(pa.date32()),
            "collection_set_id": zero + 1,
        }
        known = {**values, **common}
        columns = []
        for field in view.schema:
            filler = zero if pa.types.is_integer(field.type) else pa.nulls(len(zero), field.type)
            value = known.get(field.name, (others or {}).get(field.type, filler))
            columns.append(pa.array(value).cast(field.type))
        return pa.Table.from_arrays(columns, schema=view.schema)
