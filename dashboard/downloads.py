"""Downloads of whole queries: a file is written in the background, then a browser fetches it.

It is written part by part, so that no memory holds it, and is gone with the tab that asked. No Streamlit
call here.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4
from weakref import WeakValueDictionary, finalize

import pyarrow as pa

from dashboard import exports
from dashboard import format as fmt
from dashboard.operations import Operation
from engine.errors import DownloadTooLarge

RESERVE = 1 << 30
"""Bytes that a download leaves free: databases may live on the same disk."""

Rows = tuple[pa.Schema, Generator[pa.Table]]
"""A query's schema and its rows, part by part."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file that is whole. ``begin``: called before it is fetched; raises CdcError where it may not be."""

    question: str
    file: Path
    name: str
    mime: str
    rows: int
    size: int
    begin: Callable[[], None]


class Shelf:
    """One tab's place for the file that it asked for last. It goes with whoever holds the shelf."""

    def __init__(self) -> None:
        self.token = uuid4().hex
        self.ready: Download | None = None
        self._folder: Path | None = None
        self._remove: Callable[[], object] = lambda: None

    def prepare(
        self,
        question: str,
        name: str,
        wanted: exports.ExportFormat,
        read: Callable[[], Rows],
        begin: Callable[[], None],
        work: Operation,
    ) -> None:
        """Writes the file ``name`` with the extension of its format; the one before goes.

        question: by which a page knows it again. Raises Cancelled, DownloadTooLarge, and what reading raises.
        """
        self.clear()
        work.step("reading changes")
        file = self._place() / f"{uuid4().hex}.{wanted.extension}"
        try:
            rows = _write(file, wanted, read, work)
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        size = file.stat().st_size
        self.ready = Download(question, file, f"{name}.{wanted.extension}", wanted.mime, rows, size, begin)

    def clear(self) -> None:
        """Removes the file that is ready."""
        ready, self.ready = self.ready, None
        if ready is not None:
            ready.file.unlink(missing_ok=True)

    def close(self) -> None:
        """Removes its folder, whoever still holds it."""
        self.ready = None
        self._remove()

    def _place(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="highwater-download-"))
            self._remove = finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder


def _write(file: Path, wanted: exports.ExportFormat, read: Callable[[], Rows], work: Operation) -> int:
    def written(rows: int) -> None:
        work.check()
        work.steps[-1] = f"{fmt.plural(rows, 'row')} written"
        free = shutil.disk_usage(file.parent).free
        if free < RESERVE:
            raise DownloadTooLarge(os.fspath(file.parent), free // 1_000_000)

    schema, parts = read()
    with closing(parts), file.open("wb") as target:
        return exports.write(schema, parts, wanted, target, written)


class Downloads:
    """The shelves of this process by their tokens, which nobody can guess: an address names one."""

    def __init__(self) -> None:
        self._shelves: WeakValueDictionary[str, Shelf] = WeakValueDictionary()

    def shelf(self) -> Shelf:
        """A new one, known here as long as its tab holds it."""
        shelf = Shelf()
        self._shelves[shelf.token] = shelf
        return shelf

    def ready(self, token: str) -> Download | None:
        """What is ready on the shelf of that token; None when it is gone."""
        shelf = self._shelves.get(token)
        return None if shelf is None else shelf.ready

    def close(self) -> None:
        """Removes all files, at the end of the process."""
        for shelf in tuple(self._shelves.values()):
            shelf.close()
