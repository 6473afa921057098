"""Work that takes longer than a page may: run in the background, watched, cancelled.

One `Operations` for the process; a page submits under a key and polls. No Streamlit call here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import uuid4

import structlog

_log = structlog.get_logger(__name__)

KEPT = 64
"""Finished operations remembered at most, the oldest forgotten first."""

ROW_CAP = 1_000_000
"""Most rows that one read brings into this process."""


class OperationState(StrEnum):
    """Where an operation is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Cancelled(Exception):  # noqa: N818 - the outcome a user asked for, not an error
    """Raised inside the work of an operation that was cancelled."""


class Operation:
    """One piece of background work. Attributes are written by its thread alone and read by pages."""

    def __init__(self, key: str, title: str, owner: str = "") -> None:
        self.key = key
        self.title = title
        self.owner = owner
        self.tag = f"highwater-{uuid4().hex}"
        self.state = OperationState.QUEUED
        self.result: Any = None
        self.error: Exception | None = None
        self.steps: list[str] = []
        self.fraction: float | None = None
        self.submitted = datetime.now(UTC)
        self.finished: datetime | None = None
        self._ended = threading.Event()
        self._unwanted = threading.Event()
        self._sessions: set[Any] = set()
        self._stops: list[Callable[[], None]] = []

    @property
    def is_active(self) -> bool:
        """Whether it is still queued or running."""
        return self.state in (OperationState.QUEUED, OperationState.RUNNING)

    @property
    def is_ending(self) -> bool:
        """Whether it was cancelled and goes on until its work has heard of it."""
        return self.is_active and self._unwanted.is_set()

    @property
    def seconds(self) -> float:
        """How long it took, or has been taking."""
        return ((self.finished or datetime.now(UTC)) - self.submitted).total_seconds()

    def wait(self, seconds: float) -> bool:
        """Waits that long at most for its end; whether it has ended."""
        return self._ended.wait(seconds)

    def step(self, text: str) -> None:
        """Says what comes next. Raises Cancelled when nobody wants it any more."""
        self.check()
        self.steps.append(text)

    def check(self) -> None:
        """Raises Cancelled when the operation was cancelled."""
        if self._unwanted.is_set():
            raise Cancelled

    def is_cancelled_within(self, seconds: float) -> bool:
        """Waits that long, or until it is cancelled; whether it was. For work that has an end of its own."""
        return self._unwanted.wait(seconds)

    def cancel(self) -> None:
        """Asks the work to end: Spark jobs are interrupted by their tag, all else as `stopped_by` says."""
        self._unwanted.set()
        for spark in tuple(self._sessions):
            spark.interruptTag(self.tag)
        for stop in tuple(self._stops):
            stop()

    @contextmanager
    def stopped_by(self, stop: Callable[[], None]) -> Iterator[None]:
        """Within it `cancel` calls ``stop`` too, from another thread. Raises Cancelled when it was before."""
        self._stops.append(stop)
        try:
            self.check()
            yield
        finally:
            self._stops.remove(stop)

    def rows(self, frame: Any) -> list[dict[str, Any]]:
        """The rows of a Spark DataFrame as dictionaries, at most ROW_CAP."""
        return list(self.table(frame.limit(ROW_CAP)).to_pylist())

    def table(self, frame: Any) -> Any:
        """A Spark DataFrame as an Arrow table; interruptible, with its tasks as progress."""
        self.check()
        with self.watching(frame.sparkSession):
            return frame.toArrow()

    def count(self, frame: Any) -> int:
        """How many rows a Spark DataFrame has; interruptible."""
        self.check()
        with self.watching(frame.sparkSession):
            return int(frame.count())

    @contextmanager
    def watching(self, spark: Any) -> Iterator[None]:
        """Within it `cancel` interrupts what this thread runs in Spark, and its tasks are the progress."""
        thread = threading.get_ident()

        def report(stages: Any, **_rest: Any) -> None:
            if threading.get_ident() == thread:
                self._report(list(stages or ()))

        spark.addTag(self.tag)
        spark.registerProgressHandler(report)
        self._sessions.add(spark)
        try:
            yield
        except Exception:
            self.check()  # an interrupted job fails in many ways; to us it is cancelled
            raise
        finally:
            self._sessions.discard(spark)
            spark.removeProgressHandler(report)
            spark.removeTag(self.tag)
            self.fraction = None

    def _report(self, stages: list[Any]) -> None:
        total = sum(stage.num_tasks for stage in stages)
        if total:
            self.fraction = sum(stage.num_completed_tasks for stage in stages) / total


class Operations:
    """The background operations of this process: few at a time, the rest wait in order.

    prepare: called before each piece of work; loads, once, what threads must not load at the same time.
    """

    def __init__(self, threads: int = 4, prepare: Callable[[], None] = lambda: None) -> None:
        self._prepare = prepare
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="operation")
        self._lock = threading.Lock()
        self._operations: dict[tuple[str, str], Operation] = {}

    def submit(
        self, key: str, title: str, work: Callable[[Operation], Any], owner: str = "", rights: str = ""
    ) -> Operation:
        """Starts ``work`` unless an operation with this key is active; that one is returned then.

        ``rights``: whose rights it reads with; others have operations of their own under the same key.
        """
        place = rights, key
        with self._lock:
            known = self._operations.get(place)
            if known is not None and known.is_active:
                return known
            self._operations.pop(place, None)
            operation = self._operations[place] = Operation(key, title, owner)
            self._forget()
        self._pool.submit(self._run, operation, work)
        return operation

    def get(self, key: str, rights: str = "") -> Operation | None:
        """The newest operation of this key."""
        return self._operations.get((rights, key))

    def active(self) -> list[Operation]:
        """Those that are queued or running, whoever's, the oldest first."""
        found = [operation for operation in tuple(self._operations.values()) if operation.is_active]
        return sorted(found, key=lambda operation: operation.submitted)

    def of(self, owner: str, rights: str) -> OwnOperations:
        """As one viewer has them."""
        return OwnOperations(self, owner, rights)

    def close(self) -> None:
        """Cancels everything and waits for what runs."""
        for operation in tuple(self._operations.values()):
            if operation.is_active:
                operation.cancel()
        self._pool.shutdown(cancel_futures=True)

    def _forget(self) -> None:
        finished = [key for key, operation in self._operations.items() if not operation.is_active]
        for key in finished[: max(0, len(self._operations) - KEPT)]:
            del self._operations[key]

    def _run(self, operation: Operation, work: Callable[[Operation], Any]) -> None:
        operation.state = OperationState.RUNNING
        outcome = OperationState.DONE
        try:
            self._prepare()
            operation.check()
            operation.result = work(operation)
        except Cancelled:
            outcome = OperationState.CANCELLED
        except Exception as error:  # noqa: BLE001 - the thread's edge: the page shows it
            operation.error, outcome = error, OperationState.FAILED
            _log.warning("operation_failed", operation=operation.title, error=repr(error))
        operation.finished = datetime.now(UTC)
        operation.state = outcome
        operation._ended.set()


class OwnOperations:
    """Operations as one viewer has them: submitted in their name, shared with those of the same rights."""

    def __init__(self, operations: Operations, owner: str, rights: str) -> None:
        self._operations = operations
        self._owner = owner
        self._rights = rights

    def submit(self, key: str, title: str, work: Callable[[Operation], Any]) -> Operation:
        """As `Operations.submit`."""
        return self._operations.submit(key, title, work, self._owner, self._rights)

    def get(self, key: str) -> Operation | None:
        """As `Operations.get`."""
        return self._operations.get(key, self._rights)
