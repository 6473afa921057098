"""``python -m benchmarks.cleanup [--rows N] [--runs N]``: cleanup of nine tenths of a change table.

Against Delta's own ``DELETE`` of the same rows from a copy of the same table, which reads and rewrites row
by row. Target: at least 5 times as fast. One of the files holds rows of both kinds.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from benchmarks.queries import ROWS_A_COMMIT, Table, append_of, made, spark_session
from engine.lake.deletion import delete_below
from engine.lake.file_deletion import FileDeletion
from engine.lake.file_tables import FileTables
from engine.lake.publisher import Publisher
from engine.lake.sql_text import delta_table, quoted
from engine.lake.tables import Lake
from engine.model.change import START_LSN
from engine.model.job import CleanupParameters
from engine.model.lsn import Lsn

TARGET = 5.0


def main() -> int:
    """Measures and prints; exit code 1 when the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    with spark_session() as spark, tempfile.TemporaryDirectory(prefix="highwater-bench-") as folder:
        table = made(spark, Lake(f"{folder}/lake"), "large", arguments.rows)
        ratio = _ratio(spark, table, Path(folder), arguments.runs)
    return int(ratio < TARGET)


def _ratio(spark: SparkSession, table: Table, folder: Path, runs: int) -> float:
    """Prints and returns how many times as long the ``DELETE`` takes; both leave the same count of rows."""
    # Not at the end of a file: the rows of one are parted.
    watermark = Lsn.at(table.rows // 10 * 9 // ROWS_A_COMMIT - 7)
    by_files = FileDeletion(FileTables())
    threshold = CleanupParameters().threshold

    def ours(path: str) -> None:
        sum(delete_below(spark, path, watermark, threshold, by_files=by_files))

    def bare(path: str) -> None:
        spark.sql(f"DELETE FROM {delta_table(path)} WHERE {quoted(START_LSN)} < '{watermark}'").collect()

    last = table.rows, table.rows + ROWS_A_COMMIT
    times: dict[Callable[[str], None], list[float]] = {ours: [], bare: []}
    for run in range(runs + 1):
        left = set()
        for action, taken in times.items():
            copy = folder / f"copy-{run}-{action.__name__}"
            shutil.copytree(table.path, copy)
            # As in the agent, which captures into it: the table is open, and Delta has counted it.
            Publisher(spark).append([append_of(str(copy), table.instance, *last, table.rows)])
            began = time.perf_counter()
            action(str(copy))
            taken.append(time.perf_counter() - began)
            left.add(spark.read.format("delta").load(str(copy)).count())
            shutil.rmtree(copy)
        assert len(left) == 1, "both must leave the same"
    # The first round warms up.
    fast, slow = (median(taken[1:]) for taken in times.values())
    print(f"{table.rows:,} rows, {left.pop():,} stay")
    print(f"cleanup {fast:.3f} s, DELETE {slow:.3f} s: {slow / fast:.1f} x")
    return slow / fast


if __name__ == "__main__":
    sys.exit(main())
