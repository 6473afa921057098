"""``python -m benchmarks.spark_source [--rows N] [--runs N]``: format("highwater") against format("delta").

N rows of a change table (by default 2,000,000, which are 1,000,000 updates of 250,000 keys) are read by the
data source, all changes and net changes, and by Delta as they are. Two questions: every row of every column,
thrown away; and how many rows there are and what a column adds up to, for which Delta reads one column. Each
ratio is that of the medians of runs that take turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession

from benchmarks.engine_under_test import control_database
from benchmarks.queries import Table, made, spark_session
from engine.control.database import ControlDatabase
from engine.control.publication import Publication
from engine.lake.tables import Lake
from engine.settings import Settings
from engine.sources.base import LogIdentity
from engine.spark_source import HighwaterDataSource

_WARM_UPS = 2
_MODES: dict[str, dict[str, str]] = {
    "all": {},
    "net": {"mode": "net"},
    "net, with masks": {"mode": "net", "row_filter": "all with mask"},
}


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="highwater-bench-") as folder, spark_session() as spark:
        settings = Settings(home=Path(folder))
        table = made(spark, Lake(settings.lake), "t", arguments.rows)
        with control_database(settings) as control:
            _publish(control, table)
            spark.dataSource.register(HighwaterDataSource)
            for mode, options in _MODES.items():
                _measure(spark, table, settings.home, mode, options, arguments.runs)
    return 0


def _measure(
    spark: SparkSession, table: Table, home: Path, mode: str, options: dict[str, str], runs: int
) -> None:
    given = {"home": str(home), "database": "bench", "capture_instance": "t", **options}

    def ours() -> DataFrame:
        return spark.read.format("highwater").options(**given).load()

    def delta() -> DataFrame:
        return spark.read.format("delta").load(table.path)

    questions: dict[str, Callable[[DataFrame], object]] = {
        "all columns": lambda frame: frame.write.format("noop").mode("overwrite").save(),
        "count and sum": lambda frame: frame.selectExpr("count(*)", "sum(amount)").collect(),
    }
    for question, ask in questions.items():
        seconds: dict[str, list[float]] = {"ours": [], "delta": []}
        for run in range(-_WARM_UPS, runs):
            for name, frame in (("ours", ours), ("delta", delta)):
                began = time.perf_counter()
                ask(frame())
                if run >= 0:
                    seconds[name].append(time.perf_counter() - began)
        mine, theirs = median(seconds["ours"]), median(seconds["delta"])
        print(
            f"{mode}, {question}: {mine:.2f} s, delta {theirs:.2f} s, ratio {mine / theirs:.2f}", flush=True
        )


def _publish(control: ControlDatabase, table: Table) -> None:
    """The control database knows the table as if it had been captured."""
    database = table.instance.database
    control.sources.add(database, "postgresql", "")
    control.sources.set_enabled(database, True)
    with control.instances.add(table.instance):
        pass
    lease = control.leases.acquire(database, "bench", 3600)
    assert lease is not None, "nobody else has this control database"
    control.publish(
        Publication(database, lease.token, table.high, table.high, table.high, None, LogIdentity("1", 1, "s"))
    )


if __name__ == "__main__":
    sys.exit(main())
