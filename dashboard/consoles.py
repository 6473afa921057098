"""The consoles that are open in this process, and those whose browser is away. No Streamlit call here."""

from __future__ import annotations

from threading import Lock, Timer

from dashboard.console import ResultSet, TabConsole
from engine.engine import Engine

AWAY = 130.0
"""Seconds that a console waits for its browser: Streamlit knows a tab again for two minutes."""


class Consoles:
    """Consoles by their tokens, which nobody can guess: downloads, and browsers that leave, name them.

    A connection to a browser is lost whenever a network blinks or a laptop sleeps. Would its console end
    with it, the next statement would run outside the transaction that it was typed for.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: dict[str, TabConsole] = {}
        self._away: dict[str, Timer] = {}

    def open(self, engine: Engine, database: str) -> TabConsole:
        """A new one."""
        console = TabConsole(engine, database)
        with self._lock:
            self._open[console.token] = console
        return console

    def close(self, token: str) -> None:
        """Ends one; nothing where it has ended."""
        with self._lock:
            console = self._open.pop(token, None)
            timer = self._away.pop(token, None)
        if timer is not None:
            timer.cancel()
        if console is not None:
            console.close()

    def close_all(self) -> None:
        """Ends all, at the end of the process."""
        for token in tuple(self._open):
            self.close(token)

    def leave(self, console: TabConsole) -> None:
        """Its connection to the browser is lost: it ends in AWAY seconds, unless the browser comes back.

        Returns at once: the server asks for it where it serves everybody.
        """
        with self._lock:
            if console.token in self._open:
                timer = self._away[console.token] = Timer(AWAY, self._give_up, [console.token])
                timer.daemon = True
                timer.start()

    def is_away(self, token: str) -> bool:
        """Whether it waits for its browser."""
        return token in self._away

    def come_back(self, token: str) -> TabConsole | None:
        """The console that was left, as it was; None where it has ended."""
        with self._lock:
            timer = self._away.pop(token, None)
            if timer is not None:
                timer.cancel()
            return self._open.get(token)

    def _give_up(self, token: str) -> None:
        with self._lock:
            is_away = self._away.pop(token, None) is not None
        if is_away:
            self.close(token)

    def result(self, token: str, mark: str, number: int) -> ResultSet | None:
        """A result of the console's last run; None when it is gone."""
        console = self._open.get(token)
        if console is None or console.run.mark != mark or number >= len(console.run.results):
            return None
        return console.run.results[number]

    def begin_download(self, token: str) -> None:
        """As `TabConsole.begin_download`."""
        self._open[token].begin_download()
