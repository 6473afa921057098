"""Connections to sources for those who look at their logs again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from threading import Lock, Timer
from typing import TypeVar

from engine.errors import CdcError
from engine.model.source_database import SourceDatabase
from engine.sources.base import LogSource
from engine.sources.registry import Sources

_Answer = TypeVar("_Answer")


class KeptLogs:
    """Logs that stay connected between two looks that follow each other soon: to connect costs ten looks.

    rest: seconds that a connection waits for the next look; 0: none is kept. Threads may share one; two that
    look at a database at once have a connection each.
    """

    def __init__(self, sources: Sources, rest: float) -> None:
        self._sources = sources
        self._rest = rest
        self._resting: dict[str, tuple[SourceDatabase, LogSource, float]] = {}
        self._lock = Lock()
        self._timer: Timer | None = None

    def ask(self, database: SourceDatabase, question: Callable[[LogSource], _Answer]) -> _Answer:
        """The answer of a database's log. A connection that was lost while it rested is made anew.

        Raises what ``question`` raises.
        """
        resting = self._take(database)
        if resting is not None:
            try:
                answer = question(resting)
            except CdcError:
                resting.close()
            else:
                self._let_rest(database, resting)
                return answer
        log = self._sources.log(database)
        try:
            answer = question(log)
        except BaseException:
            log.close()
            raise
        self._let_rest(database, log)
        return answer

    def close(self, but: Collection[str] = ()) -> None:
        """Closes what rests, but of these databases."""
        with self._lock:
            closing = [self._resting.pop(name) for name in list(self._resting) if name not in but]
        for _, log, _ in closing:
            log.close()

    def _take(self, database: SourceDatabase) -> LogSource | None:
        """The connection that rests; None where there is none to this registration, or for too long."""
        with self._lock:
            found = self._resting.pop(database.name, None)
        if found is None:
            return None
        registered, log, since = found
        if registered == database and time.monotonic() - since < self._rest:
            return log
        log.close()
        return None

    def _let_rest(self, database: SourceDatabase, log: LogSource) -> None:
        if not self._rest:
            log.close()
            return
        with self._lock:
            other = self._resting.pop(database.name, None)
            self._resting[database.name] = database, log, time.monotonic()
            if self._timer is None:
                self._wait(self._rest)
        if other is not None:
            other[1].close()

    def _wait(self, seconds: float) -> None:
        self._timer = Timer(seconds, self._close_rested)
        self._timer.daemon = True
        self._timer.start()

    def _close_rested(self) -> None:
        now = time.monotonic()
        with self._lock:
            tired = [name for name, (_, _, since) in self._resting.items() if now - since >= self._rest]
            left = [since for name, (_, _, since) in self._resting.items() if name not in tired]
            closing = [self._resting.pop(name) for name in tired]
            self._timer = None
            if left:
                self._wait(min(left) + self._rest - now)
        for _, log, _ in closing:
            log.close()
