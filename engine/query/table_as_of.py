"""A captured table as it was at an LSN: the source's rows of now, less what was captured since.

Change tables begin empty, so that a table's past is reached backwards: its rows are read at the source in one
snapshot, and what the transactions of the snapshot did after the LSN is taken back (`undone_changes`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from engine.errors import RangeOutsideValidity, RowIdentifierMissing
from engine.lake.sql_text import named, quoted
from engine.lake.tables import Lake, arrow_type, lake_columns
from engine.model.capture_instance import CaptureInstance
from engine.model.change import COMMAND_ID, OPERATION, START_LSN
from engine.model.lsn import Lsn
from engine.query.all_changes import ALL_UPDATE_OLD, asked_rows
from engine.query.lsn_functions import published_mapping
from engine.query.spool import tidy
from engine.query.undone_changes import undone
from engine.query.validity import ChangeRange
from engine.sources.base import UnseenTransactions

FUNCTION = "highwater.table_as_of"
"""How error 313 calls it."""
ROWS_A_FILE = 1_000_000
"""Rows of the source in one file: Spark reads several files at a time."""


class TableAsOf:
    """The rows of a table at an LSN. To be closed, by ``with`` or `close`: until then its files are kept.

    lsn: the asked one. row_count: how many rows the source has now, which had to be read. frame: the captured
    columns under the source's names, in no order; each evaluation of it asks Spark anew.
    """

    def __init__(self, lsn: Lsn, frame: DataFrame, row_count: int, place: Path) -> None:
        self.lsn = lsn
        self.frame = frame
        self.row_count = row_count
        self._place = place

    def close(self) -> None:
        """Removes what was kept; ``frame`` can't be read any more."""
        removed(self._place)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def removed(place: Path) -> None:
    """Forgets what `spooled_rows` wrote."""
    shutil.rmtree(place, ignore_errors=True)


def checked_lsn(instance: CaptureInstance, lsn: Lsn | None, high: Lsn | None) -> Lsn:
    """The LSN when the table as of it may be asked for, decided without Spark.

    high: fn_cdc_get_max_lsn(), None when nothing has been published. Raises RangeOutsideValidity for NULL or
    an LSN outside the validity interval, RowIdentifierMissing.
    """
    if not instance.index_columns:
        raise RowIdentifierMissing(instance.capture_instance, instance.source_schema, instance.source_table)
    if lsn is None or high is None or instance.start_lsn is None or not instance.start_lsn <= lsn <= high:
        raise RangeOutsideValidity(FUNCTION)
    return lsn


def unseen_commits(
    spark: SparkSession, lake: Lake, database: str, unseen: UnseenTransactions, upto: Lsn
) -> Sequence[Lsn]:
    """Commit LSNs up to ``upto`` of captured transactions that a snapshot does not have; few.

    ``upto`` must have been published.
    """
    condition = " OR ".join(
        f"tran_id BETWEEN X'{low.hex()}' AND X'{high.hex()}'" for low, high in unseen.ranges
    )
    found = published_mapping(spark, lake, database, upto).where(condition or "false")
    return [Lsn.parse(text) for text in found.selectExpr("start_lsn").toArrow()["start_lsn"].to_pylist()]


def rows_as_of(
    spark: SparkSession,
    lake: Lake,
    instance: CaptureInstance,
    source_rows: Path,
    lsn: Lsn,
    end: Lsn,
    unseen: Sequence[Lsn],
    version: int | None,
) -> DataFrame:
    """The rows at ``lsn``, the captured columns under the source's names.

    source_rows: what `spooled_rows` wrote of a snapshot. end: the commits of all its transactions are below;
    unseen: commits below it that it does not have. version: of the change table, None: that of the moment.
    """
    places = [_place(number) for number in range(len(instance.columns))]
    schema = ", ".join(
        f"{place} {column.lake_type}" for place, column in zip(places, instance.columns, strict=True)
    )
    rows = spark.read.schema(schema).parquet(source_rows.as_uri())
    captured = zip(map(quoted, lake_columns(instance)), places, strict=True)
    own = [(quoted(name), name) for name in (START_LSN, COMMAND_ID, OPERATION)]
    asked = ChangeRange(lsn.next(), end, ALL_UPDATE_OLD)
    changes = asked_rows(spark, lake, instance, asked, version).selectExpr(*named([*own, *captured]))
    if unseen:
        listed = ", ".join(f"'{each}'" for each in unseen)
        changes = changes.where(f"{quoted(START_LSN)} NOT IN ({listed})")
    key = [places[instance.column_names.index(name)] for name in instance.index_column_names]
    found = undone(rows, changes, key)
    return found.selectExpr(*named(zip(places, instance.column_names, strict=True)))


def spooled_rows(
    batches: Iterator[pa.RecordBatch],
    instance: CaptureInstance,
    folder: Path,
    check: Callable[[], None],
) -> tuple[Path, int]:
    """Writes a snapshot's rows where Spark reads them, as they come; a new folder in ``folder``, how many.

    batches: as `TableSnapshot.rows` gives them. check: called for each; what it raises ends it, and nothing
    stays behind. Raises OSError.
    """
    tidy(folder)
    place = folder / uuid4().hex
    place.mkdir(parents=True)
    try:
        return place, _written(batches, _schema(instance), place, check)
    except BaseException:
        removed(place)
        raise


def _written(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, place: Path, check: Callable[[], None]
) -> int:
    count, files = 0, 0
    batch = next(batches, None)
    while files == 0 or batch is not None:
        upto = (files + 1) * ROWS_A_FILE
        # As the lake's own files are: Spark reads decimals of up to 18 digits from integers.
        with pq.ParquetWriter(
            place / f"part-{files:05d}.parquet",
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=False,
            store_decimal_as_integer=True,
            store_schema=False,
        ) as writer:
            while batch is not None and count < upto:
                check()
                writer.write_batch(_whole(batch, schema))
                count += batch.num_rows
                batch = next(batches, None)
        files += 1
    return count


def _whole(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """With NULL in the columns that the source does not give."""
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = [
        given.get(str(number), pa.nulls(batch.num_rows, field.type)) for number, field in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _schema(instance: CaptureInstance) -> pa.Schema:
    types = [arrow_type(column.lake_type) for column in instance.columns]
    return pa.schema([(_place(number), type_) for number, type_ in enumerate(types)])


def _place(number: int) -> str:
    """How a column is called on its way: Spark takes ``Id`` and ``id`` for one name."""
    return f"c{number}"
