"""What the bench asks of a reader, by environment variables (the ``--project`` contract of the bench)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Task:
    """One run on one backlog.

    slot, publication: the reader's own copy of a slot made before the first change.
    expected: row changes of the backlog; rows: change-table rows, an update counts two.
    out: a folder for whatever the run writes; latency: W5's file of ``id epoch_seconds`` lines.
    """

    workload: str
    uri: str
    slot: str
    publication: str
    expected: int
    rows: int
    out: Path
    latency: Path | None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Task:
        """Raises KeyError naming the variable that is missing."""
        latency = environment.get("BENCH_LATENCY")
        return cls(
            workload=environment["BENCH_WORKLOAD"],
            uri=environment["BENCH_URI"],
            slot=environment["BENCH_SLOT"],
            publication=environment["BENCH_PUB"],
            expected=int(environment["BENCH_EXPECTED"]),
            rows=int(environment["BENCH_ROWS"]),
            out=Path(environment["BENCH_OUT"]),
            latency=Path(latency) if latency else None,
        )
