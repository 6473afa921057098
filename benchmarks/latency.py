"""W5: how long after a commit its row is in the hands of a reader of the change table."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from threading import Event

from benchmarks.engine_under_test import DATABASE, EngineUnderTest
from engine.agent.capture_job import CaptureJob
from engine.control.notifications import PUBLISHED
from engine.lake.tail import TableTail
from engine.model.change import START_LSN
from engine.model.job import CaptureParameters, JobType
from engine.model.lsn import Lsn
from engine.query.all_changes import ALL, all_changes

_CONTINUOUS = CaptureParameters(pollinginterval=0)


def follow(engine: EngineUnderTest) -> None:
    """Runs the capture job and a reader until SIGTERM.

    The reader waits for a publication, asks Spark for the rows it brought, and notes each row's id and
    the time when it has them; beside it, in ``<file>.published``, the time of the publication alone.
    """
    path = engine.task.latency
    assert path is not None, "BENCH_LATENCY is part of W5"
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    engine.control.jobs.add(DATABASE, _CONTINUOUS, wanted=True)
    job = engine.control.jobs.get(DATABASE, JobType.CAPTURE)
    assert job is not None
    capture = CaptureJob(
        job,
        engine.control,
        engine.scan,
        lambda database: None,
        "bench",
        engine.settings.lease_seconds,
        engine.settings.scan_interval_floor,
    )
    with engine.control.listen(PUBLISHED) as listener:
        capture.start()
        try:
            _read_on(engine, listener.wait, stop, path)
        finally:
            capture.stop()
            capture.join()
    _tell(engine, _published(path))


def _read_on(engine: EngineUnderTest, wait: Callable[[float], object], stop: Event, path: Path) -> None:
    seen: Lsn | None = None
    tail = TableTail()
    ready = False
    with path.open("w") as rows, _published(path).open("w") as published:
        while not stop.is_set():
            if wait(0.2) is None:
                continue
            told = time.time()
            high = engine.control.watermarks.get(DATABASE).high
            if not ready:
                print("READY", flush=True)
                ready = True
            if high is None or (seen is not None and high <= seen):
                continue
            ids = _ids(engine, tail, seen, high)
            seen, has_them = high, time.time()
            for file, moment in ((rows, has_them), (published, told)):
                file.writelines(f"{number} {moment:.6f}\n" for number in ids)
                file.flush()


def _published(path: Path) -> Path:
    return path.with_name(f"{path.name}.published")


def _ids(engine: EngineUnderTest, tail: TableTail, above: Lsn | None, high: Lsn) -> Sequence[int]:
    """Keys of the rows above one watermark and up to another: all changes, asked as `Engine` asks them."""
    instance = engine.instances[0]
    assert instance.start_lsn is not None, "it is captured"
    low = max(instance.start_lsn.next(), Lsn.ZERO if above is None else above.next())
    version = tail.version(engine.lake.change_table(DATABASE, instance.capture_instance))
    found = all_changes(engine.spark, engine.lake, instance, low, high, high, ALL, version)
    return list(found.select("id").toArrow()["id"].to_pylist())


def _tell(engine: EngineUnderTest, published: Path) -> None:
    """Prints how long after their commit rows were published, by the source's clock, which is ours.

    Without the first fifth of the rows, which warm up.
    """
    table = engine.lake.change_table(DATABASE, engine.instances[0].capture_instance)
    changes = engine.spark.read.format("delta").load(table)
    mapping = engine.spark.read.format("delta").load(engine.lake.lsn_time_mapping(DATABASE))
    rows = changes.join(mapping, changes[START_LSN] == mapping["start_lsn"]).select("id", "tran_end_time")
    committed = {row["id"]: row["tran_end_time"].timestamp() for row in rows.collect()}
    told = [line.split() for line in published.read_text().splitlines()]
    late = [1000 * (float(moment) - committed[int(number)]) for number, moment in told]
    late = sorted(late[len(late) // 5 :])
    if late:
        p95 = late[int(0.95 * (len(late) - 1))]
        print(f"published: p50 {median(late):.0f} ms, p95 {p95:.0f} ms of {len(late)}", file=sys.stderr)
