"""``python -m benchmarks.compaction [--files N] [--runs N]``: a change table of many small files.

As a capture job of a quiet database leaves it: a file and a log entry for each scan, four rows each. Prints
how long all changes of 1 % of the commits and of all of them take, by Spark and by the readers of files,
before and after compaction, and how long that takes itself.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import pyarrow as pa
from pyspark.sql import SparkSession

from engine.lake.compaction import Compactor
from engine.lake.deletion import CHANGE_KEY
from engine.lake.file_commits import COMMAND_APP_ID, COMMIT_APP_ID
from engine.lake.file_tables import FileTables
from engine.lake.parquet_files import PhysicalColumn, write_files
from engine.lake.publisher import Publisher
from engine.lake.spark import build_session
from engine.lake.tables import Lake, change_table_schema
from engine.lake.tail import TableTail
from engine.model.capture_instance import CapturedColumn, CaptureInstance
from engine.model.lsn import Lsn
from engine.query.all_changes import ALL, all_changes
from engine.query.change_files import change_files
from engine.settings import Settings

ROWS_A_FILE = 4
LOG_ENTRIES_A_CHECKPOINT = 100


def main() -> None:
    """Makes the table, measures, compacts, measures again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    settings = Settings(home=Path(tempfile.gettempdir()) / "highwater-no-home")
    jars = sorted(settings.jars.glob("*.jar"))
    spark = build_session("local[2]", settings.driver_memory, jars, None, settings.spark_settings)
    with tempfile.TemporaryDirectory(prefix="highwater-bench-") as folder:
        lake, instance = Lake(folder), _instance()
        path = _made(spark, lake, instance, arguments.files)
        _measure("before", spark, lake, instance, arguments.files, arguments.runs)
        began = time.perf_counter()
        done = Compactor(FileTables()).compact(path, CHANGE_KEY)
        print(f"compaction: {done.before:,} files to {done.after} in {time.perf_counter() - began:.1f} s")
        _measure("after", spark, lake, instance, arguments.files, arguments.runs)
    spark.stop()


def _measure(
    when: str, spark: SparkSession, lake: Lake, instance: CaptureInstance, files: int, runs: int
) -> None:
    high, tail = Lsn.at(files), TableTail()
    path = lake.change_table(instance.database, instance.capture_instance)
    for what, first in (("1 % of the commits", files - files // 100 + 1), ("all commits", 1)):
        low = Lsn.at(first)

        def by_spark(low: Lsn = low) -> int:
            version = tail.version(path)
            found = all_changes(spark, lake, instance, low, high, high, ALL, version)
            return int(found.toArrow().num_rows)

        def by_files(low: Lsn = low) -> int:
            found = change_files(lake, instance, False, low, high, high, ALL)
            return sum(batch.num_rows for batch in found.rows())

        rows = (files - first + 1) * ROWS_A_FILE
        assert by_spark() == by_files() == rows
        print(
            f"{when}, {what}, {rows:,} rows: Spark {_median(by_spark, runs):.2f} s,"
            f" files {_median(by_files, runs):.2f} s",
            flush=True,
        )


def _median(measured: Callable[[], int], runs: int) -> float:
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        measured()
        seconds.append(time.perf_counter() - began)
    return median(seconds)


def _made(spark: SparkSession, lake: Lake, instance: CaptureInstance, files: int) -> str:
    """The table; its log entries are those of the publisher, written without a transaction each."""
    schema, path = change_table_schema(instance), lake.change_table(instance.database, "small")
    publisher = Publisher(spark, fsync=False)
    publisher.create(path, schema)
    columns = {name: PhysicalColumn(name, None) for name in schema.names}
    for commit in range(1, files + 1):
        [file] = write_files(Path(path), _rows(schema, commit), columns, fsync=False)
        reached = ((COMMIT_APP_ID, commit), (COMMAND_APP_ID, ROWS_A_FILE))
        actions = [json.dumps({"txn": {"appId": app, "version": version}}) for app, version in reached]
        entry = Path(path) / "_delta_log" / f"{commit:020d}.json"
        entry.write_text("\n".join([file.action(), *actions]) + "\n")
        if commit % LOG_ENTRIES_A_CHECKPOINT == 0:
            publisher.maintain(path)
    return path


def _rows(schema: pa.Schema, commit: int) -> pa.Table:
    commands = range(1, ROWS_A_FILE + 1)
    values = [
        [str(Lsn.at(commit))] * ROWS_A_FILE,
        [None] * ROWS_A_FILE,
        [str(Lsn.at(commit, command)) for command in commands],
        [2] * ROWS_A_FILE,
        [b"\x03"] * ROWS_A_FILE,
        [commit * ROWS_A_FILE + command for command in commands],
        [f"a note on row {commit}" for _ in commands],
        list(commands),
    ]
    return pa.table([pa.array(each, field.type) for each, field in zip(values, schema, strict=True)], schema)


def _instance() -> CaptureInstance:
    types = {"id": "bigint", "note": "string"}
    return CaptureInstance(
        object_id=1,
        database="bench",
        capture_instance="small",
        source_schema="public",
        source_table="small",
        source_object_id=1,
        start_lsn=Lsn.ZERO,
        supports_net_changes=False,
        role_name=None,
        index_name=None,
        filegroup_name=None,
        create_date=datetime.now(UTC),
        columns=tuple(
            CapturedColumn(name, number, kind, number, False, kind)
            for number, (name, kind) in enumerate(types.items(), 1)
        ),
        index_columns=(),
    )


if __name__ == "__main__":
    main()
