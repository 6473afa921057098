"""Large results on their way from Spark to whoever asked: through files, so that no memory holds them.

Spark Connect keeps what a client has not fetched yet in the agent's heap, however much it is; what goes to
files is written as it comes.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

LARGE = 8 * 1024 * 1024
"""Bytes expected of a result, from which on it passes through files: some 400,000 rows of changes."""
BATCH = 8192
_KEPT_SECONDS = 86_400
"""What a client that was killed left is removed by another, a day later."""
_UNITS = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4, "PiB": 5, "EiB": 6}
_SIZE = re.compile(r"sizeInBytes=([0-9.E+]+) (EiB|PiB|TiB|GiB|MiB|KiB|B)\b")
_PLAIN = re.compile(r"(string|binary|boolean|tinyint|smallint|int|bigint|float|double|decimal\(.*\))$")


def is_large(spark: SparkSession, query: str, lake_types: Sequence[str]) -> bool:
    """Whether Spark expects a large result of a query, of types that its files hold as they are."""
    if not all(map(_PLAIN.match, lake_types)):
        return False
    explained = spark.sql(f"EXPLAIN COST {query}").collect()
    # What can't be planned is explained in several rows: the query itself then says why.
    return len(explained) == 1 and expected_bytes(explained[0][0]) >= LARGE


def expected_bytes(explained: str) -> float:
    """The size of the result in what ``EXPLAIN COST`` says, the first node's; 0 where it says none."""
    found = _SIZE.search(explained)
    return 0.0 if found is None else float(found[1]) * 1024 ** _UNITS[found[2]]


def spooled(frame: DataFrame, folder: Path) -> Generator[pa.Table]:
    """The rows, in the frame's order, some thousands at a time. Its files are gone when this ends.

    folder: where both Spark and this process reach it; made if missing. Raises what Spark does, OSError.
    """
    tidy(folder)
    place = folder / uuid4().hex
    try:
        frame.write.parquet(place.as_uri())
        for path in sorted(place.glob("part-*.parquet")):
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(BATCH):
                    yield pa.Table.from_batches([batch])
            path.unlink()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def tidy(folder: Path) -> None:
    """Removes what processes that were killed left in ``folder``, a day later."""
    if folder.is_dir():
        for each in folder.iterdir():
            if time.time() - each.stat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(each, ignore_errors=True)
