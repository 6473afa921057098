"""The consoles that are open in this process: they outlast a lost connection, not their browser tab.

A connection to a browser is lost whenever a network blinks or a laptop sleeps. Would its console end with it,
the next statement would run outside the transaction that it was typed for. No Streamlit call here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event, Lock, Thread

import structlog

from dashboard.console import ResultSet, TabConsole
from engine.engine import Engine

AWAY = 130.0
"""Seconds that a console waits for its browser: Streamlit knows a tab again for two minutes."""
LOOK = 5.0
"""Seconds between two looks at who is away."""

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Open:
    console: TabConsole
    is_connected: Callable[[], bool]
    seen: float = field(default_factory=time.monotonic)


class Consoles:
    """Consoles by their tokens, which nobody can guess: downloads, and browsers that leave, name them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: dict[str, _Open] = {}
        self._watch: Thread | None = None
        self._ended = Event()

    def open(self, engine: Engine, database: str, is_connected: Callable[[], bool]) -> TabConsole:
        """A new one. ``is_connected``: whether its browser tab is, asked on another thread."""
        console = TabConsole(engine, database)
        with self._lock:
            self._open[console.token] = _Open(console, is_connected)
            if self._watch is None:
                self._watch = Thread(target=self._look_after, name="consoles", daemon=True)
                self._watch.start()
        return console

    def get(self, token: str) -> TabConsole | None:
        """The console of that token; None where it has ended."""
        found = self._open.get(token)
        return None if found is None else found.console

    def close(self, token: str) -> None:
        """Ends one; nothing where it has ended."""
        with self._lock:
            found = self._open.pop(token, None)
        if found is not None:
            try:
                found.console.close()
            except Exception as error:  # noqa: BLE001 - a source that does not answer keeps no other one open
                _log.warning("console_not_closed", database=found.console.database, error=repr(error))

    def close_all(self) -> None:
        """Ends all, at the end of the process."""
        self._ended.set()
        with ThreadPoolExecutor(thread_name_prefix="closing-console") as pool:
            list(pool.map(self.close, tuple(self._open)))

    def close_left(self) -> None:
        """Ends those whose browser has been away for AWAY seconds."""
        now = time.monotonic()
        with self._lock:
            known = tuple(self._open.items())
        for token, each in known:
            if each.is_connected():
                each.seen = now
            elif now - each.seen > AWAY:
                self.close(token)

    def result(self, token: str, mark: str, number: int) -> ResultSet | None:
        """A result of the console's last run; None when it is gone."""
        console = self.get(token)
        if console is None or console.run.mark != mark or number >= len(console.run.results):
            return None
        return console.run.results[number]

    def begin_download(self, token: str) -> None:
        """As `TabConsole.begin_download`."""
        self._open[token].console.begin_download()

    def _look_after(self) -> None:
        while not self._ended.wait(LOOK):
            self.close_left()
