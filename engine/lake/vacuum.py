"""Deletes files that no version of a table needs, without Spark, whose VACUUM runs hundreds of tasks."""

from __future__ import annotations

from urllib.parse import unquote

from deltalake import DeltaTable

from engine.lake.parquet_files import local_folder
from engine.lake.table_name import readable_name


def vacuum(path: str, hours: int, orphans: bool) -> int | None:
    """Deletes files that no version of the last ``hours`` hours refers to; how many. None: no local folder.

    orphans: also files that no version ever had, for which the table's folder is listed. For the process
    that writes the table. Raises what deltalake does where there is no table, or one that only Spark can
    read; OSError.
    """
    folder = local_folder(path)
    if folder is None:
        return None
    with readable_name(path) as name:
        table = DeltaTable(name)
        unused = table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=orphans)
    for each in unused:
        (folder / unquote(each)).unlink(missing_ok=True)
    return len(unused)
