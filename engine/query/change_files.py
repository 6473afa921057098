"""What the query functions answer, as files and conditions: for readers that have no Spark of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from engine.errors import InvalidObjectName
from engine.lake.range_files import RangeFile, range_of_table, rows_of_range
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA, Lake, change_table_schema, lake_columns
from engine.model.capture_instance import CaptureInstance
from engine.model.change import COMMAND_ID, END_LSN, OPERATION, SEQVAL, START_LSN, UPDATE_MASK, Operation
from engine.model.lsn import Lsn
from engine.model.mask import mask_width
from engine.query import all_changes, net_changes
from engine.query.net_in_arrow import key_shares, net_rows
from engine.query.validity import ChangeRange, checked_range

_ROWS_OF_A_SHARE = 500_000
"""Rows that a process holds at once to find net changes, about."""
_ALL = (START_LSN, SEQVAL, OPERATION, UPDATE_MASK)
_NET = (START_LSN, OPERATION, UPDATE_MASK)


@dataclass(frozen=True, slots=True)
class ChangeFiles:
    """A question to a query function and the files that hold its answer. Can be pickled.

    ``shares``: into how many parts the answer falls, to be read independently with `rows`.
    """

    instance: CaptureInstance
    net: bool
    asked: ChangeRange
    files: tuple[RangeFile, ...]

    @property
    def schema(self) -> pa.Schema:
        """Columns of the answer: those of the function; all changes also have ``__$command_id`` at the end.

        An answer in parts has no order: sort all changes by ``__$start_lsn``, ``__$command_id``,
        ``__$seqval`` and ``__$operation`` where it matters. Captured columns are called as in the lake.
        """
        return answer_schema(self.instance, self.net)

    @property
    def shares(self) -> int:
        """At least one for each file of all changes, and for so many rows of net changes as fit in memory."""
        if not self.net:
            return len(self.files)
        return -(-sum(file.rows for file in self.files) // _ROWS_OF_A_SHARE)

    def rows(self, share: int) -> Iterator[pa.RecordBatch]:
        """One part of the answer: 0 … ``shares`` - 1."""
        if self.net:
            yield from self._net_rows(share)
            return
        for batch in self._read(self.files[share], self.schema.names):
            if self.asked.row_filter_option == all_changes.ALL:
                kept = batch.filter(pc.not_equal(batch[OPERATION], int(Operation.UPDATE_OLD)))
                if kept.num_rows:
                    yield kept
            else:
                yield batch

    def _read(self, file: RangeFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
        schema = change_table_schema(self.instance)
        return rows_of_range(file, schema, START_LSN, self.asked.from_lsn, self.asked.to_lsn, columns)

    def _net_rows(self, share: int) -> Iterator[pa.RecordBatch]:
        of_name = dict(zip(self.instance.column_names, lake_columns(self.instance), strict=True))
        key = [of_name[name] for name in self.instance.index_column_names]
        columns = [*self.schema.names, COMMAND_ID]
        parts = []
        for file in self.files:
            for batch in self._read(file, columns):
                part = pa.Table.from_batches([batch])
                if self.shares > 1:
                    part = part.filter(pa.array(key_shares(part, key, self.shares) == share))
                parts.append(part)
        if not parts:
            return
        option = self.asked.row_filter_option
        found = net_rows(
            pa.concat_tables(parts),
            key,
            mask_width(len(self.instance.columns)),
            merge=option == net_changes.ALL_WITH_MERGE,
            masks=option == net_changes.ALL_WITH_MASK,
        )
        yield from found.drop([COMMAND_ID]).to_batches()


def answer_schema(instance: CaptureInstance, net: bool) -> pa.Schema:
    """Columns of `ChangeFiles.rows`."""
    table = change_table_schema(instance)
    names = [*_NET, *lake_columns(instance)] if net else [*_ALL, *lake_columns(instance), COMMAND_ID]
    assert END_LSN not in names, "reserved, and always NULL"
    return pa.schema([table.field(name) for name in names])


def change_files(
    lake: Lake,
    instance: CaptureInstance,
    net: bool,
    from_lsn: Lsn | None,
    to_lsn: Lsn | None,
    high: Lsn | None,
    row_filter_option: str | None,
    version: int | None = None,
) -> ChangeFiles:
    """The files that answer, in one version of the change table. high: the published high watermark.

    version: which; the newest by default, which may lack rows that were cleaned up since the call began.

    Raises RangeOutsideValidity as the query functions do, InvalidObjectName for net changes of an instance
    without, TableNotReadable.
    """
    if net and not (instance.supports_net_changes and instance.index_columns):
        raise InvalidObjectName(f"{net_changes.FUNCTION}{instance.capture_instance}")
    function = net_changes.FUNCTION if net else all_changes.FUNCTION
    options = net_changes.NET_CHANGES_OPTIONS if net else all_changes.ALL_CHANGES_OPTIONS
    asked = checked_range(function, instance, from_lsn, to_lsn, high, row_filter_option, options)
    path = lake.change_table(instance.database, instance.capture_instance)
    empty = asked.from_lsn > asked.to_lsn
    found = None if empty else range_of_table(path, START_LSN, asked.from_lsn, asked.to_lsn, version)
    return ChangeFiles(instance, net, asked, () if found is None else found.files)


def last_commit_upto(lake: Lake, database: str, time: datetime, high: Lsn) -> Lsn | None:
    """The last commit LSN whose time is not after ``time`` (with its zone), up to ``high``; None without one.

    As fn_cdc_map_time_to_lsn with 'largest less than or equal'.
    """
    path = lake.lsn_time_mapping(database)
    names = ["start_lsn", "tran_end_time"]
    limit = pa.scalar(time, LSN_TIME_MAPPING_SCHEMA.field("tran_end_time").type)
    best: str | None = None
    for file in range_of_table(path, "start_lsn", Lsn.ZERO, high).files:
        for batch in rows_of_range(file, LSN_TIME_MAPPING_SCHEMA, "start_lsn", Lsn.ZERO, high, names):
            found = pc.max(batch.filter(pc.less_equal(batch["tran_end_time"], limit))["start_lsn"]).as_py()
            if found is not None and (best is None or found > best):
                best = found
    return None if best is None else Lsn.parse(best)
