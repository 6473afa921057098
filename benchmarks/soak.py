"""``python -m benchmarks.soak [--minutes N] [--rate N]``: scans, cleanups, collections of a day, compressed.

A real agent captures three tables without pause while they are written to. Beside it, each in a thread of its
own, cleanup that keeps a minute runs every 1.5 seconds, compaction after it, the data collector as often,
and a reader compares every half minute what is in the validity interval with what was inserted. Prints a line
of figures every half minute and, at the end, what grew from the second quarter of the run to the last.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.soak_home import HEADING, Repeated, Sample, SoakHome, Writer, raise_first, soak_home

SAMPLE_SECONDS = 30
READ_SECONDS = 30
TURN_SECONDS = 1.5
"""Between the beginnings of two cleanups, and of two collections: a day has one and 288."""
MAY_GROW = {
    "python_mib": 1.1,
    "java_live_mib": 1.25,
    "threads": 1.1,
    "handles": 1.1,
    "files": 1.5,
    "scan_time": 1.5,
    "cleanup_time": 1.5,
}
"""By what factor the median of the last quarter may exceed that of the second; noise, not a trend."""
MOST_JAVA_MIB = 2048 + 768
"""What Java may have: the heap's limit (`driver_memory`), and what code, classes and threads take."""


def main() -> int:
    """Runs and prints; exit code 1 when something grew or failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=60, help="at least 2: it compares quarters")
    parser.add_argument("--rate", type=float, default=5, help="transactions a second")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="highwater-soak-") as folder, soak_home(Path(folder)) as home:
        with Writer(home.dsn, arguments.rate):
            samples = _soaked(home, arguments.minutes * 60)
        failures = home.failures()
    for failure in failures:
        print(f"failed: {failure}")
    grown = _grown(samples)
    return int(bool(failures) or grown)


def _soaked(home: SoakHome, seconds: float) -> Sequence[Sample]:
    print(HEADING, flush=True)
    samples: list[Sample] = []
    began = time.monotonic()
    with (
        Repeated(home.clean_up, TURN_SECONDS) as cleanups,
        Repeated(home.engine.collect, TURN_SECONDS) as collections,
        Repeated(home.read, READ_SECONDS) as reads,
    ):
        while time.monotonic() < began + seconds:
            raise_first((cleanups, collections, reads), SAMPLE_SECONDS)
            samples.append(home.sample())
            print(samples[-1].line(), flush=True)
    return samples


def _grown(samples: Sequence[Sample]) -> bool:
    """Whether anything grew by more than it may; prints each."""
    quarter = len(samples) // 4
    before, after = samples[quarter : 2 * quarter], samples[-quarter:]
    grown = False
    for name, most in MAY_GROW.items():
        ratio = _median(after, name) / _median(before, name)
        grown |= ratio > most
        print(f"{name}: {ratio:.2f} x (may be {most})")
    most_java = max(each.java_mib for each in samples)
    print(f"java_mib: {most_java:.0f} at most (may be {MOST_JAVA_MIB})")
    return grown or most_java > MOST_JAVA_MIB


def _median(samples: Sequence[Sample], name: str) -> float:
    return median(float(getattr(each, name)) for each in samples)


if __name__ == "__main__":
    sys.exit(main())
