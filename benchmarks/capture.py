"""``python -m benchmarks.capture [--maxtrans N]``: Highwater as a reader of the bench (its ``--project``).

Does what the agent does: reads the slot, appends change rows and lsn_time_mapping to Delta tables,
publishes in the control database, confirms the slot; the files and log entries are flushed to disk.
The clock runs from asking for the first message until the publication that makes the last row readable.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from benchmarks.engine_under_test import DATABASE, EngineUnderTest, engine_under_test
from benchmarks.latency import follow
from benchmarks.task import Task
from engine.model.job import CaptureParameters

_STARTED = time.monotonic()
_MOST = 1_000_000


def main() -> int:
    """Runs the task that the environment names; exit code 1 when rows are not what they must be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--maxtrans", type=int, default=_MOST, help="transactions a scan cycle")
    maxtrans = parser.parse_args().maxtrans
    task = Task.from_environment(os.environ)
    with engine_under_test(task) as engine:
        if task.workload == "w5":
            follow(engine)
            return 0
        return _drain(engine, maxtrans)


def _drain(engine: EngineUnderTest, maxtrans: int) -> int:
    drain = CaptureParameters(maxtrans=maxtrans, maxscans=_MOST, continuous=False, pollinginterval=0)
    lease = engine.control.leases.acquire(DATABASE, "bench", 3600)
    assert lease is not None, "nobody else has this control database"
    with engine.scan(lease) as scan:
        asked = time.monotonic()
        session = scan.run(drain, lambda: False)
        done = time.monotonic()
    events = 0 if session is None else session.command_count
    rows = _rows(engine)
    result = {
        "events": events,
        "rows": rows,
        "first_to_last_s": round(done - asked, 4),
        "start_to_last_s": round(done - _STARTED, 4),
        "events_per_s": round(events / (done - asked), 1),
    }
    print(f"RESULT {json.dumps(result)}", flush=True)
    wanted = {"events": engine.task.expected, "rows": engine.task.rows}
    if wrong := {name: count for name, count in wanted.items() if result[name] != count}:
        print(f"expected {wrong}", file=sys.stderr)
        return 1
    return 0


def _rows(engine: EngineUnderTest) -> int:
    """Rows of all change tables that a reader sees, counted by Spark."""
    high = engine.control.watermarks.get(DATABASE).high
    return sum(
        engine.spark.read.format("delta")
        .load(engine.lake.change_table(DATABASE, instance.capture_instance))
        .where(f"`__$start_lsn` <= '{high}'")
        .count()
        for instance in engine.instances
    )


if __name__ == "__main__":
    sys.exit(main())
