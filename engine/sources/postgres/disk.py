"""Free disk space of a server, where its data lie on this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

_START_TOLERANCE = 60.0
"""Seconds between a server's process and its word that it has started."""


def free_bytes(data_directory: str | None, started: float) -> int | None:
    """Bytes free where the server writes its log; None unless it is sure that the folder is that server's.

    data_directory: as the server names it, None where it does not say. started: when it started, seconds
    since 1970. A folder of that name may be another server's: its pid file tells.
    """
    if data_directory is None:
        return None
    folder = Path(data_directory)
    try:
        begun = float((folder / "postmaster.pid").read_text(encoding="utf-8").splitlines()[2])
        if abs(started - begun) > _START_TOLERANCE:
            return None
        return shutil.disk_usage(folder / "pg_wal").free
    except (OSError, ValueError, IndexError):
        return None
