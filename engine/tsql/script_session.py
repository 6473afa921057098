"""A session that runs whole scripts and can be stopped from another thread: what a page's console has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Event
from typing import TYPE_CHECKING

from engine.tsql.batches import batches
from engine.tsql.completion import snippets, words
from engine.tsql.interpreter import Interpreter
from engine.tsql.messages import Message
from engine.tsql.sink import Sink

if TYPE_CHECKING:
    from engine.engine import Engine

STOPPED = "Query was canceled by user."


class ScriptSession:
    """Variables end with a batch; the database of USE, transactions and table variables' work stay."""

    def __init__(self, engine: Engine, database: str, sink: Sink, principal: str | None = None) -> None:
        """``sink`` is told what statements give, in the thread that runs them."""
        self._engine = engine
        self._sink = sink
        self._stop = Event()
        self._user = engine.user()
        self._is_own = principal == self._user.reads_as
        self._interpreter = self._made(database, principal)

    def _made(self, database: str, principal: str | None) -> Interpreter:
        return Interpreter(
            self._engine,
            database,
            self._sink,
            principal,
            sleep=self._sleep,
            stopped=lambda: self._stop.is_set(),
        )

    @property
    def database(self) -> str:
        """The one that statements mean: USE changes it."""
        return self._interpreter.database

    def run(self, script: str, stop: Event) -> None:
        """Runs the script's batches; errors go to the sink. Ends early once ``stop`` is set."""
        self._stop = stop
        self._follow_user()
        for batch in batches(script):
            if stop.is_set():
                break
            try:
                self._interpreter.run_recorded(batch)
            except Exception:
                if not stop.is_set():  # what is interrupted fails in many ways; to its user it was canceled
                    raise
        if stop.is_set():
            self._sink.message(Message(0, 0, 1, STOPPED))

    def _follow_user(self) -> None:
        """Another role or principal is another session: what was open had the rights of before."""
        user = self._engine.user()
        if user == self._user:
            return
        self._user = user
        self._interpreter.close()
        if self._is_own:
            self._interpreter = self._made(self.database, user.reads_as)

    def cancel(self) -> None:
        """After ``stop`` was set, from another thread: ends the statement that runs now."""
        self._interpreter.cancel()

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back."""
        self._interpreter.close()

    def words(self) -> Iterable[str]:
        """What can be completed."""
        return words(self._engine, self.database)

    @staticmethod
    def snippets() -> Mapping[str, str]:
        """A call of each procedure, to be filled in."""
        return snippets()

    def _sleep(self, seconds: float) -> None:
        self._stop.wait(seconds)
