"""The demo company's workload on a database that has the company."""

from __future__ import annotations

from collections.abc import Callable

from engine.demo import Summary, has_company, run
from engine.errors import DemoMissing, WorkloadInvalid, WorkloadMixInvalid
from engine.model.workload_mix import Mix
from engine.procedures.databases import Databases

HIGHEST_RATE = 1000.0
LONGEST = 86_400.0
"""A day, in seconds: a workload that was forgotten ends by itself."""


class Demo:
    """Where trying things out hurts nobody."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases

    def is_there(self, database: str) -> bool:
        """Whether the company is in a database. Raises SourceUnreachable."""
        return has_company(self._databases.dsn(database))

    def run(
        self,
        database: str,
        rate: float,
        seconds: float,
        seed: int,
        stopped: Callable[[float], bool],
        mix: Mix,
    ) -> Summary:
        """Runs the workload.

        Raises WorkloadInvalid, WorkloadMixInvalid, DemoMissing, SourceUnreachable.
        """
        if not 0 < rate <= HIGHEST_RATE or not 0 <= seconds <= LONGEST:
            raise WorkloadInvalid(int(HIGHEST_RATE), int(LONGEST))
        if (problem := mix.problem()) is not None:
            raise WorkloadMixInvalid(problem)
        dsn = self._databases.dsn(database)
        if not has_company(dsn):
            raise DemoMissing(database)
        return run(dsn, rate, seconds, seed, stopped, mix=mix)
