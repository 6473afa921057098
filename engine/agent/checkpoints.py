"""What commits of capture leave to be done beside it: checkpoints of Delta logs, compactions asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Condition, Thread

import structlog

from engine.errors import CdcError, ControlUnreachable
from engine.lake.failures import jvm_failures
from engine.lake.publisher import COMMITS_A_CHECKPOINT, Publisher

_log = structlog.get_logger(__name__)

CHECKPOINTS_A_COMPACTION = 10
"""A file comes with each commit: a thousand small ones are a second's work, and as many less for a reader."""


class Checkpoints:
    """Counts commits a table and writes its checkpoint when it is due, in a thread of its own.

    compact: asks for a compaction of a database, one of whose tables has got `CHECKPOINTS_A_COMPACTION`
    since the last: cleanup, which is followed by one too, comes once a day.
    """

    def __init__(
        self, publisher: Publisher, compact: Callable[[str], None], every: int = COMMITS_A_CHECKPOINT
    ) -> None:
        self._publisher = publisher
        self._compact = compact
        self._every = every
        self._commits: Counter[str] = Counter()
        self._written: dict[str, Counter[str]] = {}
        self._due: dict[str, str] = {}
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

    def committed(self, database: str, path: str) -> None:
        """One more commit of the database's table at ``path``."""
        with self._news:
            self._commits[path] += 1
            if self._commits[path] >= self._every:
                self._commits[path] = 0
                self._due[path] = database
                self._news.notify()

    def _run(self) -> None:
        while (due := self._next()) is not None:
            path, database = due
            try:
                with jvm_failures():
                    self._publisher.maintain(path)
                self._count(path, database)
            except (CdcError, OSError) as error:
                # A table that was dropped meanwhile, or a full disk: readers only replay more of the log.
                _log.warning("checkpoint not written", path=path, error=str(error))
            except Exception:  # noqa: BLE001 - the edge of this thread, without which no table has checkpoints
                _log.exception("checkpoint died", path=path)

    def _count(self, path: str, database: str) -> None:
        """A compaction takes all tables of the database: it is asked for by the first that has enough."""
        written = self._written.setdefault(database, Counter())
        written[path] += 1
        if written[path] < CHECKPOINTS_A_COMPACTION:
            return
        try:
            self._compact(database)
            written.clear()
        except ControlUnreachable as error:
            _log.warning("compaction not asked for", database=database, error=str(error))

    def _next(self) -> tuple[str, str] | None:
        with self._news:
            self._news.wait_for(lambda: self._stopped or self._due)
            if self._stopped:
                return None
            path = next(iter(self._due))  # the one that has waited longest
            return path, self._due.pop(path)
