"""``python -m benchmarks.stream [--rows N]``: what ``highwater sql`` takes to show a million rows.

A home of its own captures N inserted rows; the command then prints them in each format, from the change
table, from both query functions and from the source. Of each: seconds, seconds to the first row, the most
memory that the command's process had, and the most that the agent's JVM grew by. Last, INSERT … SELECT and
MERGE of the net changes into a table of the source.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

_MIB = 1 << 20
_RANGE = (
    "DECLARE @a binary(10) = sys.fn_cdc_get_min_lsn('dbo_Big'), @b binary(10) = sys.fn_cdc_get_max_lsn() "
)
_NET = "cdc.fn_cdc_get_net_changes_dbo_Big(@a, @b, 'all')"
_QUERIES: Mapping[str, str] = {
    "change table": "SELECT * FROM cdc.dbo_Big_CT",
    "all changes": f"{_RANGE} SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_Big(@a, @b, 'all')",
    "net changes": f"{_RANGE} SELECT * FROM {_NET}",
    "source": "SELECT * FROM Big",
}
_TABLE = (
    "(ID int PRIMARY KEY, Name nvarchar(50), Amount decimal(12,2), At datetime2(6), Note nvarchar(max),"
    " Flag bit)"
)
_FILL = f"""
EXEC sys.sp_cdc_enable_db
CREATE TABLE Big {_TABLE}
CREATE TABLE Copy {_TABLE}
EXEC sys.sp_cdc_enable_table 'dbo', 'Big', @role_name = NULL, @supports_net_changes = 1
EXEC highwater.sync
CREATE TABLE Digits (d int)
INSERT Digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)
INSERT Big
SELECT n, 'name ' + CAST(n AS varchar(10)), n + 0.5, '2026-01-01 10:00:00.123', 'a note on a row', 1
FROM (SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d + 100000 * f.d AS n
    FROM Digits a CROSS JOIN Digits b CROSS JOIN Digits c CROSS JOIN Digits d CROSS JOIN Digits e
    CROSS JOIN Digits f) numbers
WHERE n < {{rows}}
EXEC highwater.sync
"""
_LOADS: Mapping[str, str] = {
    "INSERT … SELECT": f"{_RANGE} INSERT Copy SELECT ID, Name, Amount, At, Note, Flag FROM {_NET}",
    "MERGE": f"{_RANGE} MERGE Copy t USING {_NET} s ON t.ID = s.ID WHEN MATCHED THEN UPDATE SET Name = s.Name"
    " WHEN NOT MATCHED THEN INSERT (ID, Name) VALUES (s.ID, s.Name);",
}


@dataclass(slots=True)
class Taken:
    """Seconds, seconds to the first output, bytes of output; the command's memory, and the JVM's growth."""

    seconds: float = 0
    first: float = 0
    written: int = 0
    memory: int = 0
    jvm: int = 0


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="highwater-bench-") as folder, _started(Path(folder)) as jvm:
        _run(jvm, _FILL.format(rows=arguments.rows), "csv")
        nothing = _run(jvm, "SELECT COUNT(*) FROM cdc.dbo_Big_CT", "csv")
        print(f"a count: {nothing.seconds:.1f} s, {nothing.memory // _MIB} MiB", flush=True)
        for what, query in _QUERIES.items():
            for form in ("table", "json", "csv"):
                _show(f"{what}, {form}", _run(jvm, query, form))
        for what, script in _LOADS.items():
            _show(what, _run(jvm, script, "csv"))
    return 0


def _show(what: str, taken: Taken) -> None:
    print(
        f"{what}: {taken.seconds:.1f} s, first row after {taken.first:.1f} s,"
        f" {taken.written // _MIB} MiB written, command {taken.memory // _MIB} MiB,"
        f" JVM +{taken.jvm // _MIB} MiB",
        flush=True,
    )


def _run(jvm: psutil.Process, script: str, form: str) -> Taken:
    """Runs a script in the home's database as a process of its own. AssertionError when it fails."""
    command = [sys.executable, "-m", "engine", "sql", "-d", "demo", "--format", form, "-q", script]
    taken, began, before = Taken(), time.perf_counter(), jvm.memory_info().rss
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        watcher = threading.Thread(target=_watch, args=(process, jvm, before, taken))
        watcher.start()
        assert process.stdout is not None
        while block := os.read(process.stdout.fileno(), _MIB):
            taken.first = taken.first or time.perf_counter() - began
            taken.written += len(block)
        process.wait()
        watcher.join()
    taken.seconds = time.perf_counter() - began
    assert process.returncode == 0, script
    return taken


def _watch(process: subprocess.Popen[bytes], jvm: psutil.Process, before: int, taken: Taken) -> None:
    """Looks at both processes ten times a second while the command runs."""
    command = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            taken.memory = max(taken.memory, command.memory_info().rss)
        except psutil.NoSuchProcess:
            return
        taken.jvm = max(taken.jvm, jvm.memory_info().rss - before)
        time.sleep(0.1)


@contextmanager
def _started(folder: Path) -> Iterator[psutil.Process]:
    """A started home with the demo's database; its agent's JVM."""
    os.environ["HIGHWATER_HOME"] = str(folder / "home")
    log = folder / "start.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "engine", "start", "--no-dashboard"]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            while "Ctrl-C stops everything" not in log.read_text():
                assert process.poll() is None, log.read_text()
                time.sleep(0.2)
            children = psutil.Process(process.pid).children(recursive=True)
            [jvm] = [each for each in children if each.name() == "java"]
            yield jvm
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
