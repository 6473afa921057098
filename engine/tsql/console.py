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

from engine.errors import CdcError
from engine.tsql.batches import batches, is_complete
from engine.tsql.catalog_views import VIEWS
from engine.tsql.evaluation import CDC_FUNCTIONS
from engine.tsql.functions import FUNCTIONS
from engine.tsql.procedures import PROCEDURES
from engine.tsql.tokens import STARTERS

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.tsql.interpreter import Interpreter

_WORDS = STARTERS | {"FROM", "WHERE", "ORDER BY", "GROUP BY", "TABLE", "TRANSACTION", "GO", "INTO", "VALUES"}
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
                    self._interpreter.run(batch)
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
        """What can be completed: T-SQL's words, procedures, functions, views, tables, columns, instances."""
        yield from _WORDS
        yield from FUNCTIONS
        yield from (f"sys.{name}" for name in PROCEDURES)
        yield from (f"sys.{name.lower()}" for name in CDC_FUNCTIONS)
        yield from VIEWS
        yield "cdc.lsn_time_mapping"
        yield "highwater.sync"
        database = self._interpreter.database
        try:
            for table in self._engine.source_tables(database):
                yield f"{table.schema}.{table.name}"
                yield from (column.name for column in table.columns)
            if not self._engine.database(database).is_cdc_enabled:
                return
            for instance in self._engine.help_change_data_capture(database):
                yield f"cdc.fn_cdc_get_all_changes_{instance.capture_instance}"
                if instance.supports_net_changes:
                    yield f"cdc.fn_cdc_get_net_changes_{instance.capture_instance}"
                yield f"cdc.{instance.change_table}"
                yield instance.capture_instance
        except CdcError as error:
            # Typing must go on while a database is away; statements say what is wrong.
            yield f"-- {error}"


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
