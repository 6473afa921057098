"""How deltalake is told of a table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.lake.parquet_files import local_folder


@contextmanager
def readable_name(path: str) -> Iterator[str]:
    """What deltalake reads a table's log by: in a folder's name it would decode ``%20``, and find nothing."""
    folder = local_folder(path)
    if folder is None:
        yield path
    elif "%" not in str(folder):
        yield str(folder)
    else:
        with tempfile.TemporaryDirectory(prefix="highwater-") as place:
            Path(place, "_delta_log").symlink_to(folder / "_delta_log")
            yield place
