"""The console of one browser tab: its T-SQL session, and what the last run gave. No Streamlit call here.

The first rows of a result are kept for the page; all of them go to a file of the tab's own while they come,
so that a download of a whole result holds nothing in memory.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dashboard import format as fmt
from dashboard.operations import Cancelled, Operation
from engine.engine import Engine
from engine.sources.sql_session import ResultColumn
from engine.text_cells import csv_field, started

if TYPE_CHECKING:
    from engine.tsql.messages import Message

SHOWN = 1000
"""Rows of a result that the page shows."""
KEPT = 1_000_000
"""Rows of a result that are fetched; there reading ends, so that a disk is not filled by one SELECT."""
FORMATS = {"csv": "text/csv", "jsonl": "application/x-ndjson"}


@dataclass(slots=True)
class ResultSet:
    """One result: ``rows`` are the first, as text with None for NULL; ``file`` has a JSON list for each."""

    columns: tuple[str, ...]
    file: Path
    rows: list[list[str | None]] = field(default_factory=list)
    count: int = 0
    is_cut: bool = False
    is_done: bool = False

    def lines(self, form: str) -> Iterator[str]:
        """The whole result as a file of that form of FORMATS, a line at a time; NULL in CSV is nothing."""
        if form == "csv":
            yield ",".join(csv_field(name) for name in self.columns) + "\n"
        with self.file.open(encoding="utf-8") as rows:
            for line in rows:
                values = json.loads(line)
                if form == "csv":
                    yield ",".join("" if v is None else csv_field(v) for v in values) + "\n"
                else:
                    pairs = dict(zip(self.columns, values, strict=True))
                    yield json.dumps(pairs, ensure_ascii=False) + "\n"


def _text(value: Any) -> str | None:
    """A cell as the original's tools show it; None is NULL."""
    if value is None:
        return None
    return str(int(value)) if isinstance(value, bool) else fmt.cell(value)


@dataclass(frozen=True, slots=True)
class Said:
    """Something that the server printed; a script line of 0: none is known."""

    text: str
    is_error: bool = False


class Run:
    """What one run gives, in order: written by its thread, read by the page. A sink of `ScriptSession`."""

    def __init__(self, folder: Path, script: str = "") -> None:
        self.folder = folder
        self.script = script
        self.mark = uuid4().hex
        self.stop = Event()
        self.messages: list[Said] = []
        self.results: list[ResultSet] = []

    @property
    def has_failed(self) -> bool:
        """Whether an error was shown."""
        return any(said.is_error for said in self.messages)

    def rows(self, columns: Sequence[ResultColumn], rows: Iterable[Sequence[Any]]) -> int:
        """Keeps the first rows and writes all of them, up to KEPT."""
        rows = started(rows)
        names = tuple(column.name for column in columns)
        result = ResultSet(names, self.folder / f"{self.mark}.{len(self.results)}")
        self.results.append(result)
        with result.file.open("w", encoding="utf-8") as file:
            for row in rows:
                if self.stop.is_set() or result.count == KEPT:
                    result.is_cut = True
                    break
                cells = [_text(value) for value in row]
                file.write(json.dumps(cells, ensure_ascii=False) + "\n")
                if result.count < SHOWN:
                    result.rows.append(cells)
                result.count += 1
        result.is_done = True
        return result.count

    def count(self, rows: int) -> None:
        """``(3 rows affected)``."""
        self.messages.append(Said(f"({rows} row{'' if rows == 1 else 's'} affected)"))

    def message(self, message: Message) -> None:
        """Its text; one with a number has it."""
        head = f"Msg {message.number}, Level {message.severity}, State {message.state}: "
        self.messages.append(Said((head if message.number else "") + message.text))

    def error(self, error: Message) -> None:
        """Two lines, as the original's tools write them."""
        place = f"Procedure {error.procedure}, " if error.procedure else ""
        head = f"Msg {error.number}, Level {error.severity}, State {error.state}, {place}Line {error.line}"
        self.messages.append(Said(f"{head}\n{error.text}", is_error=True))


class TabConsole:
    """The session of one tab. A run at a time; what it gives replaces what the one before gave."""

    def __init__(self, engine: Engine, database: str) -> None:
        self._engine = engine
        self.token = uuid4().hex
        self._folder = Path(tempfile.mkdtemp(prefix="highwater-console-"))
        self.run = Run(self._folder)
        self.is_closed = False
        self._lock = Lock()
        self._is_running = False
        self._session = engine.script_session(database, self)

    @property
    def database(self) -> str:
        """The one that statements mean: USE changes it."""
        return self._session.database

    def words(self) -> list[str]:
        """What can be completed. Asks the source."""
        return sorted(set(self._session.words()), key=str.lower)

    def snippets(self) -> dict[str, str]:
        """A call of each procedure, to be filled in."""
        return dict(self._session.snippets())

    def execute(self, script: str, first_line: int, operation: Operation) -> Run:
        """Runs a script, its first line being that of the editor. For a background operation.

        Raises Cancelled where the session has ended: a new connection would know nothing of its transaction.
        """
        operation.check()
        with self._lock:
            if self.is_closed:
                raise Cancelled
            run = self._begin(script)
            self._is_running = True
        try:
            with operation.stopped_by(self.cancel):
                operation.steps.append("running")
                self._session.run("\n" * (first_line - 1) + script, run.stop)
        finally:
            self._is_running = False
        return run

    def cancel(self) -> None:
        """Ends the run, from another thread; the session stays, an open transaction too."""
        self.run.stop.set()
        self._session.cancel()

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back, files of results go. No run begins after."""
        with self._lock:
            self.is_closed = True
        try:
            if self._is_running:
                self.cancel()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._session.close()

    def begin_download(self) -> None:
        """Before a result of the last run is downloaded. Raises ExportsOff, LoginFailed."""
        self._engine.begin_export(self.database, self.run.script)

    def _begin(self, script: str) -> Run:
        for result in self.run.results:
            result.file.unlink(missing_ok=True)
        self.run = Run(self._folder, script)
        return self.run

    # The sink of the session: whatever runs now

    def rows(self, columns: Sequence[ResultColumn], rows: Iterable[Sequence[Any]]) -> int:
        """A result set."""
        return self.run.rows(columns, rows)

    def count(self, rows: int) -> None:
        """Rows affected."""
        self.run.count(rows)

    def message(self, message: Message) -> None:
        """Up to severity 10."""
        self.run.message(message)

    def error(self, error: Message) -> None:
        """An error that nobody caught."""
        self.run.error(error)
