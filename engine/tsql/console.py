"""The console: lines until GO are a batch; history and completion by prompt_toolkit."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory

from engine.tsql.batches import batches, is_complete
from engine.tsql.completion import words

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.tsql.interpreter import Interpreter

_NAME = re.compile(r"[\w.$#@\[\]]+")
_LEAVING = frozenset({"exit", "quit", ":exit", ":quit"})
_FORGETTING = frozenset({"reset", ":reset"})


class Console:
    """Reads batches until the end of input, ``exit`` or ``quit``; ``reset`` forgets what was typed."""

    def __init__(self, interpreter: Interpreter, engine: Engine, history: Path) -> None:
        """``history``: the file that keeps what was typed."""
        self._interpreter = interpreter
        self._engine = engine
        self._history = history

    def run(self) -> None:
        """Until the user leaves."""
        prompt: PromptSession[str] = PromptSession(
            history=FileHistory(str(self._history)),
            completer=Words(self.words),
            complete_while_typing=False,
        )
        print("T-SQL; GO on a line of its own runs what was typed, exit leaves.")
        line, text = 1, ""
        while True:
            try:
                typed = prompt.prompt(f"{line}> ")
            except KeyboardInterrupt:
                line, text = 1, ""
                continue
            except EOFError:
                return
            word = typed.strip().rstrip(";").lower()
            if word in _LEAVING and (not text or word.startswith(":")):
                return
            if word in _FORGETTING:
                line, text = 1, ""
                continue
            text += f"{typed}\n"
            line += 1
            if is_complete(text):
                self._run(text)
                line, text = 1, ""

    def _run(self, text: str) -> None:
        """Ctrl-C stops what the source does; the session goes on."""
        with self._interruptible():
            for batch in batches(text):
                try:
                    self._interpreter.run_recorded(batch)
                    sys.stdout.flush()
                except KeyboardInterrupt:
                    print("Stopped.")
                    return

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        def stop(number: int, frame: FrameType | None) -> None:
            self._interpreter.cancel()
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def words(self) -> Iterable[str]:
        """What can be completed in the database that statements mean now."""
        return words(self._engine, self._interpreter.database)


class Words(Completer):
    """Completes the name at the cursor, dots included, without regard to case."""

    def __init__(self, words: Callable[[], Iterable[str]]) -> None:
        """``words`` gives them when they are asked for."""
        self._words = words

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Names that begin like what stands before the cursor."""
        typed = document.get_word_before_cursor(pattern=_NAME)
        for word in sorted(set(self._words()), key=str.lower):
            if word.lower().startswith(typed.lower()):
                yield Completion(word, start_position=-len(typed))
