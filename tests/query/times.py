"""Commit times as tests publish them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from engine.lake.publisher import Append, Publisher
from engine.lake.tables import LSN_TIME_MAPPING_SCHEMA, Lake
from engine.model.lsn import Lsn

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def publish_times(spark: SparkSession, lake: Lake, database: str, seconds: Mapping[int, float]) -> None:
    """cdc.lsn_time_mapping of a database: commit positions and when they ended, in seconds after noon."""
    publisher = Publisher(spark, fsync=False)
    path = lake.lsn_time_mapping(database)
    publisher.create(path, LSN_TIME_MAPPING_SCHEMA)
    none = [None] * len(seconds)
    times = [NOON + timedelta(seconds=each) for each in seconds.values()]
    rows = pa.table(
        [[str(Lsn.at(position)) for position in seconds], none, times, [b"\x07"] * len(seconds), none],
        schema=LSN_TIME_MAPPING_SCHEMA,
    )
    commits = np.array(list(seconds), np.uint64)
    publisher.append([Append(path, rows, commits, np.zeros(len(seconds), np.int32))])
