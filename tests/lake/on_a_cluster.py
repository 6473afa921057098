"""``python -m tests.lake.on_a_cluster MASTER FOLDER``: change tables written and read by executors.

In a process of its own: a process has one session. Prints what it found as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from engine.lake.publisher import Publisher
from engine.lake.spark import build_session
from engine.lake.tables import Lake, change_table_schema
from engine.runtime.jars import delta_jars
from engine.settings import Settings
from tests.lake.change_tables import append_of, capture_instance

INSTANCE = capture_instance({"id": "int", "name": "string"}, ["id"])


def main(master: str, folder: str) -> None:
    """Appends by Arrow and by Spark, reads both."""
    memory = {"spark.executor.memory": "512m"}
    session = build_session(master, "1g", delta_jars(Settings().jars), None, memory)
    lake = Lake(folder)
    path = lake.change_table("shop", "dbo_t")
    Publisher(session, fsync=False).create(path, change_table_schema(INSTANCE))
    for commit, by_spark in ((10, False), (20, True), (30, False)):
        rows = [(commit, 1, 2, (commit, f"n{commit}"))]
        Publisher(session, through_spark=by_spark, fsync=False).append([append_of(lake, INSTANCE, rows)])
    found = session.read.format("delta").load(path).select("id", "name").orderBy("id").collect()
    print(json.dumps({"rows": [list(row) for row in found], "processes": _processes(session)}))
    session.stop()


def _processes(session: SparkSession) -> int:
    """How many processes other than this one's JVM ran four tasks."""
    tasks = session.range(4, numPartitions=4).mapInArrow(_parent, "parent long").collect()
    return len({row["parent"] for row in tasks} - {os.getpid()})


def _parent(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"parent": [_executor()]})


def _executor() -> int:
    """The JVM that this Python worker's daemon belongs to."""
    facts = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8")
    return int(facts.rsplit(")", 1)[1].split()[1])


if __name__ == "__main__":
    main(*sys.argv[1:])
