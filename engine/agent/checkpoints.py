"""Checkpoints of Delta logs, written beside the capture jobs rather than in their commits."""

from __future__ import annotations

from collections import Counter
from threading import Condition, Thread

import structlog

from engine.errors import CdcError
from engine.lake.failures import jvm_failures
from engine.lake.publisher import Publisher

_log = structlog.get_logger(__name__)

COMMITS_A_CHECKPOINT = 100
"""So many log entries a reader replays at most, about; a checkpoint costs as much as ten commits."""


class Checkpoints:
    """Counts commits a table and writes its checkpoint when it is due, in a thread of its own."""

    def __init__(self, publisher: Publisher, every: int = COMMITS_A_CHECKPOINT) -> None:
        self._publisher = publisher
        self._every = every
        self._commits: Counter[str] = Counter()
        self._due: set[str] = set()
        self._news = Condition()
        self._stopped = False
        self._thread = Thread(target=self._run, name="checkpoints", daemon=True)

    def start(self) -> None:
        """Begins to write what becomes due."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after the checkpoint being written; what is due waits for the next start's count."""
        with self._news:
            self._stopped = True
            self._news.notify()
        self._thread.join()

    def committed(self, path: str) -> None:
        """One more commit of the table at ``path``."""
        with self._news:
            self._commits[path] += 1
            if self._commits[path] >= self._every:
                self._commits[path] = 0
                self._due.add(path)
                self._news.notify()

    def _run(self) -> None:
        while (path := self._next()) is not None:
            try:
                with jvm_failures():
                    self._publisher.maintain(path)
            except (CdcError, OSError) as error:
                # A table that was dropped meanwhile, or a full disk: readers only replay more of the log.
                _log.warning("checkpoint not written", path=path, error=str(error))

    def _next(self) -> str | None:
        with self._news:
            self._news.wait_for(lambda: self._stopped or self._due)
            return None if self._stopped else self._due.pop()
