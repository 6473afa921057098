"""What the query functions answer, as files and conditions: for readers that have no Spark of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from engine.query.net_plan import NetRows, net_plan
from engine.query.validity import ChangeRange, checked_range

_ALL = (START_LSN, SEQVAL, OPERATION, UPDATE_MASK)
_NET = (START_LSN, OPERATION, UPDATE_MASK)


@dataclass(frozen=True, slots=True)
class ChangePart:
    """A part of an answer: what one file has of it. Can be pickled."""

    instance: CaptureInstance
    asked: ChangeRange
    file: RangeFile
    net: NetRows | None = None
    """The rows that are net changes; None: all changes are asked for."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The part's rows, a batch at a time."""
        first = 0
        for batch in self._read(answer_schema(self.instance, self.net is not None).names):
            kept = self._of_all(batch) if self.net is None else self.net.of_batch(batch, first)
            first += batch.num_rows
            if kept.num_rows:
                yield kept

    def deciding(self, masks: bool) -> Iterator[pa.RecordBatch]:
        """The columns by which net changes are found; those of the key are called ``key_columns``."""
        of_name = dict(zip(self.instance.column_names, lake_columns(self.instance), strict=True))
        key = [of_name[name] for name in self.instance.index_column_names]
        columns = [START_LSN, COMMAND_ID, OPERATION, *([UPDATE_MASK] if masks else [])]
        for batch in self._read([*columns, *key]):
            yield batch.rename_columns([*columns, *key_columns(self.instance)])

    def _of_all(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.asked.row_filter_option != all_changes.ALL:
            return batch
        return batch.filter(pc.not_equal(batch[OPERATION], int(Operation.UPDATE_OLD)))

    def _read(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        schema = change_table_schema(self.instance)
        return rows_of_range(self.file, schema, START_LSN, self.asked.from_lsn, self.asked.to_lsn, columns)


@dataclass(frozen=True, slots=True)
class ChangeFiles:
    """A question to a query function and the files that hold its answer."""

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

    def parts(self) -> list[ChangePart]:
        """The answer in parts to be read independently, one for each file that has some of it.

        For net changes this reads the columns that decide which rows they are: once, whatever their number.
        """
        parts = [ChangePart(self.instance, self.asked, file) for file in self.files]
        if not self.net:
            return parts
        masks = self.asked.row_filter_option == net_changes.ALL_WITH_MASK
        plan = net_plan(
            lambda number: parts[number].deciding(masks),
            [file.rows for file in self.files],
            key_columns(self.instance),
            mask_width(len(self.instance.columns)),
            merge=self.asked.row_filter_option == net_changes.ALL_WITH_MERGE,
            masks=masks,
        )
        return [replace(parts[each.file], net=each) for each in plan]

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The answer, one part after the other."""
        for part in self.parts():
            yield from part.rows()


def key_columns(instance: CaptureInstance) -> list[str]:
    """How `ChangePart.deciding` calls the columns that identify a row: not as any column of its own."""
    return [f"key {place}" for place in range(len(instance.index_column_names))]


def answer_schema(instance: CaptureInstance, net: bool) -> pa.Schema:
    """Columns of `ChangeFiles.rows` and `ChangePart.rows`."""
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
