"""W5: how long after a commit its row is in the hands of a reader of the change table."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event

from benchmarks.engine_under_test import DATABASE, EngineUnderTest
from engine.agent.capture_job import CaptureJob
from engine.control.notifications import PUBLISHED
from engine.model.job import CaptureParameters, JobType
from engine.model.lsn import Lsn

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


def _read_on(engine: EngineUnderTest, wait: Callable[[float], object], stop: Event, path: Path) -> None:
    seen: Lsn | None = None
    ready = False
    with path.open("w") as rows, path.with_name(f"{path.name}.published").open("w") as published:
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
            ids = _ids(engine, seen, high)
            seen, has_them = high, time.time()
            for file, moment in ((rows, has_them), (published, told)):
                file.writelines(f"{number} {moment:.6f}\n" for number in ids)
                file.flush()


def _ids(engine: EngineUnderTest, above: Lsn | None, high: Lsn) -> Sequence[int]:
    """Keys of the rows above one watermark and up to another."""
    table = engine.lake.change_table(DATABASE, engine.instances[0].capture_instance)
    new = f"`__$start_lsn` <= '{high}'" + ("" if above is None else f" AND `__$start_lsn` > '{above}'")
    found = engine.spark.read.format("delta").load(table).where(new).select("id").collect()
    return [int(row.id) for row in found]
