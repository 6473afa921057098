"""Putting the beginning of a log aside while others append to it."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

_COLLAPSE_RANGE = 0x08
"""FALLOC_FL_COLLAPSE_RANGE of Linux (ext4, XFS): takes whole blocks out of a file, in one step."""


def put_aside(log: Path, aside: Path) -> None:
    """Moves what the log holds to ``aside``; OSError when it can't be written there, but the log is cut.

    Where the file system can take the beginning out of a file, that is what is moved: nothing written
    meanwhile is lost, and ``aside`` with ``log`` after it is all that was written. Elsewhere the log is
    emptied, and a line that comes between copying and emptying is lost.
    """
    with log.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        block = os.fstatvfs(file.fileno()).f_bsize
        # What is taken out may not reach the end.
        whole = (size - 1) // block * block
        try:
            with aside.open("wb") as kept:
                shutil.copyfileobj(file, kept)
                kept.flush()
                if whole > 0 and _take_out(file.fileno(), whole):
                    kept.truncate(whole)
                    return
        except OSError:
            if whole <= 0 or not _take_out(file.fileno(), whole):
                os.truncate(log, 0)
            raise
        os.truncate(log, 0)


def _take_out(descriptor: int, size: int) -> bool:
    """Whether the file's first ``size`` bytes, whole blocks, could be taken out of it."""
    fallocate = getattr(ctypes.CDLL(None), "fallocate", None)
    if fallocate is None:
        return False
    fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return bool(fallocate(descriptor, _COLLAPSE_RANGE, 0, size) == 0)
