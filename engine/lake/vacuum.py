"""Removes files that no version of a table needs, without Spark, whose VACUUM runs hundreds of tasks."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from engine.lake.parquet_files import local_folder


def vacuumed(path: str, kept_hours: int) -> bool:
    """Removes what was removed from a local table longer ago; False where only Spark can do it.

    For the one who writes the table. Raises OSError.
    """
    folder = local_folder(path)
    if folder is None:
        return False
    try:
        names = DeltaTable(str(folder)).vacuum(kept_hours, dry_run=True, enforce_retention_duration=False)
    except DeltaError:  # a feature of the table that only Spark knows
        return False
    for name in names:
        Path(folder, unquote(name)).unlink(missing_ok=True)
    return True
