"""Rows are deleted while others are appended: neither waits for the other, nor fails on it."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pyarrow as pa

from engine.lake.deletion import MAPPING_KEY, delete_below
from engine.lake.publisher import Append, Publisher
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA
from engine.model.lsn import Lsn


def append(publisher: Publisher, path: str, first: int, count: int) -> None:
    """A file of rows whose commit positions count from ``first``."""
    positions, none = range(first, first + count), [None] * count
    rows = pa.table(
        [[str(Lsn.at(position)) for position in positions], none, none, [b"\x07"] * count, none],
        schema=LSN_TIME_MAPPING_SCHEMA,
    )
    commits = np.array(list(positions), np.uint64)
    publisher.append([Append(path, rows, commits, np.ones(count, np.int32))])


def left(spark, path: str) -> list[int]:
    rows = spark.read.format("delta").load(path).toArrow().to_pylist()
    return sorted(Lsn.parse(row["start_lsn"]).position for row in rows)


def test_deleting_and_appending_go_on_side_by_side(spark, lake_root):
    path = str(lake_root / "mapping")
    publisher = Publisher(spark, fsync=False)
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    for first in (1, 11, 21):
        append(publisher, path, first, 10)
    stop, appended = Event(), 0

    def go_on() -> None:
        nonlocal appended
        while not stop.is_set():
            append(publisher, path, 100 + appended, 1)
            appended += 1

    load = Thread(target=go_on)
    load.start()
    try:
        deleted = []
        for rows in delete_below(spark, path, Lsn.at(25), 3, MAPPING_KEY):
            deleted.append(rows)
            seen = appended
            while appended < seen + 2 and load.is_alive():
                stop.wait(0.01)  # some in between, whatever the machine does
    finally:
        stop.set()
        load.join()
    assert deleted == [20, 3, 1]
    assert left(spark, path) == [*range(25, 31), *range(100, 100 + appended)]
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)


def test_a_table_of_an_earlier_version_gets_its_isolation_when_it_is_opened(spark, lake_root):
    path = lake_root / "old"
    publisher = Publisher(spark, fsync=False)
    publisher.create(str(path), LSN_TIME_MAPPING_SCHEMA)
    append(publisher, str(path), 1, 2)
    entry = path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        action.get("metaData", {}).get("configuration", {}).pop("delta.isolationLevel", None)
    Path(path.parent / "copy" / "_delta_log").mkdir(parents=True)
    copy = path.parent / "copy"
    (copy / "_delta_log" / entry.name).write_text("\n".join(map(json.dumps, actions)) + "\n")
    for _ in range(2):
        Publisher(spark, fsync=False).create(str(copy), LSN_TIME_MAPPING_SCHEMA)
    [metadata] = [
        json.loads(line)["metaData"]
        for line in (copy / "_delta_log" / f"{1:020d}.json").read_text().splitlines()
        if "metaData" in line
    ]
    assert metadata["configuration"]["delta.isolationLevel"] == "WriteSerializable"
    assert not (copy / "_delta_log" / f"{2:020d}.json").exists()
    append(Publisher(spark, fsync=False), str(copy), 1, 3)
    assert left(spark, str(copy)) == [1, 2, 3]
