"""``python -m benchmarks.queries [--rows N] [--runs N]``: the query functions against bare Spark.

Two ratios, each of medians over interleaved runs on one lake:

- all changes of 10,000 rows out of N (default 10,000,000), fetched as Arrow, against Spark reading the
  files that hold them by their names, with the same filter, order and columns. Target: at most 1.5.
- net changes over N / 10 changes (twice as many rows), computed and thrown away, against a bare
  ``row_number()`` over the same rows that keeps each key's last one. Target: at most 2.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from engine.capture.lsn_text import lsn_texts
from engine.lake.publisher import Append, Publisher
from engine.lake.spark import build_session
from engine.lake.sql_text import delta_table, quoted
from engine.lake.tables import Lake, change_table_schema
from engine.lake.tail import TableTail
from engine.model.capture_instance import CapturedColumn, CaptureInstance, IndexColumn
from engine.model.change import COMMAND_ID, OPERATION, SEQVAL, START_LSN, UPDATE_MASK
from engine.model.lsn import Lsn
from engine.model.mask import full_mask
from engine.query.all_changes import ALL_UPDATE_OLD, all_changes
from engine.query.net_changes import NET_CHANGES_OPTIONS, net_changes
from engine.settings import Settings

ASKED = 10_000
ROWS_A_COMMIT = 10
ROWS_AN_APPEND = 100_000
CHANGES_A_KEY = 4
ALL_TARGET, NET_TARGET = 1.5, 2.0
_WARM_UPS = 8
_COLUMNS = {
    "id": "bigint",
    "customer": "int",
    "amount": "decimal(12,2)",
    "ratio": "double",
    "paid": "boolean",
    "code": "string",
    "note": "string",
    "at": "timestamp",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A change table of ``rows`` rows: updates of rows/8 keys, each as often, ten rows a commit."""

    lake: Lake
    instance: CaptureInstance
    rows: int

    @property
    def high(self) -> Lsn:
        """The LSN of the last commit."""
        return Lsn.at(self.rows // ROWS_A_COMMIT)

    @property
    def path(self) -> str:
        """Where it is."""
        return self.lake.change_table(self.instance.database, self.instance.capture_instance)


def main() -> int:
    """Measures and prints; exit code 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=9)
    arguments = parser.parse_args()
    with spark_session() as spark, tempfile.TemporaryDirectory(prefix="highwater-bench-") as folder:
        lake = Lake(folder)
        large = made(spark, lake, "large", arguments.rows)
        small = made(spark, lake, "small", arguments.rows // 5)
        missed = _all_changes(spark, large, arguments.runs) > ALL_TARGET
        missed |= _net_changes(spark, small, arguments.runs) > NET_TARGET
    return int(missed)


def _all_changes(spark: SparkSession, table: Table, runs: int) -> float:
    """Prints and returns the ratio."""
    commits = ASKED // ROWS_A_COMMIT
    first = table.rows // ROWS_A_COMMIT // 2
    low, high = Lsn.at(first), Lsn.at(first + commits - 1)
    files = _files(spark, table, low, high)
    schema = spark.read.parquet(*files).schema
    tail = TableTail()

    def ours() -> int:
        version = tail.version(table.path)  # as the engine does
        found = all_changes(spark, table.lake, table.instance, low, high, table.high, ALL_UPDATE_OLD, version)
        return int(found.toArrow().num_rows)

    def bare() -> int:
        names = [START_LSN, SEQVAL, OPERATION, UPDATE_MASK, *_COLUMNS]
        order = [START_LSN, COMMAND_ID, SEQVAL, OPERATION]
        found = (
            spark.read.schema(schema)
            .parquet(*files)
            .where(f"{quoted(START_LSN)} BETWEEN '{low}' AND '{high}'")
            .orderBy(*(quoted(name) for name in order))
            .selectExpr(*(quoted(name) for name in names))
        )
        return int(found.toArrow().num_rows)

    assert ours() == bare() == ASKED, "both must answer alike"
    what = f"all changes, {ASKED:,} rows out of {table.rows:,} in {len(files)} file(s)"
    return _compare(what, ours, bare, "by file names", runs)


def _net_changes(spark: SparkSession, table: Table, runs: int) -> float:
    """Prints all options' ratios; returns that of ``all``."""
    order = ", ".join(f"{quoted(name)} DESC" for name in (START_LSN, COMMAND_ID, OPERATION))
    names = ", ".join(quoted(name) for name in (START_LSN, OPERATION, UPDATE_MASK, *_COLUMNS))

    def bare() -> int:
        return _thrown_away(
            spark.sql(
                f"SELECT {names} FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY {order}) AS n"
                f" FROM {delta_table(table.path)} WHERE {quoted(OPERATION)} <> 3) WHERE n = 1"
            )
        )

    ratios, tail = [], TableTail()
    for option in NET_CHANGES_OPTIONS:

        def ours(option: str = option) -> int:
            asked = (Lsn.at(0), table.high, table.high, option, tail.version(table.path))
            found = net_changes(spark, table.lake, table.instance, *asked)
            return _thrown_away(found)

        ratios.append(
            _compare(f"net changes, '{option}', {table.rows // 2:,} changes", ours, bare, "bare window", runs)
        )
    return ratios[0]


def _compare(what: str, ours: Callable[[], int], bare: Callable[[], int], bare_name: str, runs: int) -> float:
    """The ratio of the medians, after runs to warm up: the agent's session has been asked before."""
    seconds: dict[str, list[float]] = {"ours": [], "bare": []}
    for run in range(-_WARM_UPS, runs):
        for name, measured in (("ours", ours), ("bare", bare)):
            began = time.perf_counter()
            measured()
            if run >= 0:
                seconds[name].append(time.perf_counter() - began)
    mine, theirs = median(seconds["ours"]), median(seconds["bare"])
    print(f"{what}: {mine:.3f} s, {bare_name} {theirs:.3f} s, ratio {mine / theirs:.2f}", flush=True)
    return mine / theirs


def _thrown_away(frame: DataFrame) -> int:
    """Every row computed, none fetched."""
    frame.write.format("noop").mode("overwrite").save()
    return 0


def _files(spark: SparkSession, table: Table, low: Lsn, high: Lsn) -> list[str]:
    """Names of the files that hold rows of the range."""
    rows = spark.read.format("delta").load(table.path)
    inside = rows.where(f"{quoted(START_LSN)} BETWEEN '{low}' AND '{high}'")
    return [row[0] for row in inside.selectExpr("_metadata.file_path").distinct().collect()]


def made(spark: SparkSession, lake: Lake, name: str, rows: int) -> Table:
    """Writes a table as capture does: appends in log order, a checkpoint now and then."""
    instance = _instance(name)
    publisher, path = Publisher(spark, fsync=False), lake.change_table("bench", name)
    publisher.create(path, change_table_schema(instance))
    for first in range(0, rows, ROWS_AN_APPEND):
        publisher.append([append_of(path, instance, first, min(first + ROWS_AN_APPEND, rows), rows)])
    publisher.maintain(path)
    return Table(lake, instance, rows)


def append_of(
    path: str, instance: CaptureInstance, first: int, end: int, rows: int, start: int = 0, step: int = 1
) -> Append:
    """Rows first … end: pairs of an update's old and new row. Commits stand ``step`` apart from ``start`` on.

    The instance's columns are those of `_COLUMNS`.
    """
    number = np.arange(first, end)
    commits = (start + number // ROWS_A_COMMIT * step).astype(np.uint64)
    commands = (number % ROWS_A_COMMIT // 2 + 1).astype(np.int32)
    ids = (number // 2) % max(rows // 2 // CHANGES_A_KEY, 1)
    count = len(number)
    columns = [
        lsn_texts(commits),
        pa.nulls(count, pa.string()),
        lsn_texts(commits, commands.astype(np.uint16)),
        np.where(number % 2, 4, 3).astype(np.int32),
        pa.array([full_mask(len(_COLUMNS))] * count, pa.binary()),
        ids,
        (ids % 1000).astype(np.int32),
        pa.array(number % 100_000, pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
        number / 7,
        pa.array(number % 3 == 0),
        pa.array(np.char.add("code ", (number % 500).astype(str))),
        pa.array(np.char.add("a note on row ", number.astype(str))),
        pa.array(number * 1000, pa.int64()),
        commands,
    ]
    schema = change_table_schema(instance)
    arrays = [pa.array(values).cast(field.type) for values, field in zip(columns, schema, strict=True)]
    return Append(path, pa.Table.from_arrays(arrays, schema=schema), commits, commands)


def _instance(name: str) -> CaptureInstance:
    return CaptureInstance(
        object_id=1,
        database="bench",
        capture_instance=name,
        source_schema="public",
        source_table=name,
        source_object_id=1,
        start_lsn=Lsn.ZERO,
        supports_net_changes=True,
        role_name=None,
        index_name="pk",
        filegroup_name=None,
        create_date=datetime.now(UTC),
        columns=tuple(
            CapturedColumn(column, ordinal, lake_type, ordinal, False, lake_type)
            for ordinal, (column, lake_type) in enumerate(_COLUMNS.items(), 1)
        ),
        index_columns=(IndexColumn("id", 1, 1),),
    )


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """A session with the agent's settings."""
    settings = Settings(home=Path(tempfile.gettempdir()) / "highwater-no-home")
    jars = sorted(settings.jars.glob("*.jar"))
    spark = build_session("local[2]", settings.driver_memory, jars, None, settings.spark_settings)
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
